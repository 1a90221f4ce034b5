package record

import (
	"fmt"
	"io"

	"github.com/logmount/logmount/storage"
)

// decompress puts what src holds, at most limit bytes, into the memory of dst, which is empty, and returns it grown, with an error too. The memory that it
// takes is bounded by limit whatever src claims.
func decompress(c Codec, dst, src []byte, limit int64) ([]byte, error) {
	return decompressAs(magic, c, dst, src, limit)
}

// decompressAs is decompress for a batch of any version. The frames of LZ4 in version 0 have a header checksum that is wrong, in one known way or other.
func decompressAs(version int8, c Codec, dst, src []byte, limit int64) ([]byte, error) {
	if version < magic && c > maxLegacyCodec {
		return dst, fmt.Errorf("compression %v in message format version %d: %w", c, version, storage.ErrUnsupported)
	}
	var err error
	switch c {
	case Gzip:
		dst, err = ungzip(dst, src, limit)
	case Snappy:
		dst, err = unsnappy(dst, src, limit)
	case LZ4:
		dst, err = unlz4(dst, src, limit, version == 0)
	case Zstd:
		dst, err = unzstd(dst, src, limit)
	case None:
		fallthrough
	default:
		err = storage.ErrUnsupported
	}
	if err != nil {
		return dst, fmt.Errorf("%v: %w", c, err)
	}
	return dst, nil
}

// compress appends src to dst in the codec's framing.
func compress(c Codec, dst, src []byte) ([]byte, error) {
	var err error
	switch c {
	case Gzip:
		dst, err = gzipTo(dst, src)
	case Snappy:
		dst = snappyTo(dst, src)
	case LZ4:
		dst, err = lz4To(dst, src)
	case Zstd:
		dst, err = zstdTo(dst, src)
	case None:
		fallthrough
	default:
		err = storage.ErrUnsupported
	}
	if err != nil {
		return dst, fmt.Errorf("%v: %w", c, err)
	}
	return dst, nil
}

// tooLarge is the error of a payload that decompresses to more than limit bytes.
func tooLarge(limit int64) error {
	return fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
}

// room returns b with space for n more bytes, growing at least by half so that repeated calls cost little, but not beyond limit without need.
func room(b []byte, n int, limit int64) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	want := max(int64(len(b)+n), min(int64(cap(b))*2, limit))
	grown := make([]byte, len(b), want)
	copy(grown, b)
	return grown
}

// readAll appends what r yields to dst, at most until len(dst) is limit.
func readAll(r io.Reader, dst []byte, limit int64) ([]byte, error) {
	for {
		if int64(len(dst)) >= limit {
			var one [1]byte
			n, err := io.ReadFull(r, one[:])
			if n > 0 {
				return dst, tooLarge(limit)
			}
			return dst, eofIsNil(err)
		}
		dst = room(dst, int(min(4096, limit-int64(len(dst)))), limit)
		n, err := r.Read(dst[len(dst):min(int64(cap(dst)), limit)])
		dst = dst[:len(dst)+n]
		if err != nil {
			return dst, eofIsNil(err)
		}
	}
}

func eofIsNil(err error) error {
	if err == io.EOF { //nolint:errorlint // the contract of io.Reader is the bare value
		return nil
	}
	return err
}
