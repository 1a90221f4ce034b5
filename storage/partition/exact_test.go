package partition

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// brokersFiles reads the files of a partition that a broker wrote.
func brokersFiles(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			tb.Fatal(err)
		}
	}
	return files
}

// batchesOf cuts the logs among files into their batches, by segment.
func batchesOf(tb testing.TB, files map[string][]byte) [][][]byte {
	tb.Helper()
	var out [][][]byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) != state.ExtLog {
			continue
		}
		var seg [][]byte
		for b := files[name]; len(b) > 0; {
			f, err := record.ParseFrame(b)
			if err != nil {
				tb.Fatal(err)
			}
			seg = append(seg, bytes.Clone(b[:f.Size]))
			b = b[f.Size:]
		}
		out = append(out, seg)
	}
	return out
}

// withoutEpochs blanks the leader epochs of a log.
func withoutEpochs(log []byte) []byte {
	log = bytes.Clone(log)
	for b := log; len(b) > 0; {
		n := 12 + int(binary.BigEndian.Uint32(b[8:]))
		clear(b[12:16])
		b = b[n:]
	}
	return log
}

func readDisk(tb testing.TB, d *disk) map[string][]byte {
	tb.Helper()
	entries, err := d.fs.ReadDir(d.o.Dir)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name], err = vfs.ReadFile(d.fs, d.o.Dir+"/"+e.Name, 1<<30); err != nil {
			tb.Fatal(err)
		}
	}
	return files
}

// sameProducers compares two producer snapshots, whose order says nothing.
func sameProducers(tb testing.TB, name string, got, want []byte) {
	tb.Helper()
	byID := func(b []byte) map[int64]state.ProducerEntry {
		list, err := state.DecodeSnapshot(b)
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		m := map[int64]state.ProducerEntry{}
		for _, e := range list {
			m[e.ProducerID] = e
		}
		return m
	}
	if g, w := byID(got), byID(want); !maps.Equal(g, w) {
		tb.Errorf("%s: got %+v, want %+v", name, g, w)
	}
}

func newExact(tb testing.TB) *disk {
	tb.Helper()
	d := newDisk(tb, memfs.New())
	d.o.Config = storage.DefaultTopicConfig()
	d.o.Config.SegmentMs = 1 << 60
	d.o.Exact = true
	return d
}

// TestExactEqualsBrokers copies partitions batch by batch: log, indexes and producers are what their broker made of them.
func TestExactEqualsBrokers(t *testing.T) {
	root := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	for _, name := range []string{
		"segments-0", "transactions-0", "codec-none-0", "codec-gzip-0", "codec-snappy-0", "codec-lz4-0", "codec-zstd-0", "log-append-time-0", "times-unordered-0",
		"start-moved-0", "mixed.with_dots-and-9-0", "__transaction_state-0", "compacted-0",
	} {
		t.Run(name, func(t *testing.T) {
			want := brokersFiles(t, filepath.Join(root, name))
			d := newExact(t)
			if name == "times-unordered-0" {
				d.o.Config.IndexIntervalBytes = 200 // a setting of the topic
			}
			l := d.open(t)
			for i, seg := range batchesOf(t, want) {
				for j, b := range seg {
					l.o.Config.SegmentBytes = 1 << 30
					if i > 0 && j == 0 {
						l.o.Config.SegmentBytes = 1 // roll where the broker did, whatever made it
					}
					if _, _, err := l.AppendBatches(context.Background(), [][]byte{b}, true); err != nil {
						t.Fatalf("batch %d of segment %d: %v", j, i, err)
					}
				}
			}
			if err := l.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := readDisk(t, d)
			for file, w := range want {
				g, there := got[file]
				switch filepath.Ext(file) {
				case state.ExtLog:
					if !bytes.Equal(withoutEpochs(g), withoutEpochs(w)) {
						t.Errorf("%s: got %d bytes, want %d, or others", file, len(g), len(w))
					}
				case state.ExtIndex, state.ExtTimeIndex, state.ExtTxnIndex:
					if !there || !bytes.Equal(g, w) {
						t.Errorf("%s: got %d bytes (there %t), want %d, or others", file, len(g), there, len(w))
					}
				case state.ExtSnapshot:
					if name == "compacted-0" {
						continue // what compaction took away nobody can tell
					}
					if !there {
						t.Errorf("%s is missing", file)
						continue
					}
					sameProducers(t, file, g, w)
				}
			}
			for file := range got {
				if _, there := want[file]; !there && filepath.Ext(file) != state.ExtSizeIndex {
					t.Errorf("%s is not the broker's", file)
				}
			}
		})
	}
}

