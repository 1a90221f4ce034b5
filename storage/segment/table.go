package segment

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sort"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
)

// measuredInterval is the distance, in bytes of log, between the entries of a table of a measure that is not linear.
const measuredInterval = 64 << 10

// Table says how many bytes of a measure lie before every so many bytes of a segment's log.
//
// One table of sums serves all linear measures. A measure that is not linear has a table of its own, with its bytes in the place of the value bytes.
type Table struct {
	Entries index.SizeEntries // in memory
	Total   Sums
	next    storage.Offset // one above the last offset that is counted
	lost    bool           // unreadable places were passed over
	file    *sizeFile      // where the entries are instead
}

func apply(m *storage.Measure, s Sums) int64 {
	if m.Size != nil {
		return s.ValueBytes
	}
	return s.In(m)
}

// floorOffset returns the last entry at or below o, or the start of the segment.
func (t *Table) floorOffset(v *View, o storage.Offset) (index.SizeEntry, error) {
	return t.find(v, func(x index.SizeTable) (index.SizeEntry, int, error) { return x.FloorOffset(o) })
}

// floorMeasure returns the last entry with at most p bytes of m before it, or the start of the segment.
func (t *Table) floorMeasure(v *View, m *storage.Measure, p int64) (index.SizeEntry, error) {
	return t.find(v, func(x index.SizeTable) (index.SizeEntry, int, error) {
		return x.FloorMeasure(func(s Sums) int64 { return apply(m, s) }, p)
	})
}

func (t *Table) find(v *View, floor func(index.SizeTable) (index.SizeEntry, int, error)) (index.SizeEntry, error) {
	var x index.SizeTable = t.Entries
	if t.file != nil {
		h, err := v.env.Files.Open(t.file.path, os.O_RDONLY, 0)
		if err != nil {
			return index.SizeEntry{}, v.withoutSizes(t, err)
		}
		defer h.Unpin()
		x = index.Sizes{R: h, H: t.file.header}
	}
	e, i, err := floor(x)
	if i < 0 {
		e = index.SizeEntry{Offset: v.Base}
	}
	return e, v.withoutSizes(t, err)
}

// errNoSizes says that the size index which a table looked things up in is not there any more, or not all of it. Another table has to be made.
var errNoSizes = errors.New("the size index is not there any more")

// withoutSizes lets go of a table whose file was taken away or cut: who tidies up a cache may do that.
func (v *View) withoutSizes(t *Table, err error) error {
	if t.file == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	v.env.Files.Forget(t.file.path)
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := v.sums.linear; now != nil && now.file == t.file {
		v.sums.linear = nil
	}
	return errNoSizes
}

// tabled calls fn with the table for a measure, and once more with a new one if that turned out to be gone.
func (v *View) tabled(ctx context.Context, m *storage.Measure, fn func(*Table) error) error {
	for again := true; ; again = false {
		t, err := v.Table(ctx, m)
		if err != nil {
			return err
		}
		if err = fn(t); !again || !errors.Is(err, errNoSizes) {
			return err
		}
	}
}

// sums holds the tables of a segment.
type sums struct {
	gate     gate   // held by whoever builds
	linear   *Table // of a segment that is not live; guarded by Segment.mu
	measured map[string]*measured
}

// measured is a table that is extended as its segment grows.
type measured struct {
	table Table
	upTo  storage.Pos
	low   storage.Offset
}

// key is what a measure's table that grows is kept under: all linear measures share one.
func key(m *storage.Measure) string {
	if m.Size == nil {
		return ""
	}
	return m.Name
}

// table returns the table for a measure if it is there now, else nil.
func (v *View) table(m *storage.Measure) *Table {
	if m.Size == nil && v.Live != nil {
		return &v.Live.Sizes
	}
	s := v.Segment
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Size == nil && !v.Tail {
		return s.sums.linear
	}
	if x := s.sums.measured[key(m)]; x != nil && x.upTo == v.Size {
		t := x.table
		return &t
	}
	return nil
}

// behind returns how many bytes of log the table of a measure lacks.
func (v *View) behind(m *storage.Measure) storage.Pos {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.sums.measured[key(m)]; x != nil {
		return v.Size - min(x.upTo, v.Size)
	}
	return v.Size
}

