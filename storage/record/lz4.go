package record

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

const (
	lz4Magic = 0x184d2204

	lz4Version         = 0x40 // bits of the first descriptor byte
	lz4VersionMask     = 0xc0
	lz4Independent     = 0x20
	lz4BlockChecksum   = 0x10
	lz4ContentSize     = 0x08
	lz4ContentChecksum = 0x04
	lz4Reserved        = 0x03 // one reserved bit and that of a dictionary

	lz4Stored = 1 << 31 // in a block's length: not compressed
	lz4Block  = 64 << 10
	lz4Ratio  = 256 // a byte of a block stands for at most 255 bytes
)

// unlz4 reads one frame. Frames with linked blocks or a dictionary are refused, as Kafka does; the checksum of the content is not compared, since the
// batch has its own. What follows the frame is ignored. With old the header's checksum is not compared either.
func unlz4(dst, src []byte, limit int64, old bool) ([]byte, error) {
	flags, maxBlock, src, err := lz4Descriptor(src, old)
	if err != nil {
		return dst, err
	}
	for {
		if len(src) < 4 {
			return dst, fmt.Errorf("%w: %d bytes where a block length takes 4", ErrTruncated, len(src))
		}
		word := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if word == 0 {
			break
		}
		n := int(word &^ lz4Stored)
		if n > maxBlock {
			return dst, fmt.Errorf("%w: block of %d bytes in a frame of at most %d", ErrMalformed, n, maxBlock)
		}
		if n > len(src) {
			return dst, fmt.Errorf("%w: block of %d bytes, %d are there", ErrTruncated, n, len(src))
		}
		block := src[:n]
		src = src[n:]
		if flags&lz4BlockChecksum != 0 {
			if len(src) < 4 {
				return dst, fmt.Errorf("%w: no checksum behind a block", ErrTruncated)
			}
			if stored, sum := binary.LittleEndian.Uint32(src), xxh32(block); stored != sum {
				return dst, fmt.Errorf("%w of a block: stored %08x, computed %08x", ErrCRC, stored, sum)
			}
			src = src[4:]
		}
		if dst, err = lz4Decode(dst, block, word&lz4Stored != 0, maxBlock, limit); err != nil {
			return dst, err
		}
	}
	if flags&lz4ContentChecksum != 0 && len(src) < 4 {
		return dst, fmt.Errorf("%w: no checksum behind the content", ErrTruncated)
	}
	return dst, nil
}

// lz4Descriptor reads the start of a frame and returns its flags, the largest size of a block and the rest.
func lz4Descriptor(src []byte, old bool) (flags byte, maxBlock int, rest []byte, err error) {
	if len(src) < 7 {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes where a frame header takes 7", ErrTruncated, len(src))
	}
	if m := binary.LittleEndian.Uint32(src); m != lz4Magic {
		return 0, 0, nil, fmt.Errorf("%w: frame magic %08x", ErrMalformed, m)
	}
	flags, bd := src[4], src[5]
	if flags&lz4VersionMask != lz4Version || flags&lz4Independent == 0 || flags&lz4Reserved != 0 {
		return 0, 0, nil, fmt.Errorf("%w: frame flags %02x", ErrMalformed, flags)
	}
	if bd&0x8f != 0 || bd < 4<<4 {
		return 0, 0, nil, fmt.Errorf("%w: block descriptor %02x", ErrMalformed, bd)
	}
	end := 6
	if flags&lz4ContentSize != 0 {
		end += 8
	}
	if len(src) <= end {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes where a frame header takes %d", ErrTruncated, len(src), end+1)
	}
	if sum := byte(xxh32(src[4:end]) >> 8); sum != src[end] && !old {
		return 0, 0, nil, fmt.Errorf("%w of the frame header: stored %02x, computed %02x", ErrCRC, src[end], sum)
	}
	return flags, 1 << (8 + 2*int(bd>>4)), src[end+1:], nil
}

// lz4Decode appends one block.
func lz4Decode(dst, block []byte, stored bool, maxBlock int, limit int64) ([]byte, error) {
	left := limit - int64(len(dst))
	if stored {
		if int64(len(block)) > left {
			return dst, tooLarge(limit)
		}
		return append(room(dst, len(block), limit), block...), nil
	}
	n := min(maxBlock, lz4Ratio*len(block))
	short := int64(n) > left
	if short {
		n = int(left)
	}
	dst = room(dst, n, limit)
	got, err := lz4.UncompressBlock(block, dst[len(dst):len(dst)+n])
	if err != nil {
		if short {
			return dst, tooLarge(limit)
		}
		return dst, fmt.Errorf("%w: block: %w", ErrMalformed, err)
	}
	return dst[:len(dst)+got], nil
}

var lz4Compressors = sync.Pool{New: func() any { return new(lz4.Compressor) }}

// lz4To writes a frame of independent blocks of 64 KiB without checksums, as Kafka does.
func lz4To(dst, src []byte) ([]byte, error) {
	c := lz4Compressors.Get().(*lz4.Compressor)
	defer lz4Compressors.Put(c)
	dst = append(dst, 0x04, 0x22, 0x4d, 0x18, lz4Version|lz4Independent, 4<<4, 0x82)
	for len(src) > 0 {
		n := min(len(src), lz4Block)
		at := len(dst)
		dst = slices.Grow(dst, 4+lz4.CompressBlockBound(n))
		size, err := c.CompressBlock(src[:n], dst[at+4:cap(dst)])
		if err != nil {
			return dst, err
		}
		word := uint32(size)
		if size == 0 || size >= n {
			size, word = n, uint32(n)|lz4Stored
			copy(dst[at+4:cap(dst)], src[:n])
		}
		dst = dst[:at+4+size]
		binary.LittleEndian.PutUint32(dst[at:], word)
		src = src[n:]
	}
	return append(dst, 0, 0, 0, 0), nil
}

const (
	xxPrime1 uint32 = 2654435761
	xxPrime2 uint32 = 2246822519
	xxPrime3 uint32 = 3266489917
	xxPrime4 uint32 = 668265263
	xxPrime5 uint32 = 374761393
)

// xxh32 is the hash that LZ4 frames use, with seed 0.
func xxh32(b []byte) uint32 {
	h := xxPrime5 + uint32(len(b))
	if len(b) >= 16 {
		seed1, seed2 := xxPrime1, xxPrime2
		v := [4]uint32{seed1 + seed2, seed2, 0, -seed1}
		for n := uint32(len(b)); len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+binary.LittleEndian.Uint32(b[4*i:])*xxPrime2, 13) * xxPrime1
			}
			h = n
		}
		h += bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	}
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*xxPrime3, 17) * xxPrime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}
