package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/logmount/logmount/storage"
)

// Positions of the header's fields.
const (
	atLength        = 8
	atLeaderEpoch   = 12
	atMagic         = 16
	atCRC           = 17
	atAttributes    = 21 // the checksum covers the batch from here on
	atLastDelta     = 23
	atBaseTimestamp = 27
	atMaxTimestamp  = 35
	atProducerID    = 43
	atProducerEpoch = 51
	atBaseSequence  = 53
	atCount         = 57
)

const magic = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxOffset is no offset of a record: the one behind it could not be told.
const maxOffset = storage.Offset(math.MaxInt64)

// Header is the header of a batch of version 2, and what entries of version 0 and 1 have of it: see ParseLegacy.
type Header struct {
	BaseOffset      storage.Offset
	Length          int32 // bytes behind the length field
	LeaderEpoch     int32 // -1 is none
	Magic           int8
	CRC             uint32
	Attributes      Attributes
	LastOffsetDelta int32
	BaseTimestamp   int64 // what the records' timestamps count from
	MaxTimestamp    int64
	ProducerID      int64 // -1 is none
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32 // records; fewer than offsets where compaction took some; -1 is unknown, from ParseLegacy alone
}

// Size returns the size of the whole batch.
func (h *Header) Size() int64 { return lengthBase + int64(h.Length) }

// LastOffset returns the last offset that the batch takes, whether or not a record still has it.
func (h *Header) LastOffset() storage.Offset { return h.BaseOffset + storage.Offset(h.LastOffsetDelta) }

// NextOffset returns the first offset behind the batch.
func (h *Header) NextOffset() storage.Offset { return h.LastOffset() + 1 }

// ParseHeader reads the header of the batch that starts at b and checks what can be checked without the rest of it. Errors are those of ParseFrame,
// ErrMalformed, and storage.ErrUnsupported for unknown codecs and versions 0 and 1, which ParseLegacy reads.
func ParseHeader(b []byte) (Header, error) {
	f, err := ParseFrame(b)
	if err != nil {
		return Header{}, err
	}
	switch {
	case f.Magic == 0 || f.Magic == 1:
		return Header{}, fmt.Errorf("message format version %d: %w", f.Magic, storage.ErrUnsupported)
	case f.Magic != magic:
		return Header{}, fmt.Errorf("%w: version %d", ErrMalformed, f.Magic)
	case len(b) < HeaderSize:
		return Header{}, fmt.Errorf("%w: %d bytes where a header takes %d", ErrTruncated, len(b), HeaderSize)
	}
	b = b[:HeaderSize]
	h := Header{
		BaseOffset:      f.Offset,
		Length:          int32(f.Size - lengthBase),
		LeaderEpoch:     int32(binary.BigEndian.Uint32(b[atLeaderEpoch:])),
		Magic:           f.Magic,
		CRC:             binary.BigEndian.Uint32(b[atCRC:]),
		Attributes:      Attributes(binary.BigEndian.Uint16(b[atAttributes:])),
		LastOffsetDelta: int32(binary.BigEndian.Uint32(b[atLastDelta:])),
		BaseTimestamp:   int64(binary.BigEndian.Uint64(b[atBaseTimestamp:])),
		MaxTimestamp:    int64(binary.BigEndian.Uint64(b[atMaxTimestamp:])),
		ProducerID:      int64(binary.BigEndian.Uint64(b[atProducerID:])),
		ProducerEpoch:   int16(binary.BigEndian.Uint16(b[atProducerEpoch:])),
		BaseSequence:    int32(binary.BigEndian.Uint32(b[atBaseSequence:])),
		Count:           int32(binary.BigEndian.Uint32(b[atCount:])),
	}
	switch {
	case h.Count < 0:
		return Header{}, fmt.Errorf("%w: record count %d", ErrMalformed, h.Count)
	case h.LastOffsetDelta < 0:
		return Header{}, fmt.Errorf("%w: last offset delta %d", ErrMalformed, h.LastOffsetDelta)
	case int64(h.BaseOffset) > math.MaxInt64-1-int64(h.LastOffsetDelta):
		return Header{}, fmt.Errorf("%w: base offset %d with last offset delta %d", ErrMalformed, h.BaseOffset, h.LastOffsetDelta)
	case !h.Attributes.Codec().known():
		return Header{}, fmt.Errorf("compression %v: %w", h.Attributes.Codec(), storage.ErrUnsupported)
	}
	return h, nil
}

// put writes the header, with a checksum of 0, to the first HeaderSize bytes of b.
func (h *Header) put(b []byte) {
	b = b[:HeaderSize]
	binary.BigEndian.PutUint64(b, uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[atLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[atLeaderEpoch:], uint32(h.LeaderEpoch))
	b[atMagic] = magic
	binary.BigEndian.PutUint32(b[atCRC:], 0)
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[atLastDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[atCount:], uint32(h.Count))
}

// seal puts the checksum into a batch.
func seal(batch []byte) {
	binary.BigEndian.PutUint32(batch[atCRC:], crc32.Checksum(batch[atAttributes:], castagnoli))
}

// CheckCRC compares the checksum of a whole batch or entry, exactly as long as its header says, with its bytes. Offset and length are not covered by it,
// nor are leader epoch and version of version 2. Records inside an entry of version 0 or 1 have checksums of their own, which Reader compares.
func CheckCRC(batch []byte) error {
	if len(batch) >= minLegacy0 && legacyMagic(int8(batch[atMagic])) {
		return checkLegacyCRC(batch)
	}
	if len(batch) < HeaderSize {
		return fmt.Errorf("%w: %d bytes where a header takes %d", ErrTruncated, len(batch), HeaderSize)
	}
	stored := binary.BigEndian.Uint32(batch[atCRC:])
	if sum := crc32.Checksum(batch[atAttributes:], castagnoli); sum != stored {
		return fmt.Errorf("%w: stored %08x, computed %08x", ErrCRC, stored, sum)
	}
	return nil
}
