package record

import "fmt"

// fields is where the parts of a record lie.
type fields struct {
	timestamp int64 // delta
	delta     int32 // of the offset
	key       int
	keyLen    int // -1 is null
	value     int
	valueLen  int // -1 is null
	headers   int // their number
	headersAt int
}

// Why a record cannot be parsed. They are made once: a damaged batch is met again and again by those who read around it.
var (
	errLength      = fmt.Errorf("%w: record length", ErrMalformed)
	errRecordEnd   = fmt.Errorf("%w: record is longer than what is left of the batch", ErrTruncated)
	errTimestamp   = fmt.Errorf("%w: timestamp delta", ErrMalformed)
	errOffsetDelta = fmt.Errorf("%w: offset delta", ErrMalformed)
	errKey         = fmt.Errorf("%w: key length", ErrMalformed)
	errValue       = fmt.Errorf("%w: value length", ErrMalformed)
	errHeaderCount = fmt.Errorf("%w: number of headers", ErrMalformed)
	errHeader      = fmt.Errorf("%w: length of a header's key or value", ErrMalformed)
	errRest        = fmt.Errorf("%w: record does not end where its length says", ErrMalformed)
	errHeaders     = fmt.Errorf("%w: more than %d headers", ErrTooLarge, maxHeaders)
)

// nullLength is the varint of -1, the length of a null key or value.
const nullLength = 1

// parse finds the parts of the record at b[i:], checks that they fill it exactly and returns the position behind it.
func parse(b []byte, i int, f *fields) (int, error) {
	if i == len(b) {
		return 0, errRecordEnd
	}
	n, i := varint32(b, i)
	if i < 0 || n < 0 {
		return 0, errLength
	}
	if int(n) > len(b)-i {
		return 0, errRecordEnd
	}
	b = b[:i+int(n)]
	if t := b[i:]; len(t) > 4 && t[1]|t[2] < 0x80 && t[3] == nullLength {
		// Nearly every line: no key, both deltas of one byte.
		f.timestamp, f.delta = int64(t[1]>>1)^-int64(t[1]&1), int32(t[2]>>1)^-int32(t[2]&1)
		i += 4
		f.key, f.keyLen = i, -1
	} else {
		i++ // attributes, unused
		f.timestamp, i = varint64(b, i)
		if i < 0 {
			return 0, errTimestamp
		}
		f.delta, i = varint32(b, i)
		if i < 0 {
			return 0, errOffsetDelta
		}
		n, i = varint32(b, i)
		if i < 0 || n < -1 || int(n) > len(b)-i {
			return 0, errKey
		}
		f.key, f.keyLen = i, int(n)
		i += max(int(n), 0)
	}
	n, i = varint32(b, i)
	if i < 0 || n < -1 || int(n) > len(b)-i {
		return 0, errValue
	}
	f.value, f.valueLen = i, int(n)
	i += max(int(n), 0)
	if i+1 == len(b) && b[i] == 0 {
		f.headers, f.headersAt = 0, i+1
		return i + 1, nil
	}
	n, i = varint32(b, i)
	if i < 0 || n < 0 || int(n) > (len(b)-i)/2 {
		return 0, errHeaderCount
	}
	f.headers, f.headersAt = int(n), i
	for range f.headers {
		n, i = varint32(b, i)
		if i < 0 || n < 0 || int(n) > len(b)-i {
			return 0, errHeader
		}
		i += int(n)
		n, i = varint32(b, i)
		if i < 0 || n < -1 || int(n) > len(b)-i {
			return 0, errHeader
		}
		i += max(int(n), 0)
	}
	if i != len(b) {
		return 0, errRest
	}
	return i, nil
}
