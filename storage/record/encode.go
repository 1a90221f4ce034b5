package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/logmount/logmount/storage"
)

// bodySize returns the size of a record behind its length field.
func bodySize(r *storage.Record, timestampDelta int64, offsetDelta int64) int {
	n := 1 + varintSize(timestampDelta) + varintSize(offsetDelta) + fieldSize(r.Key) + fieldSize(r.Value) + varintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintSize(int64(len(h.Key))) + len(h.Key) + fieldSize(h.Value)
	}
	return n
}

func fieldSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

// appendRecord appends a record whose body takes size bytes.
func appendRecord(b []byte, size int, r *storage.Record, timestampDelta int64, offsetDelta int64) []byte {
	b = appendVarint(b, int64(size))
	b = append(b, 0)
	b = appendVarint(b, timestampDelta)
	b = appendVarint(b, offsetDelta)
	b = appendField(b, r.Key)
	b = appendField(b, r.Value)
	b = appendVarint(b, int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		b = appendVarint(b, int64(len(h.Key)))
		b = append(b, h.Key...)
		b = appendField(b, h.Value)
	}
	return b
}

func appendField(b, f []byte) []byte {
	if f == nil {
		return append(b, 1)
	}
	b = appendVarint(b, int64(len(f)))
	return append(b, f...)
}

// NewHeader returns the header that a plain producer's batch of recs would have: base offset and base timestamp of the first record, last offset of the
// last, the largest timestamp, no producer. Its Length and CRC are left to Encode.
func NewHeader(recs []storage.Record, leaderEpoch int32) Header {
	h := Header{Magic: magic, LeaderEpoch: leaderEpoch, BaseTimestamp: -1, MaxTimestamp: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
	if len(recs) == 0 {
		return h
	}
	h.BaseOffset, h.BaseTimestamp, h.MaxTimestamp = recs[0].Offset, recs[0].Timestamp, recs[0].Timestamp
	for i := range recs {
		h.MaxTimestamp = max(h.MaxTimestamp, recs[i].Timestamp)
	}
	h.LastOffsetDelta = int32(recs[len(recs)-1].Offset - h.BaseOffset)
	h.Count = int32(len(recs))
	return h
}

// Encode appends to dst the batch with the header fields of h and the given records. Length, version, checksum, count and the codec in the attributes
// are worked out; all else is taken from h as it is. The records' offsets must ascend within h's, ErrMalformed else. A batch without records has no
// codec. A nil key of a header is written as an empty one.
func Encode(dst []byte, h Header, recs []storage.Record, codec Codec) ([]byte, error) {
	if !codec.known() {
		return dst, fmt.Errorf("compression %v: %w", codec, storage.ErrUnsupported)
	}
	if h.BaseOffset < 0 || h.LastOffsetDelta < 0 || int64(h.BaseOffset) > math.MaxInt64-1-int64(h.LastOffsetDelta) {
		return dst, fmt.Errorf("%w: base offset %d with last offset delta %d", ErrMalformed, h.BaseOffset, h.LastOffsetDelta)
	}
	start := len(dst)
	b := append(dst, make([]byte, HeaderSize)...)
	last := int64(-1)
	for i := range recs {
		r := &recs[i]
		delta := int64(r.Offset - h.BaseOffset)
		if r.Offset < h.BaseOffset || delta <= last || delta > int64(h.LastOffsetDelta) {
			return dst, fmt.Errorf("%w: offset %d of record %d in a batch of %d to %d", ErrMalformed, r.Offset, i, h.BaseOffset, h.LastOffset())
		}
		last = delta
		size := bodySize(r, r.Timestamp-h.BaseTimestamp, delta)
		if size > math.MaxInt32 {
			return dst, fmt.Errorf("%w: record of %d bytes", ErrTooLarge, size)
		}
		b = appendRecord(b, size, r, r.Timestamp-h.BaseTimestamp, delta)
	}
	if len(recs) == 0 {
		codec = None
	}
	if codec != None {
		c, err := compress(codec, nil, b[start+HeaderSize:])
		if err != nil {
			return dst, err
		}
		b = append(b[:start+HeaderSize], c...)
	}
	length := len(b) - start - lengthBase
	if length > math.MaxInt32 || len(recs) > math.MaxInt32 {
		return dst, fmt.Errorf("%w: batch of %d bytes and %d records", ErrTooLarge, length, len(recs))
	}
	h.Length, h.Count, h.Attributes = int32(length), int32(len(recs)), h.Attributes.WithCodec(codec)
	h.put(b[start:])
	seal(b[start:])
	return b, nil
}

// Rebase gives a batch, in place, another base offset and leader epoch; neither is under the checksum. With clear it also takes the producer out: id,
// epoch, sequence and the transactional bit go, and the checksum is computed anew. The batch must have passed Validate or CheckCRC before.
func Rebase(batch []byte, base storage.Offset, leaderEpoch int32, clear bool) {
	binary.BigEndian.PutUint64(batch, uint64(base))
	binary.BigEndian.PutUint32(batch[atLeaderEpoch:], uint32(leaderEpoch))
	if !clear {
		return
	}
	for i := atProducerID; i < atCount; i++ {
		batch[i] = 0xff
	}
	a := Attributes(binary.BigEndian.Uint16(batch[atAttributes:]))
	binary.BigEndian.PutUint16(batch[atAttributes:], uint16(a&^AttrTransactional))
	seal(batch)
}
