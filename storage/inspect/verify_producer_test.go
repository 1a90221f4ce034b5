package inspect

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/test/logtree"
)

const (
	txnDir = "transactions-0/"
	txnLog = txnDir + "00000000000000000010.log"
	txnIdx = txnDir + "00000000000000000010.txnindex"
)

func TestVerifyFindsWrongProducers(t *testing.T) {
	broker := brokerTree(t, "transactions-0")
	if found, _ := verify(t, broker.Disk(t), VerifyOptions{}); len(found) != 0 {
		t.Fatalf("undamaged: %+v", found)
	}
	// field changes a number of 8 bytes of an entry of the transaction index.
	field := func(entry, at int, by int64) func(tree) {
		return func(t tree) {
			t.Edit(txnIdx, func(b []byte) []byte {
				f := b[34*entry+at:]
				binary.BigEndian.PutUint64(f, uint64(int64(binary.BigEndian.Uint64(f))+by))
				return b
			})
		}
	}
	drop := func(entry int) func(tree) {
		return func(t tree) {
			t.Edit(txnIdx, func(b []byte) []byte { return slices.Delete(b, 34*entry, 34*entry+34) })
		}
	}
	producer := func(fn func(e *state.ProducerEntry)) func(tree) {
		return func(tr tree) {
			tr.Edit(txnDir+"00000000000000000065.snapshot", func(b []byte) []byte {
				list, err := state.DecodeSnapshot(b)
				if err != nil || len(list) == 0 {
					panic("no snapshot")
				}
				fn(&list[0])
				return state.EncodeSnapshot(list)
			})
		}
	}
	const snap = txnDir + "00000000000000000065.snapshot"
	for _, test := range []struct {
		name string
		edit func(tree)
		want []string
	}{
		{"index missing", func(t tree) { delete(t, txnIdx) }, []string{"damage txnindex-missing " + txnIdx}},
		{"first entry missing", drop(0), []string{"damage txnindex-missing " + txnIdx}},
		{"last entry missing", drop(4), []string{"damage txnindex-missing " + txnIdx}},
		{"entry cut", func(t tree) { t.Edit(txnIdx, cut(5)) }, []string{"damage txnindex-length " + txnIdx, "damage txnindex-missing " + txnIdx}},
		{"other producer", field(1, 2, 5), []string{"damage txnindex-entry " + txnIdx}},
		{"first offset higher", field(2, 10, 1), []string{"damage txnindex-entry " + txnIdx}},
		{"first offset lower", field(2, 10, -1), []string{"damage txnindex-entry " + txnIdx}},
		{"marker higher", field(2, 18, 1), []string{"damage txnindex-entry " + txnIdx, "damage txnindex-missing " + txnIdx}},
		{"last stable offset", field(0, 26, 1), []string{"damage txnindex-entry " + txnIdx}},
		{"version", func(t tree) { t.Flip(txnIdx, 35) }, []string{"damage txnindex-syntax " + txnIdx}},
		{"marker below the base", field(0, 18, -15), []string{"damage txnindex-syntax " + txnIdx}},
		{"snapshot's sequence", producer(func(e *state.ProducerEntry) { e.LastSequence++ }), []string{"damage snapshot-mismatch " + snap}},
		{"snapshot's epoch", producer(func(e *state.ProducerEntry) { e.Epoch++ }), []string{"damage snapshot-mismatch " + snap}},
		{"snapshot's offset", producer(func(e *state.ProducerEntry) { e.LastOffset = 70 }), []string{"damage snapshot-mismatch " + snap}},
		{"snapshot's transaction", producer(func(e *state.ProducerEntry) { e.TxnFirst = 60 }), []string{"damage snapshot-mismatch " + snap}},
		{"snapshot damaged", func(t tree) { t.Flip(snap, 20) }, []string{"damage snapshot-syntax " + snap}},
		{"no snapshots", func(t tree) {
			for name := range t {
				if strings.HasSuffix(name, ".snapshot") {
					delete(t, name)
				}
			}
		}, []string{"damage snapshot-missing transactions-0"}},
		{"marker lost", func(t tree) {
			t.Edit(txnLog, func(b []byte) []byte {
				for _, x := range batchesOf(logtree.TB{}, b) {
					if x.Header.BaseOffset == 23 {
						b[x.Pos+70] ^= 1
					}
				}
				return b
			})
		}, []string{"damage batch-crc " + txnLog}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := cloneTree(broker)
			test.edit(b)
			found, _ := verify(t, b.Disk(t), VerifyOptions{})
			if got := kinds(found); !slices.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v\n%+v", got, test.want, found)
			}
		})
	}
}