// Sized reports whether byte positions can be found without scanning the segment.
func (v *View) Sized() bool { return v.Live != nil || v.table(&storage.Measure{}) != nil }

// Has reports whether the table for a measure is there already.
func (v *View) Has(m *storage.Measure) bool { return v.table(m) != nil }

// Table returns the table for a measure, reading or building it if it is not there.
func (v *View) Table(ctx context.Context, m *storage.Measure) (*Table, error) {
	if t := v.table(m); t != nil {
		return t, nil
	}
	s := v.Segment
	if err := s.enter(ctx, &s.sums.gate); err != nil {
		return nil, err
	}
	defer s.leave(&s.sums.gate)
	if t := v.table(m); t != nil {
		return t, nil
	}
	if m.Size != nil || v.Tail {
		return v.measure(ctx, m)
	}
	t, err := v.loadSizes()
	if t == nil && err == nil {
		t, err = v.buildSizes(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.sums.linear = t
	s.mu.Unlock()
	return t, nil
}

// measure brings a table that grows up to the view. The gate is held.
func (v *View) measure(ctx context.Context, m *storage.Measure) (*Table, error) {
	s := v.Segment
	s.mu.Lock()
	x := s.sums.measured[key(m)]
	s.mu.Unlock()
	if x == nil {
		x = v.seed(m)
	}
	if x.upTo > v.Size {
		return x.upToView(ctx, v, m)
	}
	next := *x
	interval := storage.Pos(measuredInterval)
	if m.Size == nil {
		interval = max(storage.Pos(v.interval), index.MinSizeInterval)
	}
	last := -interval
	if n := len(next.table.Entries); n > 0 {
		last = next.table.Entries[n-1].Pos
	}
	lost := func(*storage.CorruptError) error {
		next.table.lost = true
		return nil
	}
	err := v.walk(ctx, next.upTo, next.low, lost, func(w *batchWalk, b []byte) error {
		h := &w.scan.Header
		if w.scan.Pos-last >= interval {
			next.table.Entries = append(next.table.Entries, index.SizeEntry{Offset: h.BaseOffset, Pos: w.scan.Pos, Before: next.table.Total})
			last = w.scan.Pos
		}
		next.table.Total = next.table.Total.Plus(w.amount(m, b))
		next.low = h.NextOffset()
		next.table.next = next.low
		return nil
	})
	if err != nil {
		return nil, err
	}
	next.upTo = v.Size
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums.measured == nil {
		s.sums.measured = map[string]*measured{}
	}
	s.sums.measured[key(m)] = &next
	t := next.table
	return &t, nil
}

// seed is where the table of a measure starts: with what an earlier process left, if that fits the view.
func (v *View) seed(m *storage.Measure) *measured {
	x := &measured{low: v.Base}
	if m.Size != nil || v.Hidden != nil {
		return x
	}
	h, whole, err := v.readSizes()
	if err != nil || whole == nil {
		return x
	}
	_, entries, err := index.DecodeSizes(whole, v.Base)
	if err != nil {
		return x
	}
	return &measured{table: Table{Entries: entries, Total: h.Total, next: h.NextOffset}, upTo: storage.Pos(h.LogSize), low: h.NextOffset}
}

// amount is what a batch adds to the table of a measure.
func (w *batchWalk) amount(m *storage.Measure, b []byte) Sums {
	if m.Size == nil {
		return w.sums(b)
	}
	return Sums{ValueBytes: w.measure(m, b)}
}

// upToView cuts a table that covers more than the view.
func (x *measured) upToView(ctx context.Context, v *View, m *storage.Measure) (*Table, error) {
	n := sort.Search(len(x.table.Entries), func(i int) bool { return x.table.Entries[i].Pos >= v.Size })
	t := &Table{Entries: x.table.Entries[:n:n]}
	from := index.SizeEntry{Offset: v.Base}
	if n > 0 {
		from = t.Entries[n-1]
	}
	t.Total = from.Before
	err := v.walk(ctx, from.Pos, from.Offset, nil, func(w *batchWalk, b []byte) error {
		t.Total = t.Total.Plus(w.amount(m, b))
		t.next = w.scan.Header.NextOffset()
		return nil
	})
	return t, err
}
