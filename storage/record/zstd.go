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

const zstdSlack = 128

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

// unzstd reads all frames. The blocks tell in advance how much they can hold at most: that much room, and no more than the limit, is what the decoder
// gets to fill. A decoder that is left to grow its output by itself would believe the content size that a frame claims.
func unzstd(dst, src []byte, limit int64) ([]byte, error) {
	least, most, err := zstdBounds(src)
	if err != nil {
		return dst, err
	}
	if least > limit {
		return dst, tooLarge(limit)
	}
	// The decoder is faster with some room behind what it writes.
	size := min(most+zstdSlack, limit)
	dst = room(dst[:0], int(size), limit)
	got := zstdDecoders.Get()
	d, ok := got.(*zstd.Decoder)
	if !ok {
		return dst, got.(error)
	}
	defer zstdDecoders.Put(d)
	out, err := d.DecodeAll(src, dst[:0:size])
	switch {
	case err == nil:
		return dst[:len(out)], nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return dst, fmt.Errorf("%w: %w", ErrTruncated, err)
	case most > limit:
		return dst, fmt.Errorf("%w of %d bytes: %w", ErrTooLarge, limit, err)
	}
	return dst, fmt.Errorf("%w: %w", ErrMalformed, err)
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
