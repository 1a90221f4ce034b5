package partition

import (
	"context"
	"errors"
	"math/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// written returns a disk with a log of n batches of one record each, closed in order, and the bytes of its first segment's log.
func written(t *testing.T, n int) (*disk, []byte) {
	t.Helper()
	d := newDisk(t, memfs.New())
	l := d.open(t)
	for range n {
		mustAppend(t, l, storage.Record{Timestamp: 1, Value: []byte(strings.Repeat("v", 60))})
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.o.RecoveryPoint, d.o.Clean = l.RecoveryPoint(), true
	d.attach()
	b, err := vfs.ReadFile(d.fs, l.path(state.FileName(0, state.ExtLog)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return d, b
}

func (d *disk) put(t *testing.T, name string, b []byte) {
	t.Helper()
	d.now += 5000
	putFile(t, d.fs, d.o.Dir+"/"+name, b)
	d.attach()
}

func (d *disk) foreign() {
	d.o.Writable, d.o.Reason, d.o.Final = false, "not ours", true
}

func agree(t *testing.T, s storage.Snapshot, when string) []storage.Record {
	t.Helper()
	recs, _ := readThrough(t, s, s.Start())
	for _, m := range []*storage.Measure{lines, kv, odd} {
		var sum int64
		for i := range recs {
			sum += m.Of(&recs[i])
		}
		if n, err := s.Extent(context.Background(), m, s.Start(), s.End()); err != nil || n != sum {
			t.Errorf("%s: %s has %d bytes (%v), %d are read", when, m.Name, n, err, sum)
		}
	}
	return recs
}

// What was summed up over a damaged log is not believed once the log is whole again, wherever the damage was and whoever keeps the sums.
func TestSizesFollowTheLog(t *testing.T) {
	for _, own := range []bool{true, false} {
		d, good := written(t, 20)
		d.fs.(*memfs.FS).SetClock(func() int64 { return d.now * 1e6 })
		if !own {
			d.foreign()
		}
		d.env.CacheDir = "/cache"
		name := state.FileName(0, state.ExtLog)
		size := len(good) / 20
		for _, at := range []int{0, 7, 19} {
			bad := append([]byte{}, good...)
			bad[at*size+size-3] ^= 1
			for _, b := range [][]byte{bad, good} {
				d.put(t, name, b)
				d.env.CacheDir = "/cache"
				l := d.open(t)
				if err := l.BuildSizes(context.Background()); err != nil {
					t.Fatal(err)
				}
				if recs := agree(t, snap(t, l), "damaged"); len(recs) < 19 {
					t.Errorf("own %v, batch %d: %d records", own, at, len(recs))
				}
				if err := l.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A log that was closed in order and has lost its end is not shown as if it had never had it, and its offsets are not given again.
func TestLostEnd(t *testing.T) {
	damages := map[string]func(b []byte) []byte{
		"cut between batches": func(b []byte) []byte { return b[:len(b)/2] },
		"cut inside a batch":  func(b []byte) []byte { return b[:len(b)-9] },
		"bit flipped":         func(b []byte) []byte { b[len(b)-9] ^= 4; return b },
		"garbage":             func(b []byte) []byte { return []byte(strings.Repeat("?", len(b))) },
		"zeros":               func(b []byte) []byte { return make([]byte, len(b)) },
		"nothing":             func([]byte) []byte { return nil },
	}
	for name, damage := range damages {
		for _, own := range []bool{true, false} {
			d, b := written(t, 20)
			if !own {
				d.foreign()
			}
			d.put(t, state.FileName(0, state.ExtLog), damage(b))
			l := d.open(t)
			if len(d.said) == 0 {
				t.Errorf("%s, own %v: nobody was told", name, own)
			}
			s := snap(t, l)
			if s.End() != 20 {
				t.Errorf("%s, own %v: end %d", name, own, s.End())
			}
			agree(t, s, name)
			if own {
				if a := mustAppend(t, l, storage.Record{Value: []byte("new")}); a.First != 20 {
					t.Errorf("%s: offset %d was given again", name, a.First)
				}
			}
		}
	}
}

// Something else in the place of a segment's log is an error where it stands; the segments beside it can be read.
func TestOddSegment(t *testing.T) {
	for _, tc := range []string{"directory", "too large"} {
		b, d := newBroker(t)
		for range 3 {
			b.append(5)
			b.roll()
		}
		b.append(5)
		name := b.path(5, state.ExtLog)
		if tc == "directory" {
			if err := errors.Join(b.fs.Remove(name), b.fs.Mkdir(name, 0o755)); err != nil {
				t.Fatal(err)
			}
		} else {
			f, err := b.fs.OpenFile(name, os.O_RDWR, 0)
			if err == nil {
				err = errors.Join(f.Truncate(3<<30), f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d.now += 10000
		l := d.open(t)
		s := snap(t, l)
		c := s.Records(0)
		seen, failed := map[storage.Offset]bool{}, 0
		for range 100 {
			r, err := c.Next(context.Background())
			if err == nil {
				seen[r.Offset] = true
			} else {
				failed++
			}
			if err != nil || tc == "too large" && seen[9] { // behind that lie 2 GiB of zeros
				c.Close()
				c = s.Records(max(c.Offset(), 10))
			}
			if seen[19] {
				break
			}
		}
		c.Close()
		for _, o := range []storage.Offset{0, 4, 10, 19} {
			if !seen[o] {
				t.Errorf("%s: offset %d was not read", tc, o)
			}
		}
		if failed == 0 && tc == "directory" {
			t.Errorf("%s: no reader was told", tc)
		}
		if len(d.said) == 0 {
			t.Errorf("%s: nothing was reported", tc)
		}
	}
}

// Where segments overlap, as in a copy that was put together wrongly, each offset is shown once, and sizes agree with what is read.
func TestOverlappingSegments(t *testing.T) {
	b, d := newBroker(t)
	for range 6 {
		b.append(4)
	}
	whole, err := vfs.ReadFile(b.fs, b.path(0, state.ExtLog), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at, n := 0, storage.Offset(0)
	for n < 10 {
		h, err := record.ParseHeader(whole[at:])
		if err != nil {
			t.Fatal(err)
		}
		at, n = at+int(h.Size()), h.NextOffset()
	}
	for _, ext := range []string{state.ExtIndex, state.ExtTimeIndex} {
		putFile(t, b.fs, b.path(n, ext), nil)
	}
	putFile(t, b.fs, b.path(n, state.ExtLog), whole[at:])
	d.now += 10000
	l := d.open(t)
	s := snap(t, l)
	if err := sameRecords(agree(t, s, "overlapping"), b.recs); err != nil {
		t.Fatal(err)
	}
	if err := checkSnapshot(s, b.recs); err != nil {
		t.Fatal(err)
	}
}

// A directory that has been quiet is not in the middle of a compaction's swap: nobody waits for one to end.
func TestQuietDirectoryIsNotWaitedFor(t *testing.T) {
	b, d := newBroker(t)
	b.append(3)
	if err := b.fs.Remove(b.path(0, state.ExtIndex)); err != nil {
		t.Fatal(err)
	}
	d.now += 10000
	d.env.Sleep = func(context.Context, time.Duration) error {
		t.Error("slept")
		return nil
	}
	b.check(d.open(t), "without an index")
}

// Bytes that were given and are not a batch are the giver's mistake, not damage on disk.
func TestInvalidBatchIsNotCorruption(t *testing.T) {
	_, good := written(t, 1)
	d := newDisk(t, memfs.New())
	l := d.open(t)
	for at := range good {
		bad := append([]byte{}, good...)
		bad[at] ^= 0x10
		_, _, err := l.AppendBatches(context.Background(), [][]byte{bad}, false)
		if err == nil {
			if at >= 16 { // offset and epoch are assigned anew and not under the checksum
				t.Errorf("byte %d: taken", at)
			}
			continue
		}
		if !errors.Is(err, storage.ErrInvalidRecord) && !errors.Is(err, storage.ErrTooLarge) || errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

// A log start that lies above all that the log ever held is a damaged checkpoint. Nothing is removed by it.
func TestImpossibleLogStart(t *testing.T) {
	for _, clean := range []bool{true, false} {
		d := newDisk(t, memfs.New())
		l := d.open(t)
		for range 200 {
			mustAppend(t, l, storage.Record{Timestamp: 1, Value: []byte(strings.Repeat("v", 60))})
		}
		if len(l.snap.Load().closed) < 3 {
			t.Fatal("not enough segments")
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		d.o.RecoveryPoint, d.o.Clean, d.o.LogStart = l.RecoveryPoint(), clean, 1<<40
		d.attach()
		l = d.open(t)
		s := snap(t, l)
		if s.Start() != 0 || s.End() != 200 || len(readFrom(t, s, 0)) != 200 {
			t.Errorf("clean %v: %d to %d, %d records", clean, s.Start(), s.End(), len(readFrom(t, s, s.Start())))
		}
		if len(d.said) == 0 {
			t.Error("nothing was reported")
		}
	}
}

// Whatever a crash leaves of a start that was moved to the end, nothing that was deleted comes back and no offset is given again, even if no recovery point
// had been written down.
func TestCrashAfterStartAtTheEnd(t *testing.T) {
	for seed := range 200 {
		d := newDisk(t, memfs.New())
		l := d.open(t)
		for range 120 {
			mustAppend(t, l, storage.Record{Timestamp: 1, Value: []byte(strings.Repeat("v", 60))})
		}
		if err := l.SetStart(context.Background(), 120); err != nil {
			t.Fatal(err)
		}
		d.fs = d.fs.(*memfs.FS).Crash(rand.New(rand.NewSource(int64(seed))), memfs.CrashOptions{Unsynced: 0.5})
		d.o.LogStart, d.o.RecoveryPoint, d.o.Clean = 120, 0, false
		d.attach()
		if s := snap(t, d.open(t)); s.Start() != 120 || s.End() != 120 {
			t.Fatalf("seed %d: %d to %d", seed, s.Start(), s.End())
		}
	}
}
