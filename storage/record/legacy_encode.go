package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/logmount/logmount/storage"
)

// lz4OldCheck is what stands for the checksum of the frame header of 64 KiB blocks in version 0.
const lz4OldCheck = 0x1a

// EncodeLegacy appends to dst the records as entries of version 0 or 1, as a broker of that time has them on disk: an entry for each record where
// a has no codec, else one wrapper. Version 0 keeps no timestamps. With AttrLogAppendTime in version 1 a reader is to take a wrapper's timestamp, which is
// the largest there is, for all its records. Other attributes are not looked at.
//
// No log that can be written has these versions: it is for those who must have such logs made, which are the tests. ErrMalformed where offsets do not
// ascend, a record has headers or the version is another; storage.ErrUnsupported for zstd.
func EncodeLegacy(dst []byte, version int8, a Attributes, recs []storage.Record) ([]byte, error) {
	codec := a.Codec()
	if !legacyMagic(version) {
		return dst, fmt.Errorf("%w: version %d where 0 or 1 is expected", ErrMalformed, version)
	}
	if codec > maxLegacyCodec {
		return dst, fmt.Errorf("compression %v in message format version %d: %w", codec, version, storage.ErrUnsupported)
	}
	if len(recs) == 0 {
		return dst, nil
	}
	a &= legacyAttributes
	if version == 0 {
		a &= attrCodec
	}
	wrapped := codec != None
	var b []byte
	if !wrapped {
		b = dst
	}
	wrapper := storage.Record{Offset: recs[len(recs)-1].Offset, Timestamp: recs[0].Timestamp}
	for i := range recs {
		r := recs[i]
		if r.Offset < 0 || r.Offset == maxOffset || (i > 0 && r.Offset <= recs[i-1].Offset) || len(r.Headers) > 0 {
			return dst, fmt.Errorf("%w: record %d with offset %d and %d headers", ErrMalformed, i, r.Offset, len(r.Headers))
		}
		wrapper.Timestamp = max(wrapper.Timestamp, r.Timestamp)
		attributes := a
		if wrapped {
			attributes = 0
			if version == 1 {
				r.Offset -= recs[0].Offset
			}
		}
		var err error
		if b, err = appendLegacy(b, version, attributes, &r); err != nil {
			return dst, err
		}
	}
	if !wrapped {
		return b, nil
	}
	value, err := compress(codec, nil, b)
	if err != nil {
		return dst, err
	}
	if codec == LZ4 && version == 0 {
		value[6] = lz4OldCheck
	}
	wrapper.Value = value
	return appendLegacy(dst, version, a, &wrapper)
}

// appendLegacy appends one entry.
func appendLegacy(b []byte, version int8, a Attributes, r *storage.Record) ([]byte, error) {
	size := int64(legacyKeyAt(version)) + 8 + int64(len(r.Key)) + int64(len(r.Value))
	if size > math.MaxInt32 {
		return b, fmt.Errorf("%w: entry of %d bytes", ErrTooLarge, size)
	}
	start := len(b)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Offset))
	b = binary.BigEndian.AppendUint32(b, uint32(size-lengthBase))
	b = append(b, 0, 0, 0, 0, byte(version), byte(a))
	if version == 1 {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Timestamp))
	}
	b = appendLegacyField(b, r.Key)
	b = appendLegacyField(b, r.Value)
	sealLegacy(b[start:])
	return b, nil
}

func appendLegacyField(b, f []byte) []byte {
	if f == nil {
		return append(b, 0xff, 0xff, 0xff, 0xff)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
	return append(b, f...)
}
