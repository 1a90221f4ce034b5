package record

import (
	"encoding/binary"
	"fmt"

	"github.com/logmount/logmount/storage"
)

const (
	// FrameSize is the number of bytes that ParseFrame looks at.
	FrameSize = 17
	// HeaderSize is the number of bytes before the records of a batch.
	HeaderSize = 61

	lengthBase = 12 // bytes before what the length field counts

	minLegacy0 = lengthBase + 14
	minLegacy1 = lengthBase + 22
)

// Frame is what entries of all versions begin with.
type Frame struct {
	Offset storage.Offset // base offset; in a compressed entry of version 0 or 1 the offset of its last record
	Size   int64          // of the whole entry
	Magic  int8           // format version, not checked
}

// ParseFrame reads the frame of the entry that starts at b, of whichever version. It says nothing about whether b holds the whole entry, and sets no
// upper limit to its size. Fewer than FrameSize bytes are ErrTruncated, zeros ErrZero, a size below the version's minimum ErrMalformed.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < FrameSize {
		return Frame{}, fmt.Errorf("%w: %d bytes where a frame takes %d", ErrTruncated, len(b), FrameSize)
	}
	offset := int64(binary.BigEndian.Uint64(b))
	length := int32(binary.BigEndian.Uint32(b[8:]))
	f := Frame{Offset: storage.Offset(offset), Size: lengthBase + int64(length), Magic: int8(b[16])}
	if offset == 0 && length == 0 && b[16] == 0 {
		return Frame{}, ErrZero
	}
	if offset < 0 {
		return Frame{}, fmt.Errorf("%w: base offset %d", ErrMalformed, offset)
	}
	least := int64(HeaderSize)
	switch {
	case f.Magic <= 0:
		least = minLegacy0
	case f.Magic == 1:
		least = minLegacy1
	}
	if f.Size < least {
		return Frame{}, fmt.Errorf("%w: length %d in an entry of version %d", ErrMalformed, length, f.Magic)
	}
	return f, nil
}
