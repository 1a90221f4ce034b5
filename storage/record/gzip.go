package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gunzipper is a gzip reader with its input, so that reuse allocates nothing.
type gunzipper struct {
	in bytes.Reader
	z  gzip.Reader
}

var (
	gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}
	gzippers   = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}
)

// ungzip reads all members. What follows a member and is no member is ignored, as Java's reader does.
func ungzip(dst, src []byte, limit int64) ([]byte, error) {
	g := gunzippers.Get().(*gunzipper)
	defer gunzippers.Put(g)
	g.in.Reset(src)
	defer g.in.Reset(nil)
	for first := true; ; first = false {
		if !first && g.in.Len() == 0 {
			return dst, nil
		}
		if err := g.z.Reset(&g.in); err != nil {
			if first {
				return dst, gzipError(err)
			}
			return dst, nil
		}
		g.z.Multistream(false)
		var err error
		if dst, err = readAll(&g.z, dst, limit); err != nil {
			return dst, gzipError(err)
		}
	}
}

func gzipError(err error) error {
	switch {
	case errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// gzipTo writes one member.
func gzipTo(dst, src []byte) ([]byte, error) {
	z := gzippers.Get().(*gzip.Writer)
	defer gzippers.Put(z)
	out := bytes.NewBuffer(dst)
	z.Reset(out)
	if _, err := z.Write(src); err != nil {
		return dst, err
	}
	if err := z.Close(); err != nil {
		return dst, err
	}
	return out.Bytes(), nil
}
