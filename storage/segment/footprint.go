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

// Last returns the last batch of the view; ok is false if it has none.
func (v *View) Last() (b Footprint, ok bool, err error) {
	if v.Empty() {
		return b, false, nil
	}
	pos, err := v.batchPosRough(v.Next - 1)
	if err != nil {
		return b, false, err
	}
	err = v.eachHeader(pos, v.Base, func(h *record.Header, pos storage.Pos) error {
		b, ok = footprint(h, pos), true
		return nil
	})
	return b, ok, err
}

// StartOf returns where the first batch starts that holds o or a later offset.
func (v *View) StartOf(o storage.Offset) (storage.Pos, error) { return v.batchPos(o, false) }

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
