package partition

import (
	"context"
	"errors"
	"math/rand"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func putExact(t *testing.T, l *Log, base storage.Offset, n int) error {
	t.Helper()
	var recs []storage.Record
	for i := range n {
		recs = append(recs, storage.Record{Offset: base + storage.Offset(i), Timestamp: 1000, Value: []byte("v")})
	}
	_, _, err := l.AppendBatches(context.Background(), [][]byte{encodeBatch(t, base, base+storage.Offset(n), recs).bytes}, false)
	return err
}

// What was synced is there after a crash, also behind offsets that were left out where the log rolled.
func TestExactGapAtRoll(t *testing.T) {
	for _, step := range []storage.Offset{10, 1 << 33} {
		d := newExact(t)
		d.o.Config.SegmentBytes = 200
		l := d.open(t)
		for i := range storage.Offset(5) {
			if err := putExact(t, l, 7+i*step, 3); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		end := snap(t, l).End()
		for _, unsynced := range []float64{0, 0.5, 1} {
			d.o.Clean = false // and the recovery point was not written down yet
			d.fs = d.fs.(*memfs.FS).Crash(rand.New(rand.NewSource(1)), memfs.CrashOptions{Unsynced: unsynced})
			d.attach()
			l = d.open(t)
			s := snap(t, l)
			if got := len(readFrom(t, s, s.Start())); s.End() != end || got != 15 {
				t.Fatalf("steps of %d: end %d, want %d; %d records, want 15; said %q", step, s.End(), end, got, d.said)
			}
		}
	}
}

// Offsets up to the highest there is can be written and read; behind it nothing is taken.
func TestHighestOffsets(t *testing.T) {
	const last = storage.Offset(1<<63 - 2)
	d := newExact(t)
	l := d.open(t)
	if err := putExact(t, l, last-4, 3); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, storage.Record{Value: []byte("x")}, storage.Record{Value: []byte("y")})
	if _, err := l.Append(context.Background(), []storage.Record{{Value: []byte("z")}}, 500); !errors.Is(err, storage.ErrOutOfRange) {
		t.Errorf("behind the last offset: got %v, want %v", err, storage.ErrOutOfRange)
	}
	for range 2 {
		if recs := readFrom(t, snap(t, l), last-4); len(recs) != 5 || recs[4].Offset != last {
			t.Fatalf("got %v", recs)
		}
		l = d.reopen(t, l)
	}
}
