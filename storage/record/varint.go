package record

import "math/bits"

// A varint is the zigzag form of a signed number in groups of seven bits, lowest first; the top bit of a byte says that another follows. Numbers of 32
// bits take at most 5 bytes and numbers of 64 bits at most 10; what is longer, or has bits beyond the number's width, is not a varint.

// varint32 reads the varint at b[i:] and returns the position behind it, or -1 where there is none.
func varint32(b []byte, i int) (int32, int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		c := int32(b[i])
		return c>>1 ^ -(c & 1), i + 1
	}
	return varint32Slow(b, i)
}

func varint32Slow(b []byte, i int) (int32, int) {
	var u uint32
	for n := 0; n < 5 && i+n < len(b); n++ {
		c := b[i+n]
		if n == 4 && c > 0x0f {
			break
		}
		u |= uint32(c&0x7f) << (7 * n)
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i + n + 1
		}
	}
	return 0, -1
}

// varint64 is varint32 for numbers of 64 bits.
func varint64(b []byte, i int) (int64, int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		c := int64(b[i])
		return c>>1 ^ -(c & 1), i + 1
	}
	return varint64Slow(b, i)
}

func varint64Slow(b []byte, i int) (int64, int) {
	var u uint64
	for n := 0; n < 10 && i+n < len(b); n++ {
		c := b[i+n]
		if n == 9 && c > 0x01 {
			break
		}
		u |= uint64(c&0x7f) << (7 * n)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + n + 1
		}
	}
	return 0, -1
}

// appendVarint appends v; a number that fits 32 bits has the same form in both widths.
func appendVarint(b []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}

// varintSize returns the number of bytes that appendVarint appends.
func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}
