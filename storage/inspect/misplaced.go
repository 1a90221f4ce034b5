package inspect

import (
	"fmt"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// Place says which offsets may stand somewhere in a log.
type Place struct {
	Base storage.Offset // of the segment; -1 where nobody knows it
	Low  storage.Offset // the smallest; it is expected there unless offsets are missing
	Next storage.Offset // where the next segment starts
}

// Misplaced says why a batch of log with a right checksum, which does not cover offsets, cannot be where it is. end is where it ends.
func Misplaced(log io.ReaderAt, h *record.Header, end storage.Pos, p Place) error {
	switch {
	case h.BaseOffset < p.Low:
		return fmt.Errorf("offsets %d to %d where %d or more is expected", h.BaseOffset, h.LastOffset(), p.Low)
	case p.Base >= 0 && h.LastOffset()-p.Base > index.MaxRelative:
		return fmt.Errorf("offset %d is too far from the segment's base %d", h.LastOffset(), p.Base)
	case h.LastOffset() >= p.Next:
		return fmt.Errorf("offsets %d to %d reach into the next segment, which starts at %d", h.BaseOffset, h.LastOffset(), p.Next)
	case h.BaseOffset == p.Low:
		return nil
	}
	// A batch behind it that fits better tells that this one's offset is wrong.
	var buf [record.FrameSize]byte
	if n, _ := log.ReadAt(buf[:], int64(end)); n < len(buf) {
		return nil
	}
	if f, err := record.ParseFrame(buf[:]); err == nil && f.Offset >= p.Low && f.Offset < h.NextOffset() {
		return fmt.Errorf("offset %d before a batch with offset %d, where %d is expected", h.BaseOffset, f.Offset, p.Low)
	}
	return nil
}
