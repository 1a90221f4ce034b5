package record

import "math/bits"

// A varint is the zigzag form of a signed number in groups of seven bits, lowest first; the top bit of a byte says that another follows. Numbers of 32
// bits take at most 5 bytes and numbers of 64 bits at most 10; what is longer, or has bits beyond the number's width, is not a varint.

// varint32 reads the varint at b[i:] and returns the position behind it, or -1 where there is none. One and two bytes, which hold lengths up to 8191, are
// the common case.
func varint32(b []byte, i int) (int32, int) {
	if uint(i) >= uint(len(b)) {
		return 0, -1
	}
	b = b[i:]
	u := uint32(b[0])
	if u < 0x80 {
		return int32(u>>1) ^ -int32(u&1), i + 1
	}
	if len(b) > 1 && b[1] < 0x80 {
		u = u&0x7f | uint32(b[1])<<7
		return int32(u>>1) ^ -int32(u&1), i + 2
	}
	u &= 0x7f
	for n := 1; n < 5 && n < len(b); n++ {
		c := b[n]
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
	if uint(i) >= uint(len(b)) {
		return 0, -1
	}
	b = b[i:]
	u := uint64(b[0])
	if u < 0x80 {
		return int64(u>>1) ^ -int64(u&1), i + 1
	}
	u &= 0x7f
	for n := 1; n < 10 && n < len(b); n++ {
		c := b[n]
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
