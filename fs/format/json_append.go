package format

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/logmount/logmount/storage"
)

const hexDigits = "0123456789abcdef"

// noPartition leaves the field away.
const noPartition = -1

// AppendJSON adds r as one JSON object and a newline: offset, timestamp, key, value and, where there are any, headers, in this order. Nothing is
// escaped that JSON does not require. Bytes that are not valid UTF-8 stand in base64 under a name that says so.
func AppendJSON(dst []byte, r *storage.Record) []byte { return appendJSON(dst, r, noPartition) }

// AppendJSONWithPartition is AppendJSON with a first field that says which partition the record is from.
func AppendJSONWithPartition(dst []byte, r *storage.Record, p int32) []byte {
	return appendJSON(dst, r, p)
}

func appendJSON(dst []byte, r *storage.Record, p int32) []byte {
	dst = append(dst, '{')
	if p != noPartition {
		dst = append(dst, `"partition":`...)
		dst = strconv.AppendInt(dst, int64(p), 10)
		dst = append(dst, ',')
	}
	dst = append(dst, `"offset":`...)
	dst = strconv.AppendInt(dst, int64(r.Offset), 10)
	dst = append(dst, `,"timestamp":`...)
	dst = strconv.AppendInt(dst, r.Timestamp, 10)
	dst = appendField(dst, `,"key`, r.Key)
	dst = appendField(dst, `,"value`, r.Value)
	if len(r.Headers) > 0 {
		dst = append(dst, `,"headers":[`...)
		for i := range r.Headers {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendField(dst, `{"key`, headerKey(&r.Headers[i]))
			dst = appendField(dst, `,"value`, r.Headers[i].Value)
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

// SizeJSON returns how many bytes AppendJSON adds, without encoding.
func SizeJSON(r *storage.Record) int64 {
	n := len(`{"offset":,"timestamp":`) + decimalLen(int64(r.Offset)) + decimalLen(r.Timestamp)
	n += sizeField(`,"key`, r.Key) + sizeField(`,"value`, r.Value)
	if len(r.Headers) > 0 {
		n += len(`,"headers":[]`) + len(r.Headers) - 1
		for i := range r.Headers {
			n += sizeField(`{"key`, headerKey(&r.Headers[i])) + sizeField(`,"value`, r.Headers[i].Value) + 1
		}
	}
	return int64(n + len("}\n"))
}

// headerKey returns a header's name; one that is missing counts as empty, for a header without a name cannot be written.
func headerKey(h *storage.Header) []byte {
	if h.Key == nil {
		return []byte{}
	}
	return h.Key
}

// appendField adds a member of an object. open is what stands before the value up to the name, whose closing quote depends on what b holds.
func appendField(dst []byte, open string, b []byte) []byte {
	dst = append(dst, open...)
	switch {
	case b == nil:
		return append(dst, `":null`...)
	case !utf8.Valid(b):
		dst = append(dst, `_base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, b)
		return append(dst, '"')
	}
	dst = append(dst, `":"`...)
	dst = appendEscaped(dst, b)
	return append(dst, '"')
}

func sizeField(open string, b []byte) int {
	switch {
	case b == nil:
		return len(open) + len(`":null`)
	case !utf8.Valid(b):
		return len(open) + len(`_base64":""`) + base64.StdEncoding.EncodedLen(len(b))
	}
	return len(open) + len(`":""`) + escapedLen(b)
}

func appendEscaped(dst, b []byte) []byte {
	for {
		n := plainLen(b)
		dst = append(dst, b[:n]...)
		if n == len(b) {
			return dst
		}
		c := b[n]
		b = b[n+1:]
		if s := shortEscape(c); s != 0 {
			dst = append(dst, '\\', s)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
}

func escapedLen(b []byte) int {
	size := 0
	for {
		n := plainLen(b)
		size += n
		if n == len(b) {
			return size
		}
		if shortEscape(b[n]) != 0 {
			size += 2
		} else {
			size += 6
		}
		b = b[n+1:]
	}
}

// shortEscape returns the letter of c's two-byte escape, 0 where it has none.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// plainLen returns the length of the longest prefix of b that may stand in a JSON string as it is: no quote, no backslash, no control character.
// Sizes of whole logs are worked out with it, hence eight bytes at a time.
func plainLen(b []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		q := x ^ ones*'"'
		s := x ^ ones*'\\'
		// The lowest marked byte is exact; a borrow can only mark bytes above it by mistake.
		m := ((x - ones*0x20) &^ x) | ((q - ones) &^ q) | ((s - ones) &^ s)
		if m &= highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// decimalLen returns the length of n in decimal, its sign included.
func decimalLen(n int64) int {
	size, u := 1, uint64(n)
	if n < 0 {
		size, u = 2, -u
	}
	for ; u >= 10; u /= 10 {
		size++
	}
	return size
}
