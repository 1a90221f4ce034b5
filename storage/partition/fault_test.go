package partition

import (
	"context"
	"errors"
	"math/rand"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func newFaultyDisk(tb testing.TB) (*disk, *faultfs.FS) {
	tb.Helper()
	ff := faultfs.New(memfs.New())
	return newDisk(tb, ff), ff
}

func failSyncs(ff *faultfs.FS, err error) {
	ff.Hook(func(op faultfs.Op, name string) error {
		if op == faultfs.OpSync && strings.HasSuffix(name, ".log") {
			return err
		}
		return nil
	})
}

// Whatever call to the disk fails, an append that succeeded is there afterwards, one that failed is not, and the directory opens again.
func TestEachCallFails(t *testing.T) {
	errDisk := errors.New("disk says no")
	for _, mode := range []string{"fail", "short"} {
		for i := 0; ; i++ {
			d, ff := newFaultyDisk(t)
			l := d.open(t)
			mustAppend(t, l, storage.Record{Value: []byte("first")})
			ff.Reset()
			if mode == "fail" {
				ff.FailAt(i, errDisk)
			} else {
				ff.ShortAt(i)
			}
			r := rand.New(rand.NewSource(int64(7)))
			acked := 1
			for range 12 {
				recs := randomRecords(r, 6)
				if a, err := l.Append(context.Background(), recs, 500); err == nil {
					if int(a.First) != acked {
						t.Fatalf("%s %d: records got offset %d, want %d", mode, i, a.First, acked)
					}
					acked += len(recs)
				}
				_ = l.Sync(context.Background())
				_ = l.Maintain(context.Background())
			}
			_ = l.SetStart(context.Background(), 20)
			closed := l.Close(context.Background())
			done := ff.Calls() <= i
			ff.Reset()
			if got := len(readFrom(t, l.snap.Load(), l.snap.Load().at(0).Base)) + int(l.snap.Load().at(0).Base); got != acked {
				t.Fatalf("%s %d: %d records before reopening, want %d (%v)", mode, i, got, acked, ff.Log())
			}
			d.o.RecoveryPoint = l.RecoveryPoint()
			d.o.LogStart, _ = l.LogStart()
			d.o.Clean = closed == nil
			d.attach()
			l = d.open(t)
			s := snap(t, l)
			if got := int(s.End()); got != acked {
				t.Fatalf("%s %d: end %d after reopening, want %d; closed with %v", mode, i, got, acked, closed)
			}
			if got := len(readFrom(t, s, s.Start())); got != acked-int(s.Start()) {
				t.Fatalf("%s %d: %d records from %d on, want %d", mode, i, got, s.Start(), acked-int(s.Start()))
			}
			checkFiles(t, d, l, false)
			if done {
				break
			}
		}
	}
}
