package segment

import (
	"context"
	"errors"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// Footprint is what one batch looked like, to recognise it by.
type Footprint struct {
	Pos          storage.Pos
	Offset, Next storage.Offset
	CRC          uint32
}

func footprint(h *record.Header, pos storage.Pos) Footprint {
	return Footprint{Pos: pos, Offset: h.BaseOffset, Next: h.NextOffset(), CRC: h.CRC}
}

// footprintsKept is how many batches Grow tells of: the last ones.
const footprintsKept = 256

// At returns the batch that starts at pos; ok is false if none does.
func (v *View) At(pos storage.Pos) (b Footprint, ok bool, err error) {
	f, err := v.open()
	if err != nil {
		return b, false, err
	}
	defer f.Unpin()
	h, ok := v.headerAt(f, pos)
	return footprint(&h, pos), ok, nil
}

// Trail returns the last batches of the view, in order: at least n of them where there are so many, and not many more.
func (v *View) Trail(ctx context.Context, n int) ([]Footprint, error) {
	if v.Empty() {
		return nil, nil
	}
	starts, err := v.backward(ctx)
	if err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		pos, first, more := starts(i)
		var out []Footprint
		err := v.walkHeaders(ctx, pos, first.BaseOffset, func(w *batchWalk) error {
			if out = append(out, footprint(&w.scan.Header, w.scan.Pos)); len(out) >= 2*n {
				out = append(out[:0], out[n:]...)
			}
			return nil
		})
		if err != nil || !more || len(out) >= n {
			return out, err
		}
	}
}

// StartOf returns where the first batch starts that holds o or a later offset.
func (v *View) StartOf(ctx context.Context, o storage.Offset) (storage.Pos, error) {
	return v.batchPos(ctx, o, false)
}

// Grow returns the view with the whole batches that its log now has behind its end, and the last of them. What is not whole, or not right, at the end of
// the file may still be being written: it is left out.
func (v *View) Grow(ctx context.Context, size storage.Pos) (View, []Footprint, error) {
	if size <= v.Size {
		return *v, nil, nil
	}
	f, err := v.open()
	if err != nil {
		return *v, nil, err
	}
	defer f.Unpin()
	n := *v
	n.Tail = true
	w := &batchWalk{}
	w.scan.reset(v.Segment, f, v.Size, size, v.Next)
	defer w.scan.rest()
	var added []Footprint
	for {
		if ctx.Err() != nil {
			return *v, nil, context.Cause(ctx)
		}
		_, err := w.next()
		var ce *storage.CorruptError
		switch {
		case err == nil:
			n.Size, n.Next = w.scan.next, w.scan.low
			if added = append(added, footprint(&w.scan.Header, w.scan.Pos)); len(added) >= 2*footprintsKept {
				added = append(added[:0], added[footprintsKept:]...)
			}
		case errors.Is(err, io.EOF):
			return n, added, nil
		case errors.As(err, &ce):
			if err := w.scan.skip(ce.Pos); err != nil {
				return *v, nil, err
			}
			if w.scan.next >= size {
				return n, added, nil
			}
		default:
			return *v, nil, err
		}
	}
}
