package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// broker writes a log's directory as a broker does, while a Log follows it.
type broker struct {
	tb   testing.TB
	fs   *memfs.FS
	dir  string
	base storage.Offset // of the active segment
	pos  int64          // end of the active segment
	next storage.Offset
	recs []storage.Record // all that were ever written and not cut
}

func newBroker(tb testing.TB) (*broker, *disk) {
	tb.Helper()
	m := memfs.New()
	d := newDisk(tb, m)
	m.SetClock(func() int64 { return d.now * 1e6 })
	d.o.Writable, d.o.Reason = false, "a broker's"
	d.env.Sleep = func(context.Context, time.Duration) error { d.now += 5; return nil }
	b := &broker{tb: tb, fs: m, dir: d.o.Dir}
	b.create(0)
	return b, d
}

func (b *broker) path(base storage.Offset, ext string) string {
	return b.dir + "/" + state.FileName(base, ext)
}

func (b *broker) create(base storage.Offset) {
	b.tb.Helper()
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		putFile(b.tb, b.fs, b.path(base, ext), nil)
	}
	b.base, b.pos = base, 0
}

func (b *broker) write(name string, p []byte, pos int64) {
	b.tb.Helper()
	f, err := b.fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		b.tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(p, pos); err != nil {
		b.tb.Fatal(err)
	}
}

func (b *broker) batch(n int, tag string) []byte {
	b.tb.Helper()
	var builder record.Builder
	builder.Begin(nil, b.next, 0)
	for i := range n {
		r := storage.Record{Offset: b.next + storage.Offset(i), Timestamp: 1000 + int64(b.next) + int64(i), Value: []byte(fmt.Sprint(tag, b.next+storage.Offset(i)))}
		builder.Add(&r)
		b.recs = append(b.recs, r)
	}
	b.next += storage.Offset(n)
	return builder.Finish()
}

func (b *broker) append(n int) {
	b.tb.Helper()
	p := b.batch(n, "r")
	b.write(b.path(b.base, state.ExtLog), p, b.pos)
	b.pos += int64(len(p))
}

func (b *broker) roll() {
	b.tb.Helper()
	b.create(b.next)
}

// cut truncates the active segment to its beginning and writes something else there.
func (b *broker) cut() {
	b.tb.Helper()
	f, err := b.fs.OpenFile(b.path(b.base, state.ExtLog), os.O_RDWR, 0)
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := errors.Join(f.Truncate(0), f.Close()); err != nil {
		b.tb.Fatal(err)
	}
	b.recs = b.recs[:b.base-b.recs[0].Offset]
	b.next, b.pos = b.base, 0
	p := b.batch(3, "other")
	b.write(b.path(b.base, state.ExtLog), p, 0)
	b.pos = int64(len(p))
}

// drop deletes the first segment, which ends at next.
func (b *broker) drop(base, next storage.Offset) {
	b.tb.Helper()
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		if err := b.fs.Rename(b.path(base, ext), b.path(base, ext)+state.SuffixDeleted); err != nil {
			b.tb.Fatal(err)
		}
	}
	for len(b.recs) > 0 && b.recs[0].Offset < next {
		b.recs = b.recs[1:]
	}
}

func (b *broker) check(l *Log, when string) {
	b.tb.Helper()
	s := snap(b.tb, l)
	if s.End() != b.next {
		b.tb.Fatalf("%s: end %d, want %d", when, s.End(), b.next)
	}
	if err := sameRecords(readFrom(b.tb, s, s.Start()), b.recs); err != nil {
		b.tb.Fatalf("%s: %v", when, err)
	}
	if err := checkSnapshot(s, b.recs); err != nil {
		b.tb.Fatalf("%s: %v", when, err)
	}
}

// What a broker does shows at the next look: appends, rolls, deletions, truncations.
func TestFollowing(t *testing.T) {
	b, d := newBroker(t)
	l := d.open(t)
	b.check(l, "empty")
	r := rand.New(rand.NewSource(3))
	first := storage.Offset(0)
	bases := []storage.Offset{0}
	for i := range 300 {
		d.now += 7
		switch r.Intn(8) {
		case 0:
			if b.pos > 0 {
				b.roll()
				bases = append(bases, b.base)
			}
		case 1:
			if len(bases) > 2 {
				b.drop(bases[0], bases[1])
				bases = bases[1:]
				first = bases[0]
			}
		default:
			b.append(1 + r.Intn(5))
		}
		b.check(l, fmt.Sprintf("step %d", i))
		if s := snap(t, l); s.Start() != first {
			t.Fatalf("step %d: start %d, want %d", i, s.Start(), first)
		}
	}
	before := snap(t, l)
	b.cut()
	b.check(l, "cut")
	after := snap(t, l)
	if after.Generation() == before.Generation() {
		t.Error("a truncation must be a new generation")
	}
	if got := after.Unchanged(before.Generation()); got > b.base {
		t.Errorf("unchanged below %d, but the log was cut at %d", got, b.base)
	}
	b.append(4)
	b.check(l, "after the cut")
}

