package fs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// readHandle reads a view. Sequential reads go on where the last ended and need no index; others find their place first.
type readHandle struct {
	gate
	n *viewNode

	// guarded by gate
	known   bool           // pos, ahead, left and cur (or next, where cur is nil) belong together
	pos     int64          // of the next byte
	ahead   []byte         // bytes from pos on that were read ahead
	left    []byte         // bytes behind them: the rest of a record already taken from cur
	cur     storage.Cursor // behind left
	next    storage.Offset // where to go on once there is no cursor
	skip    int64          // bytes of the next record that lie before pos
	cut     storage.Offset // what lies at or above it is no longer what the view has told of
	scratch []byte
	inOrder bool   // the last read went on where the one before had ended
	buffer  []byte // of ahead

	reading sync.WaitGroup // reading ahead
}

func (h *readHandle) read(ctx context.Context, dest []byte, pos int64, _ uint32) (int, error) {
	n, _, err := h.readOrLend(ctx, dest, pos, false, false)
	return n, err
}

// lend implements lender.
func (h *readHandle) lend(ctx context.Context, dest []byte, pos int64, cached bool) (int, *lentBytes, error) {
	return h.readOrLend(ctx, dest, pos, true, cached)
}

// readOrLend puts bytes from pos on into dest, or, where that is allowed and they lie ready, lends them. strict is for the page cache: before an error there,
// fewer bytes than were asked for would be the end of the file, and zeros up to the end of the page.
func (h *readHandle) readOrLend(ctx context.Context, dest []byte, pos int64, mayLend, strict bool) (int, *lentBytes, error) {
	if err := h.n.t.settle.wait(ctx, h.n.p.tp); err != nil {
		return 0, nil, err
	}
	if err := h.lock(ctx); err != nil {
		return 0, nil, err
	}
	kept := false
	defer func() {
		if !kept {
			h.unlock()
		}
	}()
	s, err := h.n.p.Snapshot(ctx) // now, not earlier: it shows whatever anybody has been told to be written
	if err != nil {
		return 0, nil, err
	}
	if ok, err := h.seek(ctx, s, pos); !ok || err != nil {
		return 0, nil, err
	}
	if mayLend && h.inOrder && len(h.ahead) == len(dest) && len(dest) >= aheadLeast {
		b := &lentBytes{b: h.ahead, buffer: h.buffer}
		h.ahead, h.buffer = nil, nil
		h.pos += int64(len(b.b))
		kept = true
		h.readAhead(context.WithoutCancel(ctx), s, len(b.b))
		return len(b.b), b, nil
	}
	n := h.takeLeft(dest)
	if n > 0 {
		ctx = context.WithoutCancel(ctx) // see fill
	}
	more, err := h.fill(ctx, s, dest[n:], pos+int64(n))
	n += more
	h.pos += int64(n)
	switch {
	case err == nil:
		if h.inOrder && n == len(dest) && n >= aheadLeast && len(h.ahead) == 0 && !h.readsBatches() {
			kept = true
			h.readAhead(context.WithoutCancel(ctx), s, n)
		}
		return n, nil, nil
	case strict:
		h.forget()
		return 0, nil, err
	case n > 0:
		return n, nil, nil // the read that begins there finds the error again, and so does the one after it
	}
	return 0, nil, err
}

// takeLeft hands out what was already read.
func (h *readHandle) takeLeft(dest []byte) int {
	n := copy(dest, h.ahead)
	h.ahead = h.ahead[n:]
	m := copy(dest[n:], h.left)
	h.left = h.left[m:]
	return n + m
}

// aheadLeast is the size of reads from which on it pays to read ahead. Batches lie on disk as they are read: one copy more would cost more than it gives.
const aheadLeast = 64 << 10

// readAhead prepares the next n bytes while the kernel copies the last ones and the program looks at them. It keeps the gate until it is done, so that
// the next read waits for it. Errors are left to that read.
func (h *readHandle) readAhead(ctx context.Context, s storage.Snapshot, n int) {
	h.reading.Go(func() {
		defer h.unlock()
		defer func() {
			if r := recover(); r != nil { // a handler that panics is an EIO; so shall this be, by the read that comes to the same place
				h.n.t.log.Error("panic while reading ahead", "path", h.n.p.tp.String(), "panic", r)
				h.forget()
			}
		}()
		if cap(h.buffer) < n {
			h.buffer = newBuffer(n)
		}
		b := h.buffer[:n]
		got := h.takeLeft(b)
		more, _ := h.fill(ctx, s, b[got:], h.pos+int64(got))
		h.ahead = b[:got+more]
		if len(h.ahead) == 0 {
			h.buffer = nil // at the end: who waits there for more needs no buffer
		}
	})
}

