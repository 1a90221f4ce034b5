package storagetest

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// batchHeader is the size of the header of a record batch of format v2.
const batchHeader = 61

// bytesField appends a length as a varint and the bytes; a nil slice has the length -1.
func bytesField(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// encodeRecord appends one record as it lies in a batch with the given base offset and base timestamp.
func encodeRecord(dst []byte, r *storage.Record, base storage.Offset, baseTimestamp int64) []byte {
	body := []byte{0}
	body = binary.AppendVarint(body, r.Timestamp-baseTimestamp)
	body = binary.AppendVarint(body, int64(r.Offset-base))
	body = bytesField(body, r.Key)
	body = bytesField(body, r.Value)
	body = binary.AppendVarint(body, int64(len(r.Headers)))
	for _, h := range r.Headers {
		body = binary.AppendVarint(body, int64(len(h.Key)))
		body = append(body, h.Key...)
		body = bytesField(body, h.Value)
	}
	return append(binary.AppendVarint(dst, int64(len(body))), body...)
}

// encodeBatch returns the uncompressed v2 batch that holds the records, whose offsets are consecutive, with leader epoch 0 and no producer.
func encodeBatch(records []storage.Record) []byte {
	base, baseTimestamp := records[0].Offset, records[0].Timestamp
	maxTimestamp := baseTimestamp
	b := make([]byte, batchHeader)
	for i := range records {
		maxTimestamp = max(maxTimestamp, records[i].Timestamp)
		b = encodeRecord(b, &records[i], base, baseTimestamp)
	}
	be := binary.BigEndian
	be.PutUint64(b, uint64(base))
	be.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	be.PutUint32(b[23:], uint32(len(records)-1))
	be.PutUint64(b[27:], uint64(baseTimestamp))
	be.PutUint64(b[35:], uint64(maxTimestamp))
	for i := 43; i < 57; i++ { // producer id, epoch and sequence: none
		b[i] = 0xff
	}
	be.PutUint32(b[57:], uint32(len(records)))
	be.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// aloneSize returns the size of the batch that holds the record alone.
func aloneSize(r *storage.Record) int64 {
	one := *r
	one.Offset = 0
	return int64(len(encodeBatch([]storage.Record{one})))
}

// cut divides records, which have their offsets, into batches of at most batchBytes; a record larger than that has a batch of its own.
func cut(records []storage.Record, batchBytes int) [][]storage.Record {
	var out [][]storage.Record
	for len(records) > 0 {
		n := 1
		for n < len(records) && len(encodeBatch(records[:n+1])) <= batchBytes {
			n++
		}
		out = append(out, records[:n])
		records = records[n:]
	}
	return out
}

// decodeBatch returns the data records of one whole batch. Here alone the model trusts package record, for compression.
func decodeBatch(b []byte) ([]storage.Record, error) {
	var rd record.Reader
	h, _, err := rd.Validate(b)
	if err != nil || h.Attributes.Control() {
		return nil, err
	}
	if err := rd.Reset(b); err != nil {
		return nil, err
	}
	var out []storage.Record
	for {
		var r storage.Record
		ok, err := rd.Next(&r)
		if err != nil || !ok {
			return out, err
		}
		out = append(out, cloneRecord(&r, r.Offset))
	}
}
