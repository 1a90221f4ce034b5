package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

const (
	// maxBatch is the largest batch that is read as a whole; brokers take no larger message than an array of Java can be, and seldom more than 100 MB.
	maxBatch = 256 << 20
	// walkChunk is what is read ahead.
	walkChunk = 1 << 20
	// maxBadBlocks is how many blocks of a disk may be unreadable before a walk gives up.
	maxBadBlocks = 10000
	diskBlock    = 4096
)

// errStop, returned by a callback, ends a walk without an error.
var errStop = errors.New("stop")

// Gap says what a stretch of a log is that is no batch.
type Gap int

// The kinds of gaps.
const (
	NoGap   Gap = iota // a batch
	GapBad             // bytes in which no good batch starts
	GapTorn            // the start of a batch that ends behind the end of the file, and nothing good behind it: what a crash leaves
	GapZero            // zeros up to the end of the file: a preallocated log, or what a crash leaves
)

var gapNames = [...]string{"", "damaged", "torn", "zeros"}

// String returns a word for the kind.
func (g Gap) String() string {
	if g < 0 || int(g) >= len(gapNames) {
		return ""
	}
	return gapNames[g]
}

// Batch is one batch of a log, or entry of version 0 or 1, or a gap: a stretch in which there is none. The next one starts at Pos + Size.
type Batch struct {
	Pos    storage.Pos
	Size   int64
	Header record.Header // of a batch; where Err says that it cannot be parsed, BaseOffset, Length and Magic alone
	Raw    []byte        // the whole batch, valid during the call; nil in a gap and in a batch too large to be read
	CRCOK  bool          // the checksum matches
	Err    error         // what is wrong with the header, or why there is a gap; records are not looked at
	Gap    Gap
}

// End returns the position behind the batch or gap.
func (b *Batch) End() storage.Pos { return b.Pos + storage.Pos(b.Size) }

// Walk calls fn for each batch and each gap of a log of size bytes, in the order of the file, so that together they cover it. Where bytes make no batch, or
// one with a wrong checksum whose length is not believable either, it searches the next good one. base is the segment's base offset, which tells good
// offsets from bad ones in that search; below 0 it is unknown. Offsets are otherwise not judged: a batch with a good checksum and a wrong offset is a batch.
// A disk's read errors are gaps too. Walk ends when fn returns an error, with that error.
func Walk(r io.ReaderAt, size int64, base storage.Offset, fn func(Batch) error) error {
	return WalkFrom(r, 0, size, base, fn)
}

// WalkFrom is Walk from a position on at which a batch starts or is to be searched.
func WalkFrom(r io.ReaderAt, from storage.Pos, size int64, base storage.Offset, fn func(Batch) error) error {
	w := walker{r: r, end: storage.Pos(size), base: base, low: max(base, 0), legacy: true, budget: 256<<20 + 8*size}
	for pos := from; pos < w.end; {
		b, err := w.step(pos)
		if err != nil {
			return err
		}
		if err := fn(b); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
		pos = b.End()
	}
	return nil
}

// contextReader ends reads once a context is cancelled; so does a walk over it.
type contextReader struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call that takes the context.
	r   io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (c contextReader) ReadAt(b []byte, pos int64) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.ReadAt(b, pos)
}

// walker is the state of a Walk.
type walker struct {
	r    io.ReaderAt
	end  storage.Pos
	base storage.Offset
	low  storage.Offset // one above the last offset of the last good batch

	buf []byte // [at, at+len) of the file
	at  storage.Pos
	big []byte // for batches larger than walkChunk

	legacy bool  // batches of version 0 and 1 are searched too
	budget int64 // bytes that the searches may still checksum: what looks like batches may overlap without end
	bad    int   // blocks that could not be read
}

// fill returns what follows pos, at least n bytes unless the file ends before.
func (w *walker) fill(pos storage.Pos, n int) ([]byte, error) {
	n = int(min(int64(n), int64(w.end-pos)))
	if pos >= w.at && int64(pos-w.at)+int64(n) <= int64(len(w.buf)) {
		return w.buf[pos-w.at:], nil
	}
	if n > walkChunk {
		return w.peek(pos, n)
	}
	if cap(w.buf) == 0 {
		w.buf = make([]byte, 0, min(walkChunk, int64(w.end)))
	}
	w.buf = w.buf[:min(int64(cap(w.buf)), int64(w.end-pos))]
	m, err := w.r.ReadAt(w.buf, int64(pos))
	w.buf, w.at = w.buf[:m], pos
	return w.buf, shortRead(m, n, err)
}

// peek reads n bytes at pos into a buffer of their own, which leaves what was read ahead alone.
func (w *walker) peek(pos storage.Pos, n int) ([]byte, error) {
	if n > cap(w.big) {
		w.big = make([]byte, n)
	}
	m, err := w.r.ReadAt(w.big[:n], int64(pos))
	return w.big[:m], shortRead(m, n, err)
}

