package segment

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
)

// Reader reads the records, or the batches, of one segment in their order. It pins the segment's log until Close. It is for one goroutine.
type Reader struct {
	view  View
	scan  Scanner
	file  *vfs.Handle
	open  bool
	ahead int // what to read at once
	rec   record.Reader
	batch bool           // rec holds a batch that is not finished
	from  storage.Offset // records below it are not wanted
	out   storage.Record
}

// Open makes the reader stand before the first record of v at or after o. The reader may have been used before.
func (r *Reader) Open(ctx context.Context, v *View, o storage.Offset) error {
	r.Close()
	r.from, r.ahead = o, firstChunk
	if v.Empty() {
		r.view = *v
		r.scan.reset(v.Segment, nil, 0, 0, v.Base)
		return nil
	}
	f, err := v.open()
	if err != nil {
		return err
	}
	r.file, r.open = f, true
	pos, low, err := v.posOf(ctx, r.file, o)
	if err != nil {
		r.Close()
		return err
	}
	r.view = *v // not earlier: who was interrupted opens the reader again for what it has not seen
	r.scan.reset(v.Segment, r.file, pos, v.Size, low)
	return nil
}

// Extend tells the reader that its segment has grown to v.
func (r *Reader) Extend(ctx context.Context, v *View) error {
	if v.Segment != r.view.Segment {
		return storage.ErrClosed
	}
	if !r.open && !v.Empty() {
		return r.Open(ctx, v, r.from)
	}
	r.view = *v
	r.scan.end = v.Size
	return nil
}

// View is the state of the segment up to which the reader reads.
func (r *Reader) View() *View { return &r.view }

// Offset is where the reader stands: all visible records below it have been returned.
func (r *Reader) Offset() storage.Offset { return r.from }

// Close lets go of the segment and of the buffers.
func (r *Reader) Close() {
	r.scan.rest()
	r.rec = record.Reader{}
	r.batch = false
	if r.open {
		r.file.Unpin()
		r.open = false
	}
}

// Rest gives the buffers back while the reader waits for more.
func (r *Reader) Rest() {
	if !r.batch {
		r.scan.rest()
	}
}

// Next returns the next visible record, or io.EOF at the end of the view. What cannot be read is one error; the next call goes on behind it.
func (r *Reader) Next() (*storage.Record, error) {
	for {
		if r.batch {
			ok, err := r.rec.Next(&r.out)
			if err != nil {
				r.batch = false
				r.from = max(r.from, r.scan.Header.NextOffset())
				return nil, r.failed(r.scan.bad(r.scan.Pos, err))
			}
			if ok {
				if r.out.Offset < r.from {
					continue
				}
				if r.out.Offset >= r.view.Next { // the next segment begins inside this one
					r.batch = false
					r.scan.next = r.scan.end
					return nil, io.EOF
				}
				r.from = r.out.Offset + 1
				return &r.out, nil
			}
			r.batch = false
			r.from = max(r.from, r.scan.Header.NextOffset())
		}
		if err := r.nextBatch(true); err != nil {
			return nil, err
		}
	}
}

// nextBatch goes to the next batch that holds an offset at or after r.from. With decode it passes over control batches and opens the batch.
func (r *Reader) nextBatch(decode bool) error {
	for {
		err := r.scan.Next(r.ahead)
		r.ahead = chunkSize
		if err != nil {
			return r.stopped(err)
		}
		h := &r.scan.Header
		if h.LastOffset() < r.from {
			continue
		}
		if !decode {
			return nil
		}
		b, err := r.scan.Batch() // before the header is believed
		if err == nil && (h.Attributes.Control() || r.view.Hidden.batch(h)) {
			r.from = h.NextOffset()
			continue
		}
		if err == nil {
			err = r.rec.Reset(b)
			if err != nil && !errors.Is(err, storage.ErrUnsupported) {
				err = r.scan.bad(r.scan.Pos, err)
			}
		}
		if err != nil {
			return r.failedBatch(err)
		}
		r.batch = true
		return nil
	}
}

// stopped turns what ended a scan into what the caller is told.
func (r *Reader) stopped(err error) error {
	var ce *storage.CorruptError
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, errTorn):
		// The view ends at a whole batch, so this is damage in the middle.
		ce = r.scan.bad(r.scan.next, err)
	case !errors.As(err, &ce):
		return err
	}
	return r.failedAt(ce)
}

// failedBatch reports a batch that was found but cannot be shown, and goes behind it.
func (r *Reader) failedBatch(err error) error {
	var ce *storage.CorruptError
	if !errors.As(err, &ce) {
		if errors.Is(err, storage.ErrUnsupported) {
			r.from = max(r.from, r.scan.Header.NextOffset())
			return r.failed(&storage.CorruptError{Path: r.view.logPath(), Pos: r.scan.Pos, Offset: r.scan.Header.BaseOffset, Reason: "cannot be shown", Err: err})
		}
		return err
	}
	return r.failedAt(ce)
}

// failedAt skips what is unreadable from ce.Pos on.
func (r *Reader) failedAt(ce *storage.CorruptError) error {
	if err := r.scan.skip(ce.Pos); err != nil {
		return err
	}
	return r.failed(ce)
}

func (r *Reader) failed(ce *storage.CorruptError) error {
	r.view.report(ce)
	return ce
}

// NextBatch returns the next batch that holds an offset at or after the one that the reader was opened for, verbatim.
func (r *Reader) NextBatch() ([]byte, error) {
	if err := r.nextBatch(false); err != nil {
		return nil, err
	}
	if h := &r.scan.Header; h.Magic < 2 {
		// Not reported from here: nothing is wrong with it, and of such a log each message is one.
		r.from = max(r.from, h.NextOffset())
		return nil, &storage.CorruptError{
			Path: r.view.logPath(), Pos: r.scan.Pos, Offset: h.BaseOffset, Reason: "cannot be shown as a batch",
			Err: fmt.Errorf("message format version %d, batches have 2: %w", h.Magic, storage.ErrUnsupported),
		}
	}
	b, err := r.scan.Batch()
	if err != nil {
		return nil, r.failedBatch(err)
	}
	r.from = r.scan.Header.NextOffset()
	return b, nil
}
