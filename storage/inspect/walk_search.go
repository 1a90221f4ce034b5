package inspect

import (
	"errors"
	"io"
	"syscall"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// search returns the first position from pos on at which a good batch starts: a header that makes sense, offsets that can follow those before, a right
// checksum. The end where there is none, or where too much had to be looked at.
func (w *walker) search(pos storage.Pos) (storage.Pos, error) {
	for pos < w.end {
		b, err := w.fill(pos, record.HeaderSize)
		if err != nil && len(b) < record.FrameSize {
			if !w.tolerable(err) {
				return 0, err
			}
			pos = (pos/diskBlock + 1) * diskBlock
			continue
		}
		if len(b) < record.FrameSize {
			return w.end, nil
		}
		i, err := w.searchIn(b, pos)
		switch {
		case err != nil:
			return 0, err
		case i >= 0:
			return pos + storage.Pos(i), nil
		case w.budget <= 0, int64(len(b)) >= int64(w.end-pos):
			return w.end, nil
		}
		pos += storage.Pos(max(len(b)-record.HeaderSize+1, 1))
	}
	return w.end, nil
}

// searchIn looks for a good batch that starts in b, which lies at pos of the file, and returns its place in b, or -1.
func (w *walker) searchIn(b []byte, pos storage.Pos) (int, error) {
	whole := int64(len(b)) >= int64(w.end-pos)
	for i := 0; i+record.FrameSize <= len(b); i++ {
		if !whole && i+record.HeaderSize > len(b) {
			break
		}
		m := b[i+16]
		if b[i] != 0 || m > 2 || m < 2 && !w.legacy {
			continue
		}
		h, size, err := parseHead(b[i:])
		if err != nil || size > int64(w.end-pos)-int64(i) || size > maxBatch {
			continue
		}
		if h.BaseOffset < w.low || !w.fits(h.BaseOffset) || !w.fits(h.LastOffset()) {
			continue
		}
		if w.budget -= size; w.budget <= 0 {
			return -1, nil
		}
		at := pos + storage.Pos(i)
		raw := b[i:]
		if int64(len(raw)) < size {
			if raw, err = w.peek(at, int(size)); err != nil {
				if errors.Is(err, syscall.EIO) || errors.Is(err, io.ErrUnexpectedEOF) {
					continue // it reaches into a bad block
				}
				return -1, err
			}
		}
		if record.CheckCRC(raw[:size]) == nil {
			return i, nil
		}
	}
	return -1, nil
}