// shortRead is the error of a read that gave m bytes where n are needed.
func shortRead(m, n int, err error) error {
	if m >= n {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// tolerable reports whether a walk goes on behind a read error: a bad block, or a file that was cut meanwhile.
func (w *walker) tolerable(err error) bool {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	w.bad++
	return errors.Is(err, syscall.EIO) && w.bad < maxBadBlocks
}

// step returns what starts at pos, which is before the end.
func (w *walker) step(pos storage.Pos) (Batch, error) {
	head, err := w.fill(pos, record.HeaderSize)
	if err != nil && len(head) < record.FrameSize {
		return w.unreadable(pos, err)
	}
	h, size, err := parseHead(head)
	switch {
	case size == 0 && errors.Is(err, record.ErrZero):
		zero, zerr := w.zeros(pos)
		if zerr != nil {
			return w.unreadable(pos, zerr)
		}
		if zero {
			return Batch{Pos: pos, Size: int64(w.end - pos), Err: err, Gap: GapZero}, nil
		}
		return w.gap(pos, err, GapBad)
	case size == 0 && errors.Is(err, record.ErrTruncated):
		return Batch{Pos: pos, Size: int64(w.end - pos), Err: err, Gap: GapTorn}, nil
	case size == 0:
		return w.gap(pos, err, GapBad)
	case size > int64(w.end-pos):
		if err == nil {
			err = fmt.Errorf("%w: batch of %d bytes, %d are there", record.ErrTruncated, size, w.end-pos)
		}
		kind := GapBad
		if errors.Is(err, record.ErrTruncated) && h.BaseOffset >= w.low && w.fits(h.BaseOffset) {
			kind = GapTorn
		}
		return w.gap(pos, err, kind)
	}
	b := Batch{Pos: pos, Size: size, Header: h, Err: err}
	if size > maxBatch {
		err = fmt.Errorf("%w: batch of %d bytes", record.ErrTooLarge, size)
		b.Err = err
	} else {
		raw, rerr := w.fill(pos, int(size))
		if rerr != nil {
			return w.unreadable(pos, rerr)
		}
		b.Raw = raw[:size:size]
		crc := record.CheckCRC(b.Raw)
		b.CRCOK = crc == nil
		if err == nil {
			err = crc
		}
	}
	if err == nil {
		w.low, w.legacy = h.NextOffset(), h.Magic < 2
		return b, nil
	}
	if ok, err := w.plausible(b.End()); err != nil || !ok {
		if err != nil && !w.tolerable(err) {
			return Batch{}, err
		}
		return w.gap(pos, errors.Join(b.Err, crcError(b)), GapBad)
	}
	if b.Raw != nil && len(w.buf) > 0 {
		// Looking at what follows may have moved the buffer.
		raw, err := w.fill(pos, int(size))
		if err != nil {
			return w.unreadable(pos, err)
		}
		b.Raw = raw[:size:size]
	}
	return b, nil
}

// crcError is what is wrong with the checksum of a batch.
func crcError(b Batch) error {
	if b.Raw == nil || b.CRCOK {
		return nil
	}
	return record.CheckCRC(b.Raw)
}

// parseHead reads the header of the batch that starts at b, of any version. Where the frame makes sense and the rest does not, size is not 0 and the
// header holds what the frame tells.
func parseHead(b []byte) (record.Header, int64, error) {
	f, err := record.ParseFrame(b)
	if err != nil {
		return record.Header{}, 0, err
	}
	parse := record.ParseHeader
	if f.Magic == 0 || f.Magic == 1 {
		parse = record.ParseLegacy
	}
	h, err := parse(b)
	if err != nil {
		h = record.Header{BaseOffset: f.Offset, Length: int32(f.Size - 12), Magic: f.Magic, LeaderEpoch: -1, BaseTimestamp: storage.NoTimestamp,
			MaxTimestamp: storage.NoTimestamp, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Count: -1}
	}
	return h, f.Size, err
}

// plausible reports whether a batch seems to start at pos, or the file to end there: whether the length of the batch before can be believed.
func (w *walker) plausible(pos storage.Pos) (bool, error) {
	if pos >= w.end {
		return true, nil
	}
	b, err := w.fill(pos, record.HeaderSize)
	if err != nil {
		return false, err
	}
	h, size, err := parseHead(b)
	if size == 0 {
		return errors.Is(err, record.ErrZero), nil
	}
	return err == nil && w.fits(h.BaseOffset) && h.BaseOffset >= w.low, nil
}

// fits reports whether the segment can hold the offset.
func (w *walker) fits(o storage.Offset) bool {
	return w.base < 0 || o >= w.base && o-w.base <= index.MaxRelative
}

// unreadable is the gap that begins with a read error.
func (w *walker) unreadable(pos storage.Pos, err error) (Batch, error) {
	if !w.tolerable(err) {
		return Batch{}, err
	}
	return w.gap(pos, err, GapBad)
}

// gap is the stretch from pos up to the next good batch, or to the end; there it is of the given kind.
func (w *walker) gap(pos storage.Pos, why error, atEnd Gap) (Batch, error) {
	next, err := w.search(pos + 1)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{Pos: pos, Size: int64(next - pos), Err: why, Gap: GapBad}
	if next == w.end {
		b.Gap = atEnd
	}
	return b, nil
}

// zeros reports whether there is nothing but zeros from pos on.
func (w *walker) zeros(pos storage.Pos) (bool, error) {
	for pos < w.end {
		b, err := w.fill(pos, 1)
		if err != nil {
			return false, err
		}
		for _, c := range b {
			if c != 0 {
				return false, nil
			}
		}
		pos += storage.Pos(len(b))
	}
	return true, nil
}