// plainLog makes a log of one partition whose batches are made by fn.
func plainLog(t *testing.T, n int, fn func(i int, h *record.Header)) tree {
	t.Helper()
	var log []byte
	for i := range n {
		rec := []storage.Record{{Offset: storage.Offset(i), Timestamp: int64(1000 + i), Value: []byte("value")}}
		h := record.NewHeader(rec, 0)
		fn(i, &h)
		var err error
		if log, err = record.Encode(log, h, rec, record.None); err != nil {
			t.Fatal(err)
		}
	}
	return tree{
		"p-0/00000000000000000000.log":   log,
		"p-0/" + state.EpochsFile:        []byte("0\n1\n0 0\n"),
		"p-0/" + state.MetadataFile:      []byte("version: 0\ntopic_id: 4WdnnuLgQ7OG9Bd2zp8EWg"),
		"p-0/00000000000000000000.index": nil,
		"p-0/00000000000000000000.timeindex": {
			0, 0, 0, 0, 0, 0, byte((1000 + n - 1) >> 8), byte(1000 + n - 1), 0, 0, 0, byte(n - 1),
		},
	}
}

func TestVerifyFindsWrongBatches(t *testing.T) {
	const log = "p-0/00000000000000000000.log"
	pid := func(h *record.Header, id int64, seq int32) {
		h.ProducerID, h.ProducerEpoch, h.BaseSequence = id, 0, seq
	}
	for _, test := range []struct {
		name string
		fn   func(i int, h *record.Header)
		want []string
	}{
		{"nothing", func(int, *record.Header) {}, nil},
		{"largest timestamp too low", func(i int, h *record.Header) {
			if i == 2 {
				h.MaxTimestamp--
			}
		}, []string{"damage batch-timestamp " + log}},
		{"largest timestamp too high", func(i int, h *record.Header) {
			if i == 2 {
				h.MaxTimestamp = 1003
			}
		}, []string{"notice batch-timestamp " + log}},
		{"bits without a meaning", func(i int, h *record.Header) {
			if i == 2 {
				h.Attributes |= 1 << 9
			}
		}, []string{"notice batch-attributes " + log}},
		{"transactional without producer", func(i int, h *record.Header) {
			if i == 2 {
				h.Attributes |= record.AttrTransactional
			}
		}, []string{"damage batch-producer " + log}},
		{"control record without a type", func(i int, h *record.Header) {
			if i == 2 {
				h.Attributes |= record.AttrControl
			}
		}, []string{"damage batch-records " + log}},
		{"outside the open transaction", func(i int, h *record.Header) {
			if i == 2 || i == 3 {
				pid(h, 9, int32(i-2))
			}
			if i == 2 {
				h.Attributes |= record.AttrTransactional
			}
		}, []string{"damage txn-mixed " + log}},
		{"epochs descend", func(i int, h *record.Header) {
			if i == 1 {
				h.LeaderEpoch = 4
			}
		}, []string{"damage epoch-order " + log, "notice epoch-mismatch " + log}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, _ := verify(t, plainLog(t, 6, test.fn).Disk(t), VerifyOptions{})
			if got := kinds(found); !slices.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v\n%+v", got, test.want, found)
			}
		})
	}
}

