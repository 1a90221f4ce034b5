package format

import (
	"encoding/binary"
	"fmt"

	"github.com/logmount/logmount/storage"
)

const (
	batchPrefix  = 12 // base offset and length
	leastLength  = 49 // what a batch's header holds behind the length
	lengthOffset = 8
)

// SplitBatches returns the batches that are complete with p, those that were kept before first. It believes their length fields and looks at nothing
// else. It takes the place of Split for the format Batch; what is said there about slices and errors holds here too. CommitBatches belongs to it.
func (s *Splitter) SplitBatches(p []byte) ([][]byte, error) {
	if s.format != Batch {
		return nil, fmt.Errorf("split %s into batches: %w", s.format, errWrongFormat)
	}
	s.begin()
	if s.n > 0 {
		s.buf = append(s.buf[:s.n], p...)
		p, s.joined = s.buf, true
	}
	out, rest, err := s.batches(p)
	if err != nil {
		s.Abort()
		return nil, err
	}
	s.open, s.left = true, rest
	s.whole = p
	return out, nil
}

// batches returns the complete batches that p begins with, and what follows them.
func (s *Splitter) batches(p []byte) (out [][]byte, rest []byte, err error) {
	for len(p) >= batchPrefix {
		size, err := s.batchLen(p)
		if err != nil {
			return nil, nil, err
		}
		if len(p) < size {
			break
		}
		out = append(out, p[:size:size])
		p = p[size:]
	}
	return out, p, nil
}

// CommitBatches takes the last SplitBatches' request as done: the first taken of its batches were appended. The others are kept, with what follows them.
func (s *Splitter) CommitBatches(taken int) {
	if !s.open {
		return
	}
	rest := s.whole
	for range taken {
		size, err := s.batchLen(rest)
		if err != nil {
			break // cannot be: they were found by the same lengths
		}
		rest = rest[size:]
	}
	keep := s.buf
	if cap(keep) > keepBytes && len(rest) < cap(keep)/4 {
		keep = nil
	}
	s.buf = append(keep[:0], rest...) // within buf it only moves down
	s.n = len(s.buf)
	s.torn = false
	s.begin()
}

// FinalBatches returns the complete batches that were kept, and an error if what follows them is a part of one. Like Final it changes nothing.
func (s *Splitter) FinalBatches() ([][]byte, error) {
	s.begin()
	out, rest, err := s.batches(s.buf[:s.n:s.n])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: the last batch is not complete: %d bytes of it are there", storage.ErrInvalidRecord, len(rest))
	}
	return out, err
}

// batchLen returns the size of the batch that b begins with; b has at least its prefix.
func (s *Splitter) batchLen(b []byte) (int, error) {
	length := int64(int32(binary.BigEndian.Uint32(b[lengthOffset:])))
	switch {
	case length < leastLength:
		return 0, fmt.Errorf("%w: batch of length %d, less than its header", storage.ErrInvalidRecord, length)
	case batchPrefix+length > int64(s.max):
		return 0, fmt.Errorf("%w: batch of %d bytes, max.message.bytes is %d", storage.ErrTooLarge, batchPrefix+length, s.max)
	}
	return int(batchPrefix + length), nil
}
