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

// SplitBatches returns the batches that end in p, the first of them with what was unfinished before. It believes their length fields and looks at nothing
// else. It takes the place of Split for the format Batch; what is said there about slices and errors holds here too.
func (s *Splitter) SplitBatches(p []byte) ([][]byte, error) {
	if s.format != Batch {
		return nil, fmt.Errorf("split %s into batches: %w", s.format, errWrongFormat)
	}
	s.begin()
	out, err := s.splitBatches(p)
	if err != nil {
		s.Abort()
		return nil, err
	}
	s.open = true
	return out, nil
}

func (s *Splitter) splitBatches(p []byte) ([][]byte, error) {
	var out [][]byte
	if s.n > 0 {
		s.buf = s.buf[:s.n]
		if p = s.fill(p, batchPrefix); len(s.buf) < batchPrefix {
			s.joined = true
			return nil, nil
		}
		size, err := s.batchLen(s.buf)
		if err != nil {
			return nil, err
		}
		if p = s.fill(p, size); len(s.buf) < size {
			s.joined = true
			return nil, nil
		}
		out = append(out, s.buf)
	}
	for len(p) >= batchPrefix {
		size, err := s.batchLen(p)
		if err != nil {
			return nil, err
		}
		if len(p) < size {
			break
		}
		out = append(out, p[:size:size])
		p = p[size:]
	}
	s.left = p
	return out, nil
}

// fill moves bytes from p to buf until buf has size bytes or p is empty, and returns the rest of p.
func (s *Splitter) fill(p []byte, size int) []byte {
	n := min(max(size-len(s.buf), 0), len(p))
	s.buf = append(s.buf, p[:n]...)
	return p[n:]
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
