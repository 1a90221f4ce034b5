package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/logmount/logmount/storage"
)

// Positions in an entry of version 0 or 1. Only version 1 has a timestamp; the key's length stands behind it.
const (
	atLegacyCRC        = 12
	atLegacyBody       = 16 // the checksum covers the entry from here on
	atLegacyAttributes = 17
	atLegacyTimestamp  = 18
	atLegacyKey0       = 18
	atLegacyKey1       = 26

	maxLegacyCodec = LZ4 // the versions are older than zstd
)

// legacyAttributes are the bits that an entry of version 1 may have; version 0 has the codec alone.
const legacyAttributes = attrCodec | AttrLogAppendTime

func legacyMagic(m int8) bool { return m == 0 || m == 1 }

func legacyKeyAt(magic int8) int {
	if magic == 0 {
		return atLegacyKey0
	}
	return atLegacyKey1
}

// ParseLegacy reads what the entry of version 0 or 1 that starts at b tells without being decompressed. It needs the first 30 bytes, and checks that key
// and value fill the entry where b reaches as far as that takes. Errors are those of ParseFrame and ErrMalformed, for other versions too.
//
// A plain entry is one record: Count is 1, base and last offset are its own. An entry with a codec is a wrapper around records, of which it knows the
// last offset alone: Count is then -1, for unknown, and BaseOffset is the last offset too. Reader.Header has the true ones once Reset has decoded the
// wrapper. The fields that these versions lack are -1: leader epoch, producer, and BaseTimestamp; in version 0 also MaxTimestamp, which is
// storage.NoTimestamp.
func ParseLegacy(b []byte) (Header, error) {
	f, err := ParseFrame(b)
	if err != nil {
		return Header{}, err
	}
	if !legacyMagic(f.Magic) {
		return Header{}, fmt.Errorf("%w: version %d where 0 or 1 is expected", ErrMalformed, f.Magic)
	}
	at := legacyKeyAt(f.Magic)
	if len(b) < at+4 {
		return Header{}, fmt.Errorf("%w: %d bytes where an entry of version %d begins with %d", ErrTruncated, len(b), f.Magic, at+4)
	}
	if f.Offset == maxOffset {
		return Header{}, fmt.Errorf("%w: offset %d", ErrMalformed, f.Offset)
	}
	h := Header{
		BaseOffset:    f.Offset,
		Length:        int32(f.Size - lengthBase),
		LeaderEpoch:   -1,
		Magic:         f.Magic,
		CRC:           binary.BigEndian.Uint32(b[atLegacyCRC:]),
		Attributes:    Attributes(b[atLegacyAttributes]) & attrCodec,
		BaseTimestamp: storage.NoTimestamp,
		MaxTimestamp:  storage.NoTimestamp,
		ProducerID:    -1,
		ProducerEpoch: -1,
		BaseSequence:  -1,
		Count:         1,
	}
	if f.Magic == 1 {
		h.Attributes = Attributes(b[atLegacyAttributes]) & legacyAttributes
		h.MaxTimestamp = int64(binary.BigEndian.Uint64(b[atLegacyTimestamp:]))
	}
	if h.Attributes.Codec() != None {
		h.Count = -1
	}
	left := f.Size - int64(at) - 8
	key := int64(int32(binary.BigEndian.Uint32(b[at:])))
	if key < -1 || key > left {
		return Header{}, errKey
	}
	key = max(key, 0)
	if i := int64(at) + 4 + key; i+4 <= int64(len(b)) {
		if value := int64(int32(binary.BigEndian.Uint32(b[i:]))); value < -1 || max(value, 0) != left-key {
			return Header{}, errValue
		}
	}
	return h, nil
}

// legacyFields is where the parts of one entry lie.
type legacyFields struct {
	h     Header
	key   []byte
	value []byte
}

// parseLegacy parses the whole entry that starts at b and may be followed by others.
func parseLegacy(b []byte, f *legacyFields) error {
	var err error
	if f.h, err = ParseLegacy(b); err != nil {
		return err
	}
	if f.h.Size() > int64(len(b)) {
		return fmt.Errorf("%w: entry of %d bytes, %d are there", ErrTruncated, f.h.Size(), len(b))
	}
	b = b[legacyKeyAt(f.h.Magic):f.h.Size()]
	f.key, b = legacyField(b)
	f.value, _ = legacyField(b)
	return nil
}

// legacyField takes a key or value and its length, which ParseLegacy has found to be right, from the start of b.
func legacyField(b []byte) (field, rest []byte) {
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n < 0 {
		return nil, b
	}
	return b[:n:n], b[n:]
}

// checkLegacyCRC is CheckCRC for versions 0 and 1.
func checkLegacyCRC(entry []byte) error {
	stored := binary.BigEndian.Uint32(entry[atLegacyCRC:])
	if sum := crc32.ChecksumIEEE(entry[atLegacyBody:]); sum != stored {
		return fmt.Errorf("%w: stored %08x, computed %08x", ErrCRC, stored, sum)
	}
	return nil
}

// sealLegacy puts the checksum into an entry.
func sealLegacy(entry []byte) {
	binary.BigEndian.PutUint32(entry[atLegacyCRC:], crc32.ChecksumIEEE(entry[atLegacyBody:]))
}