// data makes a batch of n records of a producer.
func producedBatch(tb testing.TB, base storage.Offset, n int, pid int64, epoch int16, seq int32, txn bool) []byte {
	tb.Helper()
	recs := make([]storage.Record, n)
	for i := range recs {
		recs[i] = storage.Record{Offset: base + storage.Offset(i), Timestamp: 1000 + int64(base) + int64(i), Value: []byte("v")}
	}
	h := record.NewHeader(recs, 3)
	h.ProducerID, h.ProducerEpoch, h.BaseSequence = pid, epoch, seq
	if txn {
		h.Attributes |= record.AttrTransactional
	}
	b, err := record.Encode(nil, h, recs, record.None)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func markerBatch(tb testing.TB, base storage.Offset, pid int64, epoch int16, kind record.ControlType) []byte {
	tb.Helper()
	recs := []storage.Record{{Offset: base, Timestamp: 5000 + int64(base), Key: []byte{0, 0, 0, byte(kind)}, Value: []byte{0, 0, 0, 0, 0, 7}}}
	h := record.NewHeader(recs, 3)
	h.ProducerID, h.ProducerEpoch = pid, epoch
	h.Attributes |= record.AttrTransactional | record.AttrControl
	b, err := record.Encode(nil, h, recs, record.None)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func appendBatches(tb testing.TB, l *Log, batches ...[]byte) storage.Appended {
	tb.Helper()
	a, _, err := l.AppendBatches(context.Background(), batches, true)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestExactOffsets(t *testing.T) {
	d := newExact(t)
	l := d.open(t)
	if a := appendBatches(t, l, producedBatch(t, 100, 3, -1, -1, -1, false)); a.Next != 103 {
		t.Errorf("a gap of the source: got %+v, want the end at 103", a)
	}
	if a := appendBatches(t, l, producedBatch(t, 50, 2, -1, -1, -1, false)); a.First != 103 || a.Next != 105 {
		t.Errorf("an offset that is taken: got %+v, want 103 to 105", a)
	}
	if a := appendBatches(t, l, producedBatch(t, 1<<40, 1, -1, -1, -1, false)); a.Next != 1<<40+1 {
		t.Errorf("an offset far ahead: got %+v", a)
	}
	l = d.reopen(t, l)
	recs := readFrom(t, snap(t, l), 0)
	var got []storage.Offset
	for _, r := range recs {
		got = append(got, r.Offset)
	}
	if want := []storage.Offset{100, 101, 102, 103, 104, 1 << 40}; !slices.Equal(got, want) {
		t.Errorf("got offsets %v, want %v", got, want)
	}
}

func TestExactRefusesWhatStopsABroker(t *testing.T) {
	d := newExact(t)
	l := d.open(t)
	appendBatches(t, l, producedBatch(t, 0, 2, 9, 0, 0, true))
	before := readDisk(t, d)
	_, _, err := l.AppendBatches(context.Background(), [][]byte{producedBatch(t, 2, 1, 8, 0, 0, true), producedBatch(t, 3, 1, 9, 0, 2, false)}, true)
	if !errors.Is(err, storage.ErrInvalidRecord) {
		t.Errorf("a plain batch within a transaction: got %v, want %v", err, storage.ErrInvalidRecord)
	}
	for name, b := range readDisk(t, d) {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("the refused append changed %s", name)
		}
	}
	appendBatches(t, l, markerBatch(t, 2, 9, 0, record.Abort), producedBatch(t, 3, 1, 9, 0, 2, false))
	if got := len(l.producers.m); got != 1 {
		t.Errorf("got %d producers, want 1: what was refused counts", got)
	}
}

// TestExactRecovers crashes at random: transaction indexes and producers are then what the batches that are left say.
func TestExactRecovers(t *testing.T) {
	for seed := range int64(20) {
		r := rand.New(rand.NewSource(seed))
		d := newExact(t)
		d.o.Config.SegmentBytes = 900
		l := d.open(t)
		open := map[int64]bool{}
		seq := map[int64]int32{}
		for range 60 {
			end := snap(t, l).End()
			pid := r.Int63n(4)
			switch {
			case open[pid] && r.Intn(3) == 0:
				appendBatches(t, l, markerBatch(t, end, pid, 0, record.ControlType(r.Intn(2))))
				open[pid] = false
			default:
				n := 1 + r.Intn(3)
				appendBatches(t, l, producedBatch(t, end, n, pid, 0, seq[pid], true))
				open[pid], seq[pid] = true, seq[pid]+int32(n)
			}
			if r.Intn(10) == 0 {
				if err := l.Sync(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if r.Intn(20) == 0 {
				if err := l.Maintain(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		d.o.Exact = r.Intn(2) == 0 // the log tells by itself that producers are kept
		l = d.crash(t, l, r, r.Float64())
		if l.producers == nil {
			if end := snap(t, l).End(); d.o.Exact || end > 0 && len(l.whole.closed) > 0 {
				t.Fatalf("seed %d: producers are not kept", seed)
			}
			continue
		}
		end := snap(t, l).End()
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		files := readDisk(t, d)
		// Written anew, batch by batch, into a log of its own.
		fresh := newExact(t)
		w := fresh.open(t)
		for i, seg := range batchesOf(t, files) {
			for j, b := range seg {
				w.o.Config.SegmentBytes = 1 << 30
				if i > 0 && j == 0 {
					w.o.Config.SegmentBytes = 1
				}
				appendBatches(t, w, b)
			}
		}
		if err := w.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := readDisk(t, fresh)
		for name, b := range want {
			if filepath.Ext(name) == state.ExtTxnIndex && !bytes.Equal(files[name], b) {
				t.Errorf("seed %d: %s: got %d bytes, want %d, or others", seed, name, len(files[name]), len(b))
			}
		}
		for name := range files {
			if filepath.Ext(name) == state.ExtTxnIndex && want[name] == nil {
				t.Errorf("seed %d: %s has no marker", seed, name)
			}
		}
		if end > 0 {
			name := state.FileName(end, state.ExtSnapshot)
			sameProducers(t, name, files[name], want[name])
		}
	}
}
