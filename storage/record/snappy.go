package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/snappy"
)

// The framing of snappy-java: this magic, two version numbers, then blocks, each behind its length.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeader   = 16
	xerialBlock    = 32 << 10 // decompressed bytes in a block as it is written
	xerialMaxBlock = 512 << 20
	xerialWord     = 0x82534e41 // a length that is the start of another header

	snappyRatio = 22 // three bytes of a block stand for at most 64
)

// unsnappy reads the framing of snappy-java, or else one raw block, which other clients write.
func unsnappy(dst, src []byte, limit int64) ([]byte, error) {
	if len(src) < xerialHeader || !bytes.HasPrefix(src, xerialMagic) {
		return snappyBlock(dst, src, limit)
	}
	// The versions of the first header are not looked at: there are writers that have them in the other byte order.
	src = src[xerialHeader:]
	for len(src) > 0 {
		if len(src) < 4 {
			return dst, fmt.Errorf("%w: %d bytes where a block length takes 4", ErrTruncated, len(src))
		}
		n := binary.BigEndian.Uint32(src)
		if n == xerialWord {
			if len(src) < xerialHeader || !bytes.HasPrefix(src, xerialMagic) {
				return dst, fmt.Errorf("%w: header inside the stream", ErrMalformed)
			}
			if v := int32(binary.BigEndian.Uint32(src[8:])); v < 1 {
				return dst, fmt.Errorf("%w: version %d of a header inside the stream", ErrMalformed, v)
			}
			src = src[xerialHeader:]
			continue
		}
		src = src[4:]
		if n > xerialMaxBlock {
			return dst, fmt.Errorf("%w: block length %d", ErrMalformed, int32(n))
		}
		if int64(n) > int64(len(src)) {
			return dst, fmt.Errorf("%w: block of %d bytes, %d are there", ErrTruncated, n, len(src))
		}
		var err error
		if dst, err = snappyBlock(dst, src[:n], limit); err != nil {
			return dst, err
		}
		src = src[n:]
	}
	return dst, nil
}

// snappyBlock decodes one raw block. The size that it claims is believed only where a block of its length can have it.
func snappyBlock(dst, src []byte, limit int64) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return dst, fmt.Errorf("%w: block: %w", ErrMalformed, err)
	}
	if int64(n) > limit-int64(len(dst)) {
		return dst, tooLarge(limit)
	}
	if n > snappyRatio*len(src) {
		return dst, fmt.Errorf("%w: block of %d bytes that claims %d", ErrMalformed, len(src), n)
	}
	dst = room(dst, n, limit)
	if _, err := snappy.Decode(dst[len(dst):len(dst)+n], src); err != nil {
		return dst, fmt.Errorf("%w: block: %w", ErrMalformed, err)
	}
	return dst[:len(dst)+n], nil
}

// snappyTo writes the framing of snappy-java, in blocks of 32 KiB as Kafka does.
func snappyTo(dst, src []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, 1)
	dst = binary.BigEndian.AppendUint32(dst, 1)
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		at := len(dst)
		dst = slices.Grow(dst, 4+snappy.MaxEncodedLen(n))
		block := snappy.Encode(dst[at+4:cap(dst)], src[:n])
		dst = dst[:at+4+len(block)]
		binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
		src = src[n:]
	}
	return dst
}
