package record

import (
	"slices"

	"github.com/logmount/logmount/storage"
)

// Builder writes an uncompressed batch at the end of a buffer of the caller's. The zero value is ready; it may be used for any number of batches, one
// after the other. It does not keep the records.
//
// It is for records whose batch stays below 2 GiB: callers hold Size below max.message.bytes.
type Builder struct {
	buf    []byte
	start  int // of the batch in buf
	count  int32
	base   storage.Offset
	epoch  int32
	baseTS int64
	maxTS  int64
}

// Begin starts a batch behind the bytes of dst, which belongs to the Builder until Finish.
func (b *Builder) Begin(dst []byte, base storage.Offset, leaderEpoch int32) {
	var zero [HeaderSize]byte
	*b = Builder{buf: append(dst, zero[:]...), start: len(dst), base: base, epoch: leaderEpoch, baseTS: storage.NoTimestamp, maxTS: storage.NoTimestamp}
}

// Add appends a record. The first has the batch's base offset, each further one the next; rec.Offset is not looked at.
func (b *Builder) Add(rec *storage.Record) {
	if b.count == 0 {
		b.baseTS, b.maxTS = rec.Timestamp, rec.Timestamp
	}
	b.maxTS = max(b.maxTS, rec.Timestamp)
	ts, delta := rec.Timestamp-b.baseTS, int64(b.count)
	size := bodySize(rec, ts, delta)
	b.buf = appendRecord(slices.Grow(b.buf, size+varintSize(int64(size))), size, rec, ts, delta)
	b.count++
}

// Count returns the number of records added since Begin.
func (b *Builder) Count() int { return int(b.count) }

// Size returns the size of the batch as Finish would leave it.
func (b *Builder) Size() int { return len(b.buf) - b.start }

// SizeWith returns the size that the batch would have with one more record.
func (b *Builder) SizeWith(rec *storage.Record) int {
	ts := int64(0)
	if b.count > 0 {
		ts = rec.Timestamp - b.baseTS
	}
	size := bodySize(rec, ts, int64(b.count))
	return b.Size() + varintSize(int64(size)) + size
}

// Header returns the header that the batch has so far, with a CRC of 0.
func (b *Builder) Header() Header {
	return Header{
		BaseOffset:      b.base,
		Length:          int32(b.Size() - lengthBase),
		LeaderEpoch:     b.epoch,
		Magic:           magic,
		LastOffsetDelta: b.count - 1,
		BaseTimestamp:   b.baseTS,
		MaxTimestamp:    b.maxTS,
		ProducerID:      -1,
		ProducerEpoch:   -1,
		BaseSequence:    -1,
		Count:           b.count,
	}
}

// Finish completes the batch and returns dst of Begin with the batch behind it, or dst alone where no record was added. The Builder keeps neither.
func (b *Builder) Finish() []byte {
	buf := b.buf
	b.buf = nil
	if b.count == 0 {
		return buf[:b.start]
	}
	h := b.Header()
	h.Length = int32(len(buf) - b.start - lengthBase)
	h.put(buf[b.start:])
	seal(buf[b.start:])
	return buf
}

// SizeOf returns the size of an uncompressed batch that holds rec alone.
func SizeOf(rec *storage.Record) int {
	size := bodySize(rec, 0, 0)
	return HeaderSize + varintSize(int64(size)) + size
}
