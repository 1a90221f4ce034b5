package record

import (
	"fmt"

	"github.com/logmount/logmount/storage"
)

const (
	limitBase  = 128 << 20 // decoded bytes that any batch may have
	limitRatio = 8         // and for each compressed byte

	keepScratch = 1 << 20 // larger buffers are let go of once batches no longer need them
	keepHeaders = 1 << 10

	maxHeaders = 1 << 20 // of one record; a header of 2 bytes becomes one of 48
)

// Reader decodes the records of a batch, and of another one after each Reset. The zero value is ready.
type Reader struct {
	// Limit bounds the decompressed bytes of a batch; 0 means 128 MiB and 8 times the compressed size.
	Limit int64

	h       Header
	b       []byte // the records
	i       int    // position of the next record in b
	left    int32  // records not yet returned
	prev    int32  // offset delta of the record before
	err     error  // found by Reset or Next
	scratch []byte // decompressed records
	used    int    // bytes of scratch that the present batch needs
	headers []storage.Header
	old     legacyState
}

// Reset begins with another batch, or entry of version 0 or 1, which must be whole and nothing more. It checks the header and decompresses the records but
// does not check the checksum (CheckCRC). The batch must not change while it is being read.
func (r *Reader) Reset(batch []byte) error {
	if cap(r.scratch) > keepScratch && r.used < cap(r.scratch)/4 {
		r.scratch = nil
	}
	if cap(r.headers) > keepHeaders {
		r.headers = nil
	}
	r.b, r.i, r.left, r.prev, r.used, r.old = nil, 0, 0, -1, 0, legacyState{}
	r.err = r.reset(batch)
	return r.err
}

func (r *Reader) reset(batch []byte) error {
	if len(batch) > atMagic && legacyMagic(int8(batch[atMagic])) {
		return r.resetLegacy(batch)
	}
	h, err := ParseHeader(batch)
	r.h = h
	if err != nil {
		return err
	}
	switch {
	case h.Size() > int64(len(batch)):
		return fmt.Errorf("%w: batch of %d bytes, %d are there", ErrTruncated, h.Size(), len(batch))
	case h.Size() < int64(len(batch)):
		return fmt.Errorf("%w: batch of %d bytes, %d are there", ErrMalformed, h.Size(), len(batch))
	}
	b := batch[HeaderSize:]
	if codec := h.Attributes.Codec(); codec != None && len(b) > 0 {
		r.scratch, err = decompress(codec, r.scratch[:0], b, r.limit(len(b)))
		r.used = len(r.scratch)
		if err != nil {
			return err
		}
		b = r.scratch
	}
	r.b, r.left = b, h.Count
	return nil
}

// limit is how many bytes n compressed ones may become.
func (r *Reader) limit(n int) int64 {
	if r.Limit > 0 {
		return r.Limit
	}
	return limitBase + limitRatio*int64(n)
}

// Header returns the header of the batch that Reset took; it is valid until the next Reset.
func (r *Reader) Header() *Header { return &r.h }

// Next decodes the next record into rec and returns true, or false at the end of the batch. A record that does not end where its length says, an offset
// that does not ascend or lies outside the batch, and bytes behind the last record are errors, which stay until Reset; so are, in version 0 or 1, wrong
// checksums of records inside a wrapper. Key, value and the bytes of
// headers point into the batch or into memory of the Reader that lives until the next Reset; rec.Headers is valid until the next call of Next only.
func (r *Reader) Next(rec *storage.Record) (bool, error) {
	if r.left == 0 {
		if r.err == nil && r.i != len(r.b) {
			r.err = r.trailing(r.i)
		}
		return false, r.err
	}
	if r.old.on {
		return r.nextLegacy(rec)
	}
	var f fields
	next, why := parse(r.b, r.i, &f)
	if why == nil && f.delta > r.prev && f.delta <= r.h.LastOffsetDelta {
		b := r.b[:next]
		rec.Offset = r.h.BaseOffset + storage.Offset(f.delta)
		rec.Timestamp = r.h.BaseTimestamp + f.timestamp
		if r.h.Attributes.LogAppendTime() {
			rec.Timestamp = r.h.MaxTimestamp
		}
		rec.Key, rec.Value, rec.Headers = nil, nil, nil
		if f.keyLen >= 0 {
			rec.Key = b[f.key : f.key+f.keyLen : f.key+f.keyLen]
		}
		if f.valueLen >= 0 {
			rec.Value = b[f.value : f.value+f.valueLen : f.value+f.valueLen]
		}
		if f.headers == 0 || r.collect(b, &f, rec) {
			r.i, r.prev = next, f.delta
			r.left--
			return true, nil
		}
		why = errHeaders
	}
	r.fail(why, &f)
	return false, r.err
}

// collect decodes the headers of a record that parse has accepted.
func (r *Reader) collect(b []byte, f *fields, rec *storage.Record) bool {
	if f.headers > maxHeaders {
		return false
	}
	r.headers = r.headers[:0]
	i := f.headersAt
	for range f.headers {
		var h storage.Header
		var n int32
		n, i = varint32(b, i)
		h.Key = b[i : i+int(n) : i+int(n)]
		i += int(n)
		if n, i = varint32(b, i); n >= 0 {
			h.Value = b[i : i+int(n) : i+int(n)]
			i += int(n)
		}
		r.headers = append(r.headers, h)
	}
	rec.Headers = r.headers
	return true
}

// fail notes why the next record cannot be read, or that its offset is wrong.
func (r *Reader) fail(why error, f *fields) {
	n := r.h.Count - r.left
	if why == nil {
		r.err = fmt.Errorf("%w: record %d of %d: offset delta %d after %d, last %d", ErrMalformed, n, r.h.Count, f.delta, r.prev, r.h.LastOffsetDelta)
	} else {
		r.err = fmt.Errorf("record %d of %d at byte %d: %w", n, r.h.Count, r.i, why)
	}
	r.left = 0
}

func (r *Reader) trailing(i int) error {
	return fmt.Errorf("%w: %d bytes behind the last of %d records", ErrMalformed, len(r.b)-i, r.h.Count)
}
