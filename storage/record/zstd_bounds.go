package record

import (
	"encoding/binary"
	"fmt"
)

const (
	zstdMagic         = 0xfd2fb528
	zstdSkippable     = 0x184d2a50 // and the 15 numbers after it
	zstdSkippableMask = 0xfffffff0
	zstdMaxBlock      = 128 << 10
)

// zstdBounds walks over the blocks of all frames, decoding none, and returns the least and the most bytes that they can decode to. The size of stored and
// of run-length blocks is known exactly; a compressed block may hold anything up to the largest block of its frame.
func zstdBounds(src []byte) (least, most int64, err error) {
	for len(src) > 0 {
		if len(src) < 8 {
			return 0, 0, fmt.Errorf("%w: %d bytes where a frame should start", ErrTruncated, len(src))
		}
		m := binary.LittleEndian.Uint32(src)
		if m&zstdSkippableMask == zstdSkippable {
			n := int64(binary.LittleEndian.Uint32(src[4:]))
			if n > int64(len(src)-8) {
				return 0, 0, fmt.Errorf("%w: skippable frame of %d bytes, %d are there", ErrTruncated, n, len(src)-8)
			}
			src = src[8+n:]
			continue
		}
		if m != zstdMagic {
			return 0, 0, fmt.Errorf("%w: frame magic %08x", ErrMalformed, m)
		}
		var l, h int64
		if src, l, h, err = zstdFrame(src[4:]); err != nil {
			return 0, 0, err
		}
		least, most = least+l, most+h
	}
	return least, most, nil
}

// zstdFrame walks over the frame whose header, behind the magic, src starts with, and returns what follows it.
func zstdFrame(src []byte) (rest []byte, least, most int64, err error) {
	flags := src[0]
	single, checksum := flags&0x20 != 0, flags&0x04 != 0
	at := 1
	maxBlock := int64(zstdMaxBlock)
	if !single {
		base := int64(1) << (10 + src[1]>>3)
		maxBlock = min(maxBlock, base+base/8*int64(src[1]&7))
		at++
	}
	at += [4]int{0, 1, 2, 4}[flags&3] // dictionary
	size := [4]int{0, 2, 4, 8}[flags>>6]
	if single && size == 0 {
		size = 1
	}
	if len(src) < at+size {
		return nil, 0, 0, fmt.Errorf("%w: %d bytes where a frame header takes %d", ErrTruncated, len(src), at+size)
	}
	if single {
		maxBlock = min(maxBlock, zstdContentSize(src[at:at+size]))
	}
	src = src[at+size:]
	for last := false; !last; {
		if len(src) < 3 {
			return nil, 0, 0, fmt.Errorf("%w: %d bytes where a block header takes 3", ErrTruncated, len(src))
		}
		word := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		src = src[3:]
		last = word&1 != 0
		n := int64(word >> 3)
		stored := n
		if n > zstdMaxBlock {
			return nil, 0, 0, fmt.Errorf("%w: block of %d bytes", ErrMalformed, n)
		}
		switch word >> 1 & 3 {
		case 0: // stored
			least, most = least+n, most+n
		case 1: // one byte, n times
			least, most = least+n, most+n
			stored = 1
		case 2: // compressed
			most += maxBlock
		default:
			return nil, 0, 0, fmt.Errorf("%w: block type 3", ErrMalformed)
		}
		if stored > int64(len(src)) {
			return nil, 0, 0, fmt.Errorf("%w: block of %d bytes, %d are there", ErrTruncated, stored, len(src))
		}
		src = src[stored:]
	}
	if checksum {
		if len(src) < 4 {
			return nil, 0, 0, fmt.Errorf("%w: no checksum behind a frame", ErrTruncated)
		}
		src = src[4:]
	}
	return src, least, most, nil
}

// zstdContentSize reads the content size of a frame header, in the 1, 2, 4 or 8 bytes that it takes; sizes of no block are cut to the largest one.
func zstdContentSize(b []byte) int64 {
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	if len(b) == 2 {
		n += 256
	}
	return int64(min(n, zstdMaxBlock))
}