// A batch that is not all there yet, or zeros that were preallocated, is not shown and no error; once it is whole it is shown.
func TestHalfWrittenBatch(t *testing.T) {
	b, d := newBroker(t)
	l := d.open(t)
	b.append(3)
	p := b.batch(4, "late")
	full := b.next
	for n := 1; n < len(p); n += 9 {
		d.now++
		b.write(b.path(0, state.ExtLog), p[:n], b.pos)
		if s := snap(t, l); s.End() != 3 || len(readFrom(t, s, 0)) != 3 {
			t.Fatalf("with %d of %d bytes: end %d", n, len(p), s.End())
		}
	}
	b.write(b.path(0, state.ExtLog), append(append([]byte{}, p...), make([]byte, 5000)...), b.pos)
	d.now++
	if s := snap(t, l); s.End() != full {
		t.Fatalf("end %d, want %d", s.End(), full)
	}
	b.check(l, "whole")
}

// A reader that stands in a segment reads it to its end although it was deleted, and goes on behind it.
func TestReaderOutlivesDeletion(t *testing.T) {
	b, d := newBroker(t)
	b.append(5)
	b.append(5)
	b.roll()
	b.append(5)
	l := d.open(t)
	want := append([]storage.Record{}, b.recs...)
	s := snap(t, l)
	c := s.Records(0)
	defer c.Close()
	var got []storage.Record
	for len(got) < 2 {
		r, err := c.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, clone(r))
	}
	b.drop(0, 10)
	d.now++
	c.Advance(snap(t, l))
	for len(got) < 15 {
		r, err := c.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, clone(r))
	}
	if err := sameRecords(got, want); err != nil {
		t.Fatal(err)
	}
	late := s.Records(3)
	defer late.Close()
	if _, err := late.Next(context.Background()); !errors.Is(err, storage.ErrOffsetGone) {
		t.Fatalf("a reader that comes too late: %v", err)
	}
}

