package inspect

import (
	"errors"
	"fmt"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
)

// errNoBatch says that a log has no batch that could be found for an offset.
var errNoBatch = errors.New("no such batch")

// locator finds the batches of a log by their headers. Questions with ascending offsets are answered in one pass.
type locator struct {
	log  io.ReaderAt
	size int64
	base storage.Offset

	offsets *index.Offsets // may be nil
	closer  io.Closer
	pos     storage.Pos // where the pass stands: no batch before it ends at or above low
	low     storage.Offset
}

// useIndex takes an offset index, unless it is not one.
func (l *locator) useIndex(r io.ReaderAt, f vfs.File) {
	l.closer = f
	i, err := f.Stat()
	if err != nil {
		return
	}
	n, err := index.CountOffsets(r, i.Size)
	if err != nil || index.CheckOffsets(r, n, l.base, l.size) != nil {
		return
	}
	l.offsets = &index.Offsets{R: r, N: n, Base: l.base}
}

func (l *locator) close() {
	if l.closer != nil {
		_ = l.closer.Close() // only read
	}
}

// header reads the header of the batch at pos.
func (l *locator) header(pos storage.Pos) (record.Header, error) {
	if pos < 0 || int64(pos) >= l.size {
		return record.Header{}, fmt.Errorf("position %d: %w", pos, errNoBatch)
	}
	var b [record.HeaderSize]byte
	n, err := l.log.ReadAt(b[:], int64(pos))
	if err != nil && !errors.Is(err, io.EOF) {
		return record.Header{}, err
	}
	h, size, err := parseHead(b[:n])
	if err != nil || size > l.size-int64(pos) {
		return record.Header{}, fmt.Errorf("position %d: %w", pos, errNoBatch)
	}
	return h, nil
}

// find returns the header and place of the first batch whose last offset is at least o. A batch that cannot be read ends the search.
func (l *locator) find(o storage.Offset) (record.Header, storage.Pos, error) {
	if o < l.low {
		l.pos, l.low = 0, 0
	}
	if l.offsets != nil {
		if e, i, err := l.offsets.Floor(o); err == nil && i >= 0 && e.Pos > l.pos {
			if h, err := l.header(e.Pos); err == nil && h.BaseOffset <= o {
				l.pos = e.Pos
			}
		}
	}
	l.low = o
	for {
		h, err := l.header(l.pos)
		if err != nil {
			return h, l.pos, err
		}
		if h.LastOffset() >= o {
			return h, l.pos, nil
		}
		l.pos += storage.Pos(h.Size())
	}
}

// seek returns where the first batch starts that ends behind pos and at or above offset o.
func (l *locator) seek(pos storage.Pos, o storage.Offset) (storage.Pos, error) {
	if l.offsets != nil {
		a, i, err := l.offsets.FloorPos(pos)
		if err == nil && i >= 0 {
			l.pos = a.Pos
		}
	}
	for {
		h, err := l.header(l.pos)
		if err != nil {
			return 0, err
		}
		if l.pos+storage.Pos(h.Size()) > pos {
			break
		}
		l.pos += storage.Pos(h.Size())
	}
	_, at, err := l.find(max(o, l.base))
	return at, err
}
