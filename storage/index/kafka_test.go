package index

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/test/fixture"
)

// batch is what an index needs of a record batch.
type batch struct {
	first, last storage.Offset
	maxTs       int64
	pos         storage.Pos
	size        int64
}

// batchesOf walks the headers of a log of format v2.
func batchesOf(tb testing.TB, log []byte) []batch {
	tb.Helper()
	var out []batch
	for pos := 0; pos+61 <= len(log); {
		h := log[pos:]
		size := int(12 + i32(h[8:]))
		if size == 12 {
			break // preallocated
		}
		if h[16] != 2 || size < 61 || pos+size > len(log) {
			tb.Fatalf("no batch at %d", pos)
		}
		first := storage.Offset(i64(h))
		out = append(out, batch{first, first + storage.Offset(i32(h[23:])), i64(h[35:]), storage.Pos(pos), int64(size)})
		pos += size
	}
	return out
}

// build feeds a Builder and returns both indexes without the closing entry.
func build(tb testing.TB, b *Builder, batches []batch) (offsets, times []byte) {
	tb.Helper()
	for _, x := range batches {
		addOffset, oe, addTime, te := b.Add(x.last, x.maxTs, x.pos, x.size)
		var err error
		if addOffset {
			if offsets, err = AppendOffsetEntry(offsets, b.Base, oe); err != nil {
				tb.Fatal(err)
			}
		}
		if addTime {
			if times, err = AppendTimeEntry(times, b.Base, te); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return offsets, times
}

// closed returns the time index with the closing entry.
func closed(tb testing.TB, b *Builder, times []byte) []byte {
	tb.Helper()
	te, ok := b.Close()
	if !ok {
		return times
	}
	times, err := AppendTimeEntry(bytes.Clone(times), b.Base, te)
	if err != nil {
		tb.Fatal(err)
	}
	return times
}

func count(tb testing.TB, f func(io.ReaderAt, int64) (int, error), b []byte) int {
	tb.Helper()
	n, err := f(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func mustRead(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// segments calls f for each segment of the log directories below root.
func segments(t *testing.T, root string, f func(t *testing.T, stem string, base storage.Offset, interval int64)) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(root, "*", "*", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs in %s: %v", root, err)
	}
	for _, log := range logs {
		stem := strings.TrimSuffix(log, ".log")
		base, err := strconv.ParseInt(filepath.Base(stem), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		topic := filepath.Base(filepath.Dir(log))
		interval := int64(4096)
		if topic == "times-unordered-0" {
			interval = 200
		}
		t.Run(topic+"/"+filepath.Base(stem), func(t *testing.T) { f(t, stem, storage.Offset(base), interval) })
	}
}

func TestRebuildEqualsBroker(t *testing.T) {
	entries := 0
	segments(t, fixture.Unpack(t, "clean-4.4.0"), func(t *testing.T, stem string, base storage.Offset, interval int64) {
		t.Helper()
		log := mustRead(t, stem+".log")
		b := NewBuilder(base, interval, 10<<20)
		offsets, times := build(t, &b, batchesOf(t, log))
		// A broker leaves the indexes of its metadata log preallocated even at an orderly stop.
		trim := strings.Contains(stem, "__cluster_metadata-0")
		want := mustRead(t, stem+".index")
		if trim {
			want = want[:OffsetEntrySize*count(t, CountOffsets, want)]
		}
		if !bytes.Equal(offsets, want) {
			t.Errorf("offset index: got %.1000x, want %.1000x", offsets, want)
		}
		want = mustRead(t, stem+".timeindex")
		got := closed(t, &b, times)
		if trim {
			want = want[:TimeEntrySize*count(t, CountTimes, want)]
			got = times
		}
		if !bytes.Equal(got, want) {
			t.Errorf("time index: got %.1000x, want %.1000x", got, want)
		}
		no, nt := len(offsets)/OffsetEntrySize, len(want)/TimeEntrySize
		entries += no + nt
		if err := CheckOffsets(bytes.NewReader(offsets), no, base, int64(len(log))); err != nil {
			t.Error(err)
		}
		if err := checkTimes(bytes.NewReader(want), nt, base, 1<<62); err != nil {
			t.Error(err)
		}
		// What a rebuild gives of a closed segment that goes on.
		kept, err := TimesKept(Offsets{bytes.NewReader(offsets), no, base}, Times{bytes.NewReader(want), nt, base})
		if err != nil || kept != len(times)/TimeEntrySize {
			t.Errorf("time entries kept: got %d, %v, want %d", kept, err, len(times)/TimeEntrySize)
		}
	})
	if entries < 700 {
		t.Errorf("only %d entries were compared", entries)
	}
}

func TestPreallocatedIndexes(t *testing.T) {
	for _, name := range []string{"live-4.4.0", "killed-4.4.0"} {
		t.Run(name, func(t *testing.T) {
			segments(t, fixture.Unpack(t, name), func(t *testing.T, stem string, base storage.Offset, interval int64) {
				t.Helper()
				log := mustRead(t, stem+".log")
				b := NewBuilder(base, interval, 10<<20)
				offsets, times := build(t, &b, batchesOf(t, log))
				for _, x := range []struct {
					ext   string
					entry int
					count func(f *os.File, size int64) (int, error)
					want  [][]byte
				}{
					{".index", OffsetEntrySize, func(f *os.File, size int64) (int, error) { return CountOffsets(f, size) }, [][]byte{offsets}},
					{".timeindex", TimeEntrySize, func(f *os.File, size int64) (int, error) { return CountTimes(f, size) }, [][]byte{times, closed(t, &b, times)}},
				} {
					f, err := os.Open(stem + x.ext)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					i, err := f.Stat()
					if err != nil {
						t.Fatal(err)
					}
					n, err := x.count(f, i.Size())
					if err != nil {
						t.Fatal(err)
					}
					got := make([]byte, n*x.entry)
					if err := readFull(f, got, 0); err != nil {
						t.Fatal(err)
					}
					ok := false
					for _, want := range x.want {
						ok = ok || bytes.Equal(got, want)
					}
					if !ok {
						t.Errorf("%s of %d bytes: got %.1000x, want one of %.1000x", x.ext, i.Size(), got, x.want)
					}
					if err := CheckPadding(f, int64(len(got)), i.Size()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestTxnIndexOfBroker(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean", "*", "*.txnindex"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want one transaction index", files, err)
	}
	raw := mustRead(t, files[0])
	entries, err := ParseTxns(raw, 10)
	if err != nil || len(entries) != 5 {
		t.Fatalf("got %d entries, %v, want 5", len(entries), err)
	}
	var again []byte
	for _, e := range entries {
		again = AppendTxnEntry(again, e)
	}
	if !bytes.Equal(again, raw) {
		t.Errorf("written again: got %x, want %x", again, raw)
	}
	// Each names an abort marker: a transactional control batch of that producer.
	log := mustRead(t, strings.TrimSuffix(files[0], ".txnindex")+".log")
	for _, e := range entries {
		found := false
		for _, b := range batchesOf(t, log) {
			h := log[b.pos:]
			found = found || b.first == e.Last && i64(h[43:]) == e.ProducerID && binary.BigEndian.Uint16(h[21:])&0x30 == 0x30
		}
		if !found {
			t.Errorf("%+v: no marker", e)
		}
	}
}
