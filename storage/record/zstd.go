package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Kafka's compression level 3 has a window of 2 MiB.
const zstdWindow = 2 << 20

// Decoders and encoders are made for calls in one goroutine: they start none, and need no closing.
var (
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return err
		}
		return d
	}}
	zstdEncoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(zstdWindow), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err != nil {
			return err
		}
		return e
	}}
)

// unzstd reads all frames. A frame need not tell its size, and it may lie: the decoder fills the room that it is given and no more, and gets more room,
// up to the limit, where that was not enough.
func unzstd(dst, src []byte, limit int64) ([]byte, error) {
	got := zstdDecoders.Get()
	d, ok := got.(*zstd.Decoder)
	if !ok {
		return dst, got.(error)
	}
	defer zstdDecoders.Put(d)
	size := max(int64(cap(dst)), 4*int64(len(src)), 16<<10)
	for {
		size = min(size, limit)
		// The decoder is faster with some room behind what it may write.
		dst = room(dst[:0], int(size), limit)
		out, err := d.DecodeAll(src, dst[:0:size])
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, zstd.ErrDecoderSizeExceeded):
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return dst, fmt.Errorf("%w: %w", ErrTruncated, err)
			}
			return dst, fmt.Errorf("%w: %w", ErrMalformed, err)
		case size >= limit:
			return dst, tooLarge(limit)
		}
		size *= 4
	}
}

// zstdTo writes one frame without checksum and without a content size. Flushing before the end is what keeps the size out of it.
func zstdTo(dst, src []byte) ([]byte, error) {
	got := zstdEncoders.Get()
	e, ok := got.(*zstd.Encoder)
	if !ok {
		return dst, got.(error)
	}
	defer zstdEncoders.Put(e)
	out := bytes.NewBuffer(dst)
	e.Reset(out)
	defer e.Reset(nil)
	if _, err := e.Write(src); err != nil {
		return dst, err
	}
	if err := e.Flush(); err != nil {
		return dst, err
	}
	if err := e.Close(); err != nil {
		return dst, err
	}
	return out.Bytes(), nil
}
