package segment

import (
	"context"
	"errors"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// ErrNone says that a segment does not hold what was looked for.
var ErrNone = errors.New("not in this segment")

// FindTime returns the first visible record at or after from whose timestamp is at least ts, or ErrNone.
func (v *View) FindTime(ctx context.Context, ts int64, from storage.Offset) (storage.Offset, error) {
	if v.Empty() || from >= v.Next {
		return 0, ErrNone
	}
	info, err := v.indexInfo(ctx)
	if err != nil {
		return 0, err
	}
	if info.maxTimestamp < ts {
		return 0, ErrNone
	}
	start := from
	err = v.withTimes(info, func(t index.Times) error {
		e, i, err := t.Floor(ts)
		if err == nil && i >= 0 {
			start = max(start, e.Offset)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	f, err := v.open()
	if err != nil {
		return 0, err
	}
	pos, low, err := v.posOf(ctx, f, start)
	f.Unpin()
	if err != nil {
		return 0, err
	}
	found := storage.Offset(-1)
	err = v.walkHeaders(ctx, pos, low, func(w *batchWalk) error {
		h := &w.scan.Header
		if h.LastOffset() < from || h.MaxTimestamp < ts || !w.shows() {
			return nil
		}
		b, err := w.scan.Batch()
		if err != nil {
			return nil //nolint:nilerr // Unreadable: a Reader says so when it gets there.
		}
		return w.eachRecord(b, func(r *storage.Record) error {
			if r.Offset >= from && r.Offset < v.Next && r.Timestamp >= ts {
				found = r.Offset
				return errStop
			}
			return nil
		})
	})
	if err == nil && found < 0 {
		err = ErrNone
	}
	return found, err
}

// FindNext returns the first visible record at or after o, or ErrNone. An unreadable batch counts as a record, so that a reader is told of it.
func (v *View) FindNext(ctx context.Context, o storage.Offset) (storage.Offset, error) {
	if v.Empty() || o >= v.Next {
		return 0, ErrNone
	}
	var r Reader
	defer r.Close()
	if err := r.Open(ctx, v, o); err != nil {
		return 0, err
	}
	for {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		rec, err := r.Next()
		if err == nil {
			return rec.Offset, nil
		}
		var ce *storage.CorruptError
		if !errors.As(err, &ce) {
			return 0, noneAtEnd(err)
		}
	}
}

// FindLast finds the n-th visible record from the end of the view, n > 0. Where the view has fewer it returns ErrNone and how many it has. Records
// below from do not count.
func (v *View) FindLast(ctx context.Context, n int64, from storage.Offset) (o storage.Offset, have int64, err error) {
	if v.Empty() || from >= v.Next {
		return 0, 0, ErrNone
	}
	// Batches are read forward only: look at ever longer pieces of the end, each of which starts at an index entry.
	starts, err := v.backward(ctx)
	if err != nil {
		return 0, 0, err
	}
	end := v.Size
	for i := 0; ; i++ {
		pos, first, more := starts(i)
		var batches []lastBatch
		err := v.walkHeaders(ctx, pos, first.BaseOffset, func(w *batchWalk) error {
			h := &w.scan.Header
			if w.scan.Pos >= end {
				return errStop
			}
			if w.shows() && h.LastOffset() >= from && h.BaseOffset < v.Next && h.Count != 0 {
				b := lastBatch{at: w.scan.Pos, base: h.BaseOffset, count: int64(h.Count)}
				if h.LastOffset() >= v.Next {
					b.count = -1 // only a part of it is shown
				}
				batches = append(batches, b)
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		for j := len(batches) - 1; j >= 0; j-- {
			b := batches[j]
			if b.count >= 0 && b.base >= from && have+b.count < n {
				have += b.count
				continue
			}
			o, got, err := v.fromBatch(ctx, b, n-have, from)
			if err == nil {
				return o, n, nil
			}
			if !errors.Is(err, ErrNone) {
				return 0, 0, err
			}
			have += got
		}
		if !more || firstKnown(&first) <= from {
			return 0, have, ErrNone
		}
		end = pos
	}
}

type lastBatch struct {
	at    storage.Pos
	base  storage.Offset
	count int64 // -1 is unknown
}

// fromBatch finds the n-th record from the end of one batch.
func (v *View) fromBatch(ctx context.Context, b lastBatch, n int64, from storage.Offset) (storage.Offset, int64, error) {
	var offsets []storage.Offset
	err := v.walk(ctx, b.at, b.base, nil, func(w *batchWalk, batch []byte) error {
		if w.scan.Pos > b.at {
			return errStop
		}
		_ = w.eachRecord(batch, func(r *storage.Record) error {
			if r.Offset >= from && r.Offset < v.Next {
				offsets = append(offsets, r.Offset)
			}
			return nil
		})
		return errStop
	})
	if err != nil {
		return 0, 0, err
	}
	if int64(len(offsets)) < n {
		return 0, int64(len(offsets)), ErrNone
	}
	return offsets[int64(len(offsets))-n], n, nil
}

// backward returns a function whose i-th value is where the i-th piece from the end starts, the pieces growing, the header there and whether there is one
// before it.
func (v *View) backward(ctx context.Context) (func(i int) (storage.Pos, record.Header, bool), error) {
	info, err := v.indexInfo(ctx)
	if err != nil {
		return nil, err
	}
	entry := info.offsets
	return func(i int) (storage.Pos, record.Header, bool) {
		entry -= 1 << min(i, 20)
		for entry > 0 {
			var e index.OffsetEntry
			err := v.offsets(info, func(x index.Offsets) error {
				var err error
				e, err = x.Entry(entry - 1)
				return err
			})
			if err == nil {
				if h, ok := v.headerOf(e.Pos); ok && firstKnown(&h) <= e.Offset {
					return e.Pos, h, true
				}
			}
			entry--
		}
		return 0, record.Header{BaseOffset: v.Base}, false
	}, nil
}

func (v *View) headerOf(pos storage.Pos) (record.Header, bool) {
	f, err := v.open()
	if err != nil {
		return record.Header{}, false
	}
	defer f.Unpin()
	return v.headerAt(f, pos)
}