// Whatever point of a compaction's swap a broker was killed at, the view is what that broker would load.
func TestCompactionCutShort(t *testing.T) {
	old, compacted, empty := "old", "new", "empty"
	for _, tc := range []struct {
		name  string
		files map[string]string // suffix of the first segment's files -> which content
		want  string
	}{
		{"being written", map[string]string{"": old, ".cleaned": compacted}, old},
		{"renamed to swap", map[string]string{"": old, ".swap": compacted}, compacted},
		{"old renamed away", map[string]string{".deleted": old, ".swap": compacted}, compacted},
		{"renamed to swap, with nothing left in it", map[string]string{"": old, ".swap": empty}, empty},
		{"done", map[string]string{".deleted": old, "": compacted}, compacted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, d := newBroker(t)
			b.append(6)
			all := append([]storage.Record{}, b.recs...)
			b.roll()
			b.append(2)
			rest := b.recs[6:]
			content := map[string][]byte{}
			var err error
			if content[old], err = vfs.ReadFile(b.fs, b.path(0, state.ExtLog), 1<<20); err != nil {
				t.Fatal(err)
			}
			h := record.NewHeader(all[3:4], 0)
			h.BaseOffset, h.LastOffsetDelta = 0, 5
			if content[compacted], err = record.Encode(nil, h, all[3:4], record.None); err != nil {
				t.Fatal(err)
			}
			for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
				if err := b.fs.Remove(b.path(0, ext)); err != nil {
					t.Fatal(err)
				}
				for suffix, which := range tc.files {
					var bytes []byte
					if ext == state.ExtLog {
						bytes = content[which]
					}
					putFile(t, b.fs, b.path(0, ext)+suffix, bytes)
				}
			}
			want := all
			switch tc.want {
			case compacted:
				want = all[3:4]
			case empty:
				want = nil
			}
			l := d.open(t)
			if err := sameRecords(readFrom(t, snap(t, l), 0), append(append([]storage.Record{}, want...), rest...)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Under read_committed the data of aborted transactions is hidden, the log ends where the first open one begins, and everything that a snapshot says agrees.
func TestReadCommitted(t *testing.T) {
	b, d := newBroker(t)
	d.o.Committed = true
	l := d.open(t)
	r := rand.New(rand.NewSource(11))
	type txn struct {
		first storage.Offset
		recs  []storage.Record
	}
	open := map[int64]*txn{}
	var aborted []index.TxnEntry
	put := func(p []byte) {
		b.write(b.path(b.base, state.ExtLog), p, b.pos)
		b.pos += int64(len(p))
		d.now++
	}
	var visible []storage.Record // decided, in order of offsets
	for step := range 400 {
		id := int64(1 + r.Intn(3))
		switch k := r.Intn(10); {
		case k < 2 && open[id] != nil: // end it
			kind := int16(r.Intn(2))
			key := []byte{0, 0, 0, byte(kind)}
			rec := storage.Record{Offset: b.next, Timestamp: 9e12, Key: key, Value: make([]byte, 6)}
			h := record.NewHeader([]storage.Record{rec}, 0)
			h.ProducerID, h.Attributes = id, record.AttrControl|record.AttrTransactional
			p, err := record.Encode(nil, h, []storage.Record{rec}, record.None)
			if err != nil {
				t.Fatal(err)
			}
			put(p)
			if kind == 0 {
				aborted = append(aborted, index.TxnEntry{ProducerID: id, First: open[id].first, Last: b.next})
			} else {
				visible = append(visible, open[id].recs...)
			}
			delete(open, id)
			b.next++
		case k < 6:
			recs := []storage.Record{{Offset: b.next, Timestamp: int64(step), Value: []byte(strings.Repeat("t", r.Intn(30)))}, {Offset: b.next + 1, Timestamp: int64(step), Key: []byte("k")}}
			h := record.NewHeader(recs, 0)
			h.ProducerID, h.Attributes = id, record.AttrTransactional
			p, err := record.Encode(nil, h, recs, record.None)
			if err != nil {
				t.Fatal(err)
			}
			put(p)
			if open[id] == nil {
				open[id] = &txn{first: b.next}
			}
			open[id].recs = append(open[id].recs, recs...)
			b.next += 2
		case k == 6 && b.pos > 2000:
			b.roll()
			d.now++
		default:
			n := len(b.recs)
			put(b.batch(1+r.Intn(3), "plain"))
			visible = append(visible, b.recs[n:]...)
		}
		if step%7 != 0 {
			continue
		}
		stable := b.next
		for _, x := range open {
			stable = min(stable, x.first)
		}
		var want []storage.Record
		for _, v := range visible {
			if v.Offset < stable {
				want = append(want, v)
			}
		}
		sortByOffset(want)
		s := snap(t, l)
		if s.End() != stable {
			t.Fatalf("step %d: end %d, want %d", step, s.End(), stable)
		}
		if err := sameRecords(readFrom(t, s, 0), want); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if err := checkSnapshot(s, want); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	if len(aborted) < 5 {
		t.Fatalf("only %d transactions were aborted", len(aborted))
	}
	got := l.committed.txns.Aborted()
	for i := range aborted {
		got[i].Stable = 0
		if got[i] != aborted[i] {
			t.Errorf("aborted %d: %+v, want %+v", i, got[i], aborted[i])
		}
	}
}

func sortByOffset(recs []storage.Record) {
	for i := range recs {
		for j := i; j > 0 && recs[j].Offset < recs[j-1].Offset; j-- {
			recs[j], recs[j-1] = recs[j-1], recs[j]
		}
	}
}

// A log that was there already when it was opened is cut: what lay below the cut is as it was, and only that is said.
func TestCutBelowWhatWasThere(t *testing.T) {
	b, d := newBroker(t)
	var ends []int64
	for range 40 {
		b.append(2)
		ends = append(ends, b.pos)
	}
	l := d.open(t)
	before := snap(t, l)
	f, err := b.fs.OpenFile(b.path(0, state.ExtLog), os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Truncate(ends[29]), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.recs, b.next, b.pos = b.recs[:60], 60, ends[29]
	d.now++
	b.check(l, "cut")
	p := b.batch(5, "other")
	b.write(b.path(0, state.ExtLog), p, b.pos)
	d.now++
	b.check(l, "written anew")
	if got := snap(t, l).Unchanged(before.Generation()); got != 60 {
		t.Errorf("unchanged below %d, the log was cut at 60", got)
	}
}

// A log is cut, written anew and rolled between two looks: its readers are told of the cut all the same.
func TestCutAndRolledBetweenLooks(t *testing.T) {
	b, d := newBroker(t)
	b.append(6)
	b.roll()
	b.append(6)
	l := d.open(t)
	before := snap(t, l)
	readFrom(t, before, 0)
	b.cut()
	b.append(3)
	b.roll()
	b.append(1)
	d.now += 10
	b.check(l, "cut, rolled")
	after := snap(t, l)
	if after.Generation() == before.Generation() || after.Unchanged(before.Generation()) > 6 {
		t.Errorf("generation %d after %d, unchanged below %d: the log was cut at 6", after.Generation(), before.Generation(), after.Unchanged(before.Generation()))
	}
}
