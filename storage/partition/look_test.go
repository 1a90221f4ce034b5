package partition

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// A look that ends early, at whatever point, hides nothing from the next one.
func TestInterruptedLook(t *testing.T) {
	for _, committed := range []bool{false, true} {
		for _, roll := range []bool{false, true} {
			for n := 0; ; n++ {
				b, d := newBroker(t)
				d.o.Committed = committed
				b.append(3)
				d.now += 10000
				l := d.open(t)
				if roll {
					b.roll()
				}
				for range 260 { // enough that the context is asked while their transactions are looked for
					b.append(1)
				}
				d.now += 10000
				_, err := l.Snapshot(&countdown{context.Background(), n})
				if s := snap(t, l); s.End() != b.next {
					t.Fatalf("committed %v, roll %v, interrupted at %d: end %d, want %d", committed, roll, n, s.End(), b.next)
				}
				if err == nil {
					break
				}
				if n > 10 {
					n += 9
				}
			}
		}
	}
}

// A log that is cut in a segment which something followed, and written anew, perhaps behind where it ended before, is another from there on.
func TestCutInClosedSegment(t *testing.T) {
	for _, more := range []int{2, 30} {
		for _, roll := range []bool{false, true} {
			b, d := newBroker(t)
			m := &model{t: t, b: b, segs: []*mseg{{base: 0}}}
			m.append(3)
			m.append(3)
			m.append(4)
			m.roll()
			m.append(4)
			d.now += 10000
			l := d.open(t)
			before := snap(t, l)
			if err := checkSnapshot(before, m.recs()); err != nil {
				t.Fatal(err)
			}
			m.cut(0, 1)
			m.append(4)
			if roll {
				m.roll()
			}
			m.append(more)
			d.now += 10000
			after := snap(t, l)
			if got := after.Unchanged(before.Generation()); got > 3 || after.Generation() == before.Generation() {
				t.Errorf("%d more, roll %v: unchanged below %d, the log was cut at 3; generation %d, was %d", more, roll, got, after.Generation(), before.Generation())
			}
			if err := sameRecords(readFrom(t, after, 0), m.recs()); err != nil {
				t.Errorf("%d more, roll %v: %v", more, roll, err)
			}
			if err := checkSnapshot(after, m.recs()); err != nil {
				t.Errorf("%d more, roll %v: %v", more, roll, err)
			}
		}
	}
}

// A checkpointed start that moves is another generation, whatever else has happened, and never above the end.
func TestStartMovesWithListing(t *testing.T) {
	b, d := newBroker(t)
	start := storage.Offset(0)
	d.o.LogStartNow = func() storage.Offset { return start }
	b.append(3)
	b.append(3)
	d.now += 10000
	l := d.open(t)
	before := snap(t, l)
	start = 3
	putFile(t, b.fs, b.dir+"/x", nil)
	d.now++
	if s := snap(t, l); s.Start() != 3 || s.Generation() == before.Generation() {
		t.Errorf("start %d, want 3; generation %d, was %d", s.Start(), s.Generation(), before.Generation())
	}
	start = 100
	putFile(t, b.fs, b.dir+"/y", nil)
	d.now++
	if s := snap(t, l); s.Start() != s.End() {
		t.Errorf("start %d, want the end, %d", s.Start(), s.End())
	}
}

// Segments that are deleted, added or merged while the directory is listed leave no hole in the log.
func TestListingWhileSegmentsComeAndGo(t *testing.T) {
	for name, do := range map[string]func(m *model){
		"deleted": func(m *model) { m.rm(0); m.rm(6) },
		"rolled":  func(m *model) { m.roll(); m.append(6); m.roll(); m.append(6) },
		"merged": func(m *model) {
			swap := m.b.path(6, state.ExtLog) + state.SuffixSwap
			putFile(t, m.b.fs, swap, append(m.segs[1].bytes(), m.segs[2].bytes()...))
			if err := m.b.fs.Rename(swap, m.b.path(6, state.ExtLog)); err != nil {
				t.Fatal(err)
			}
			m.rm(12)
		},
	} {
		for n := 0; ; n++ {
			b, d := newBroker(t)
			m := &model{t: t, b: b, segs: []*mseg{{base: 0}}}
			m.append(6)
			for range 4 {
				m.roll()
				m.append(6)
			}
			f := faultfs.New(b.fs)
			d.fs = f
			sleep := d.env.Sleep
			d.attach()
			d.env.Sleep = sleep
			l := d.open(t)
			putFile(t, b.fs, b.dir+"/x", nil)
			calls := 0
			f.Hook(func(faultfs.Op, string) error {
				if calls++; calls == n+1 {
					do(m)
				}
				return nil
			})
			looked, err := l.Snapshot(context.Background())
			f.Hook(nil)
			if err != nil {
				t.Fatalf("%s before call %d: %v", name, n, err)
			}
			s, one := looked.(*snapshot), int64(len(m.segs[0].bytes())) // the records of later segments are no smaller
			for i, v := range s.closed {
				if holds := int64(v.Next-v.Base) / 6 * one; int64(v.Size) < holds {
					t.Errorf("%s before call %d: segment %d has %d bytes, for offsets %d to %d it needs %d", name, n, i, v.Size, v.Base, v.Next, holds)
				}
			}
			if calls <= n {
				break
			}
		}
	}
}

