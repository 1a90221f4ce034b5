package segment

import (
	"context"
	"errors"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// errStop ends a walk early.
var errStop = errors.New("stop")

// batchWalk goes over whole batches, checksums verified, and keeps what that needs.
type batchWalk struct {
	scan   Scanner
	rec    record.Reader
	hidden *Hidden
}

// shows reports whether the batch that was found has visible records.
func (w *batchWalk) shows() bool {
	return !w.scan.Header.Attributes.Control() && !w.hidden.batch(&w.scan.Header)
}

// begin makes a walk stand at pos, where a batch with at least offset low starts. done ends it.
func (v *View) begin(pos storage.Pos, low storage.Offset) (w *batchWalk, done func(), err error) {
	f, err := v.open()
	if err != nil {
		return nil, nil, err
	}
	w = &batchWalk{hidden: v.Hidden}
	w.scan.reset(v.Segment, f, pos, v.Size, low)
	return w, func() {
		w.scan.rest()
		f.Unpin()
	}, nil
}

// walk calls fn for each batch from pos on, until fn returns errStop or the view ends. The batch is valid during the call. An unreadable place is
// reported, told to bad if that is not nil, and passed over.
func (v *View) walk(ctx context.Context, pos storage.Pos, low storage.Offset, bad func(*storage.CorruptError) error, fn func(w *batchWalk, b []byte) error) error {
	if v.Empty() {
		return nil
	}
	w, done, err := v.begin(pos, low)
	if err != nil {
		return err
	}
	defer done()
	for n := 1; ; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := w.next()
		if err == nil {
			if err = fn(w, b); err != nil {
				return ignoreStop(err)
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		var ce *storage.CorruptError
		if !errors.As(err, &ce) {
			return err
		}
		v.report(ce)
		if bad != nil {
			if err := bad(ce); err != nil {
				return ignoreStop(err)
			}
		}
		if err := w.scan.skip(ce.Pos); err != nil {
			return err
		}
	}
}

// walkHeaders calls fn for each batch from pos on with its header alone read, until fn returns errStop or the view ends. Unreadable places are passed over.
func (v *View) walkHeaders(ctx context.Context, pos storage.Pos, low storage.Offset, fn func(w *batchWalk) error) error {
	if v.Empty() {
		return nil
	}
	w, done, err := v.begin(pos, low)
	if err != nil {
		return err
	}
	defer done()
	for n := 1; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := w.scan.Next(w.scan.headAhead())
		var ce *storage.CorruptError
		switch {
		case err == nil:
			if err := fn(w); err != nil {
				return ignoreStop(err)
			}
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTorn), errors.As(err, &ce):
			if err := w.scan.skip(w.scan.next); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func noneAtEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrNone
	}
	return err
}

func ignoreStop(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// eachRecord calls fn for the visible records of a batch, in order. What cannot be decoded ends it: the records before it were there, as they are for a
// Reader.
func (w *batchWalk) eachRecord(b []byte, fn func(*storage.Record) error) error {
	if !w.shows() {
		return nil
	}
	if err := w.rec.Reset(b); err != nil {
		return nil //nolint:nilerr // A Reader reports it at its place; here it takes no room.
	}
	var r storage.Record
	for {
		ok, err := w.rec.Next(&r)
		if err != nil || !ok {
			return nil //nolint:nilerr // As above.
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
}

// sums counts the visible records of a batch and their bytes.
func (w *batchWalk) sums(b []byte) Sums {
	if !w.shows() {
		return Sums{}
	}
	if err := w.rec.Reset(b); err != nil {
		return Sums{}
	}
	s, err := w.rec.Sums()
	if err == nil {
		return Sums(s)
	}
	var t Sums
	_ = w.eachRecord(b, func(r *storage.Record) error {
		t.Records++
		t.KeyBytes += int64(len(r.Key))
		t.ValueBytes += int64(len(r.Value))
		return nil
	})
	return t
}

// measure returns the bytes of a batch's visible records in a measure that is not counted in batches.
func (w *batchWalk) measure(m *storage.Measure, b []byte) int64 {
	if m.Size == nil {
		return w.sums(b).In(m)
	}
	var n int64
	_ = w.eachRecord(b, func(r *storage.Record) error {
		n += m.Size(r)
		return nil
	})
	return n
}