// seek makes pos the place to read from. It reports false where that is at or behind the end.
func (h *readHandle) seek(ctx context.Context, s storage.Snapshot, pos int64) (bool, error) {
	h.inOrder = h.known && pos == h.pos
	cut, lost := h.n.view.lost(s)
	if h.cut = cut; !lost {
		h.cut = math.MaxInt64
	}
	if h.inOrder && h.place() >= h.cut {
		h.inOrder = false
		h.forget()
	}
	if h.inOrder {
		if h.cur == nil {
			h.cur = s.Records(h.next)
		} else {
			h.cur.Advance(s)
		}
		return true, nil
	}
	var marks []mark
	if h.known && h.cur != nil && h.skip == 0 {
		marks = append(marks, mark{h.cur.Offset(), h.pos + int64(len(h.ahead)+len(h.left))})
	}
	o, skip, err := h.n.view.locate(ctx, s, pos, marks...)
	if err != nil {
		return false, err
	}
	if o >= h.n.view.end(s) && pos > 0 {
		return false, nil // nothing to remember: it may be far behind the end
	}
	h.forget()
	h.known, h.pos, h.skip, h.cur = true, pos, skip, s.Records(o)
	return true, nil
}

// place returns the offset below which all has been taken from the log.
func (h *readHandle) place() storage.Offset {
	if h.cur == nil {
		return h.next
	}
	return h.cur.Offset()
}

// forget drops the place.
func (h *readHandle) forget() {
	if h.cur != nil {
		h.cur.Close()
	}
	h.known, h.cur, h.ahead, h.left, h.skip = false, nil, nil, nil, 0
}

// fill puts records into dest, whose first byte is byte pos, until it is full or the view ends, or what is left of it in a log that was cut. left is empty when
// it is called, or dest is. Once there is a byte no signal cuts it short: reads of a regular file on a disk come back whole.
func (h *readHandle) fill(ctx context.Context, s storage.Snapshot, dest []byte, pos int64) (int, error) {
	v := h.n.view
	end := min(v.end(s), h.cut)
	defer func() { v.show(h.place()) }()
	n, begun := 0, context.WithoutCancel(ctx)
	for n < len(dest) {
		at := h.cur.Offset()
		if at >= end {
			return n, h.ended(s, pos+int64(n))
		}
		wait := ctx
		if n > 0 {
			wait = begun
		}
		took, err := h.take(wait, dest[n:], end)
		switch {
		case errors.Is(err, io.EOF):
			return n, h.ended(s, pos+int64(n))
		case err != nil:
			err = goesOn(ctx, h.cur, v.format, err)
			h.cur.Close()
			h.cur, h.next = nil, at
			return n, err
		}
		n += took
	}
	return n, nil
}

// ended says that all up to byte pos has been taken: the view ends there, or what is left of it in a log that was cut.
func (h *readHandle) ended(s storage.Snapshot, pos int64) error {
	if h.cut < h.n.view.end(s) {
		return cutError(h.cut)
	}
	h.n.view.learn(s, pos)
	return nil
}

// take puts the next record, or as much of it as there is room for, into dest; the rest becomes left.
func (h *readHandle) take(ctx context.Context, dest []byte, end storage.Offset) (int, error) {
	f := h.n.view.format
	if f == format.Batch {
		b, err := h.cur.NextBatch(ctx)
		if err != nil {
			return 0, err
		}
		if len(b) >= 8 && storage.Offset(binary.BigEndian.Uint64(b)) >= end { // a gap lay before it
			return 0, io.EOF
		}
		return h.split(dest, b)
	}
	r, err := h.cur.Next(ctx)
	if err != nil {
		return 0, err
	}
	if r.Offset >= end {
		return 0, io.EOF
	}
	if h.skip == 0 && atMost(f, r) <= len(dest) {
		return len(f.Append(dest[:0], r)), nil
	}
	h.scratch = f.Append(h.scratch[:0], r)
	return h.split(dest, h.scratch)
}

// split hands out the bytes of one record from skip on.
func (h *readHandle) split(dest, b []byte) (int, error) {
	if h.skip > int64(len(b)) {
		return 0, fmt.Errorf("%w: byte %d of a record of %d bytes", storage.ErrCorrupt, h.skip, len(b))
	}
	b = b[h.skip:]
	h.skip = 0
	n := copy(dest, b)
	if n == len(b) {
		return n, nil
	}
	if h.n.view.format == format.Batch { // b belongs to the cursor, which may be asked to go elsewhere
		h.scratch = append(h.scratch[:0], b[n:]...)
		h.left = h.scratch
	} else {
		h.left = b[n:]
	}
	return n, nil
}

// atMost bounds the bytes that a record takes, without looking at them.
func atMost(f format.Format, r *storage.Record) int {
	if f != format.JSON {
		return len(r.Key) + len(r.Value) + 2
	}
	n := 160 + 6*(len(r.Key)+len(r.Value))
	for i := range r.Headers {
		n += 64 + 6*(len(r.Headers[i].Key)+len(r.Headers[i].Value))
	}
	return n
}

func (h *readHandle) readsBatches() bool { return h.n.view.format == format.Batch }

func (h *readHandle) release() {
	h.reading.Wait()
	h.forget()
	h.scratch, h.buffer = nil, nil
	h.n.readers.Add(-1)
	h.n.t.readers.Add(-1)
}

// bothHandle is a tail opened for reading and writing.
type bothHandle struct {
	*readHandle
	*writeHandle
}

func (h *bothHandle) release() {
	h.readHandle.release()
	h.writeHandle.release()
}