// A raw file is the one that has the name now.
func TestRawFileReplaced(t *testing.T) {
	b, d := newBroker(t)
	b.append(3)
	l := d.open(t)
	name := b.dir + "/" + state.EpochsFile
	for _, want := range []string{"0\n1\n0 0\n", "0\n2\n0 0\n1 3\n"} {
		putFile(t, b.fs, name+vfs.TempSuffix, []byte(want))
		if err := b.fs.Rename(name+vfs.TempSuffix, name); err != nil {
			t.Fatal(err)
		}
		f, err := l.OpenFile(context.Background(), state.EpochsFile)
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 100)
		n, _ := f.ReadAt(p, 0)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := string(p[:n]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A segment that is compacted between a look and its opening is no damage: the reader goes on in what has replaced it.
func TestSwapBetweenLookAndOpen(t *testing.T) {
	b, d := newBroker(t)
	m := &model{t: t, b: b, segs: []*mseg{{base: 0}}}
	m.append(6)
	m.roll()
	for range 4 {
		m.append(6)
	}
	all := m.recs()
	m.roll()
	m.append(2)
	d.now += 10000
	l := d.open(t)
	s := snap(t, l)
	keep := all[12:13]
	h := record.NewHeader(keep, 0)
	h.BaseOffset, h.LastOffsetDelta = 6, 23
	p, err := record.Encode(nil, h, keep, record.None)
	if err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		content := p
		if ext != state.ExtLog {
			content = nil
		}
		putFile(t, b.fs, b.path(6, ext)+state.SuffixSwap, content)
		if err := errors.Join(b.fs.Rename(b.path(6, ext), b.path(6, ext)+state.SuffixDeleted), b.fs.Rename(b.path(6, ext)+state.SuffixSwap, b.path(6, ext))); err != nil {
			t.Fatal(err)
		}
	}
	d.now++
	m.append(2)
	want := append(append(append([]storage.Record{}, all[:6]...), keep...), m.recs()[30:32]...)
	if err := sameRecords(readFrom(t, s, 0), want); err != nil {
		t.Error(err)
	}
	if len(d.said) > 0 {
		t.Errorf("reported: %q", d.said)
	}
}

// Who opens a segment while it is being removed does not leave it open in the cache.
func TestRemovedSegmentIsLetGo(t *testing.T) {
	f := faultfs.New(memfs.New())
	d := newDisk(t, f)
	l := d.open(t)
	for range 30 {
		mustAppend(t, l, storage.Record{Timestamp: 1, Value: make([]byte, 300)})
	}
	s := snap(t, l)
	f.Hook(func(op faultfs.Op, name string) error {
		if op == faultfs.OpRemove && strings.HasSuffix(name, "00000000000000000000.log") {
			_ = readFrom(t, s, 0)
		}
		return nil
	})
	if err := l.SetStart(context.Background(), s.End()); err != nil {
		t.Fatal(err)
	}
	if h, err := d.files.Open("/data/t-0/00000000000000000000.log", os.O_RDONLY, 0); err == nil {
		h.Unpin()
		t.Error("the removed log is still open")
	}
}

// Names are not said to last while the sync of them is still under way.
func TestSyncOfNamesUnderWay(t *testing.T) {
	f := faultfs.New(memfs.New())
	d := newDisk(t, f)
	l := d.open(t)
	mustAppend(t, l, storage.Record{Timestamp: 1, Value: []byte("v")})
	if err := l.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	end := snap(t, l).End()
	if err := l.rollEmptied(end); err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.Hook(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSyncDir {
			once.Do(func() {
				close(begun)
				<-goOn
			})
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- l.Sync(context.Background()) }()
	<-begun
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that who has to wait says so
	if err := l.syncTo(ctx, end); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a wait", err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Run under the race detector: why a log of another's is refused is found out while others ask about it.
func TestAskedWhileExamined(t *testing.T) {
	b, d := newBroker(t)
	b.append(3)
	b.write(b.path(0, state.ExtLog), []byte("torn"), b.pos)
	d.o.Writable, d.o.Foreign, d.o.Reason = true, true, ""
	l := d.open(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 1000 {
			_ = l.Status()
			_ = l.CheckAppend(context.Background(), &storage.Record{})
		}
	})
	if err := l.Writable(context.Background()); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("got %v, want %v", err, storage.ErrReadOnly)
	}
	wg.Wait()
}