func TestVerifyAdopt(t *testing.T) {
	const log = "p-0/00000000000000000000.log"
	for _, test := range []struct {
		name string
		fn   func(i int, h *record.Header)
		edit func(tree)
		want []string
	}{
		{"nothing", nil, nil, nil},
		{"idempotent producer", func(i int, h *record.Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 4, 0, int32(i) }, nil, []string{"damage adopt-producer " + log}},
		{"open transaction", func(i int, h *record.Header) {
			h.ProducerID, h.ProducerEpoch, h.BaseSequence = 4, 0, int32(i)
			h.Attributes |= record.AttrTransactional
		}, nil, []string{"damage adopt-open-txn p-0", "damage adopt-transactional " + log}},
		{"no epoch", func(_ int, h *record.Header) { h.LeaderEpoch = -1 }, nil, []string{"damage adopt-epoch " + log}},
		{"higher epoch", func(i int, h *record.Header) {
			if i == 5 {
				h.LeaderEpoch = 3
			}
		}, nil, []string{"damage adopt-epoch " + log, "notice epoch-mismatch " + log}},
		{"no leader epochs", nil, func(t tree) { delete(t, "p-0/"+state.EpochsFile) }, []string{"damage epochs-missing p-0/" + state.EpochsFile}},
		{"no partition.metadata", nil, func(t tree) { delete(t, "p-0/"+state.MetadataFile) }, []string{"damage metadata-missing p-0/" + state.MetadataFile}},
		{"no time index", nil, func(t tree) { delete(t, "p-0/00000000000000000000.timeindex") }, []string{"damage timeindex-missing p-0/00000000000000000000.timeindex"}},
		{"neither index", nil, func(t tree) {
			delete(t, "p-0/00000000000000000000.timeindex")
			delete(t, "p-0/00000000000000000000.index")
		}, []string{"notice index-missing p-0/00000000000000000000.index"}},
		{"foreign file", nil, func(t tree) { t["p-0/notes.txt"] = nil }, []string{"damage file-unknown p-0/notes.txt"}},
		{"swap", nil, func(t tree) { t["p-0/00000000000000000000.log.swap"] = nil }, nil},
		{"strange directory", nil, func(t tree) { t["lost+found/"] = nil }, []string{"damage dir-name lost+found"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fn := test.fn
			if fn == nil {
				fn = func(int, *record.Header) {}
			}
			p := plainLog(t, 6, fn)
			if test.edit != nil {
				test.edit(p)
			}
			found, sum := verify(t, p.Disk(t), VerifyOptions{Adopt: true})
			if test.name == "swap" {
				if sum.Damage != 1 {
					t.Errorf("%+v", found)
				}
				return
			}
			if got := kinds(found); !slices.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v\n%+v", got, test.want, found)
			}
		})
	}
	m := plainLog(t, 6, func(int, *record.Header) {}).Disk(t)
	if err := m.Chown("/data/"+log, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	if found, _ := verify(t, m, VerifyOptions{Adopt: true}); len(found) != 1 || found[0].What != FileOwner {
		t.Errorf("owner: %+v", found)
	}
}

// TestVerifyForgottenProducers: of producers whose batches all lie below the log's start a broker keeps nothing, so no snapshot is missing.
func TestVerifyForgottenProducers(t *testing.T) {
	tr := brokerTree(t, "codec-none-0")
	for name := range tr {
		if strings.HasSuffix(name, ".snapshot") {
			delete(tr, name)
		}
	}
	found, _ := verify(t, tr.Disk(t), VerifyOptions{})
	if got, want := kinds(found), []string{"notice snapshot-missing codec-none-0"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	all := batchesOf(t, tr["codec-none-0/00000000000000000000.log"])
	tr[state.LogStartFile] = fmt.Appendf(nil, "0\n1\ncodec-none 0 %d\n", all[len(all)-1].Header.NextOffset())
	if found, _ := verify(t, tr.Disk(t), VerifyOptions{}); len(found) != 0 {
		t.Errorf("with all below the start: %q", kinds(found))
	}
}
