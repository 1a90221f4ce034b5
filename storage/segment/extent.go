package segment

import (
	"context"
	"errors"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// Sums are what a linear measure is computed from.
type Sums = index.Sums

// glanceBytes is how much of a log is read at most to answer what shall not take time, in a measure that needs each record.
const glanceBytes = 64 << 10

// directBytes is how much of a log is summed up directly rather than by building the sums of the whole segment.
const directBytes = 4 << 20

// Extent returns the bytes, in measure m, of what the view holds with from <= offset < to.
func (v *View) Extent(ctx context.Context, m *storage.Measure, from, to storage.Offset) (int64, error) {
	from, to = max(from, v.Base), min(to, v.Next)
	if from >= to || v.Empty() {
		return 0, nil
	}
	if m.Batches {
		lo, err := v.batchPos(ctx, from, false)
		if err != nil {
			return 0, err
		}
		hi, err := v.batchPos(ctx, to, true)
		return int64(hi - lo), err
	}
	if v.table(m) == nil {
		n, ok, err := v.direct(ctx, m, from, to)
		if ok || err != nil {
			return n, err
		}
	}
	var n int64
	err := v.tabled(ctx, m, func(t *Table) (err error) {
		n, err = v.between(ctx, t, m, from, to)
		return err
	})
	return n, err
}

// Before returns the bytes of the view in front of what Extent counts from o on.
func (v *View) Before(ctx context.Context, m *storage.Measure, o storage.Offset) (int64, error) {
	if m.Batches {
		pos, err := v.batchPos(ctx, o, false)
		return int64(pos), err
	}
	return v.Extent(ctx, m, v.Base, o)
}

// ExtentNow is Extent as far as it can be told without building the sums of a segment.
func (v *View) ExtentNow(m *storage.Measure, from, to storage.Offset) (int64, bool) {
	from, to = max(from, v.Base), min(to, v.Next)
	if from >= to || v.Empty() {
		return 0, true
	}
	if m.Batches {
		n, err := v.Extent(context.Background(), m, from, to)
		return n, err == nil
	}
	t := v.table(m)
	if t == nil && m.Size != nil && v.behind(m) > glanceBytes {
		return 0, false
	}
	if t == nil && m.Size != nil {
		var err error
		if t, err = v.Table(context.Background(), m); err != nil {
			return 0, false
		}
	}
	if t == nil {
		n, ok, err := v.direct(context.Background(), m, from, to)
		return n, ok && err == nil
	}
	n, err := v.between(context.Background(), t, m, from, to)
	return n, err == nil
}

// between is Extent with the help of a table.
func (v *View) between(ctx context.Context, t *Table, m *storage.Measure, from, to storage.Offset) (int64, error) {
	lo, hi := int64(0), apply(m, t.Total)
	var err error
	if to < v.Next || t.next > v.Next { // the next segment may begin inside this one: what it holds is shown from there
		if hi, err = v.before(ctx, t, m, to); err != nil {
			return 0, err
		}
	}
	if from > v.Base {
		if lo, err = v.before(ctx, t, m, from); err != nil {
			return 0, err
		}
	}
	return hi - lo, nil
}

// before returns the bytes of the visible records below o.
func (v *View) before(ctx context.Context, t *Table, m *storage.Measure, o storage.Offset) (int64, error) {
	e, err := t.floorOffset(v, o)
	if err != nil {
		return 0, err
	}
	n := apply(m, e.Before)
	err = v.walk(ctx, e.Pos, e.Offset, nil, func(w *batchWalk, b []byte) error {
		h := &w.scan.Header
		if h.BaseOffset >= o {
			return errStop
		}
		if h.LastOffset() < o {
			n += w.measure(m, b)
			return nil
		}
		_ = w.eachRecord(b, func(r *storage.Record) error {
			if r.Offset >= o {
				return errStop
			}
			n += m.Of(r)
			return nil
		})
		return errStop
	})
	return n, err
}

// direct sums up the records of a range if it is short. ok is false where it is not.
func (v *View) direct(ctx context.Context, m *storage.Measure, from, to storage.Offset) (n int64, ok bool, err error) {
	if v.Size > directBytes {
		lo, err := v.batchPosRough(ctx, from)
		if err != nil {
			return 0, false, err
		}
		hi := v.Size
		if to < v.Next {
			if hi, err = v.batchPosRough(ctx, to); err != nil {
				return 0, false, err
			}
		}
		if hi-lo > directBytes {
			return 0, false, nil
		}
	}
	f, err := v.open()
	if err != nil {
		return 0, false, err
	}
	pos, low, err := v.posOf(ctx, f, from)
	f.Unpin()
	if err != nil {
		return 0, false, err
	}
	err = v.walk(ctx, pos, low, nil, func(w *batchWalk, b []byte) error {
		h := &w.scan.Header
		switch {
		case h.BaseOffset >= to:
			return errStop
		case h.LastOffset() < from:
		case h.BaseOffset >= from && h.LastOffset() < to:
			n += w.measure(m, b)
		default:
			_ = w.eachRecord(b, func(r *storage.Record) error {
				if r.Offset >= from && r.Offset < to {
					n += m.Of(r)
				}
				return nil
			})
		}
		return nil
	})
	return n, err == nil, err
}

// batchPosRough is a position at or before the batch that holds o.
func (v *View) batchPosRough(ctx context.Context, o storage.Offset) (storage.Pos, error) {
	f, err := v.open()
	if err != nil {
		return 0, err
	}
	defer f.Unpin()
	pos, _, err := v.posOf(ctx, f, o)
	return pos, err
}

// batchPos returns where the first batch starts whose last offset (or, with base, whose base offset) is at least o; the end where there is none.
func (v *View) batchPos(ctx context.Context, o storage.Offset, base bool) (storage.Pos, error) {
	if o >= v.Next {
		return v.Size, nil
	}
	if o <= v.Base {
		return 0, nil
	}
	pos, err := v.batchPosRough(ctx, o)
	if err != nil {
		return 0, err
	}
	found := v.Size
	err = v.eachHeader(ctx, pos, v.Base, func(h *record.Header, at storage.Pos) error {
		if (base && h.BaseOffset >= o) || (!base && h.LastOffset() >= o) {
			found = at
			return errStop
		}
		return nil
	})
	return found, ignoreStop(err)
}

// Locate finds the record that holds byte p of the view counted in m, 0 <= p < the view's extent, and which byte of it that is. Where an unreadable
// place lies exactly at p it is that error.
func (v *View) Locate(ctx context.Context, m *storage.Measure, p int64) (storage.Offset, int64, error) {
	if m.Batches {
		return v.locateBatch(ctx, storage.Pos(p))
	}
	var e index.SizeEntry
	err := v.tabled(ctx, m, func(t *Table) (err error) {
		// Strictly before p, so that an unreadable place at p, which takes no room, is met on the way.
		e, err = t.floorMeasure(v, m, p-1)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	at, o, skip, found := apply(m, e.Before), storage.Offset(0), int64(0), false
	bad := func(ce *storage.CorruptError) error {
		if at == p {
			return ce
		}
		return nil
	}
	err = v.walk(ctx, e.Pos, e.Offset, bad, func(w *batchWalk, b []byte) error {
		n := w.measure(m, b)
		if at+n <= p {
			at += n
			return nil
		}
		return w.eachRecord(b, func(r *storage.Record) error {
			n := m.Of(r)
			if at+n > p {
				o, skip, found = r.Offset, p-at, true
				return errStop
			}
			at += n
			return nil
		})
	})
	if err != nil {
		return 0, 0, err
	}
	if !found {
		return v.Next, 0, nil
	}
	return o, skip, nil
}

func (v *View) locateBatch(ctx context.Context, p storage.Pos) (storage.Offset, int64, error) {
	if p >= v.Size {
		return v.Next, 0, nil
	}
	f, err := v.open()
	if err != nil {
		return 0, 0, err
	}
	defer f.Unpin()
	start, low := storage.Pos(0), v.Base
	info, err := v.indexInfo(ctx)
	if err != nil {
		return 0, 0, err
	}
	err = v.withOffsets(info, func(x index.Offsets) error {
		e, i, err := x.FloorPos(p)
		if err == nil && i >= 0 {
			if h, ok := v.headerAt(f, e.Pos); ok && firstKnown(&h) <= e.Offset {
				start, low = e.Pos, h.BaseOffset
			}
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	var sc Scanner
	sc.reset(v.Segment, f, start, v.Size, low)
	defer sc.rest()
	for {
		err := sc.Next(sc.headAhead())
		if errors.Is(err, io.EOF) {
			return v.Next, 0, nil
		}
		if err == nil {
			if sc.next > p {
				return sc.Header.BaseOffset, int64(p - sc.Pos), nil
			}
			continue
		}
		var ce *storage.CorruptError
		if errors.Is(err, errTorn) {
			err = sc.bad(sc.next, err)
		}
		if !errors.As(err, &ce) {
			return 0, 0, err
		}
		if err := sc.skip(ce.Pos); err != nil {
			return 0, 0, err
		}
		if sc.next > p {
			v.report(ce)
			return 0, 0, ce
		}
	}
}
