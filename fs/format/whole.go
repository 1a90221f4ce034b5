package format

import (
	"fmt"
	"math"
	"slices"

	"github.com/logmount/logmount/storage"
)

// WriteAt puts p at byte pos of the record, which is all that is written until the last close. Bytes that were skipped are zeros. It takes the place of
// Split for the format Whole and needs no Commit. ErrTooLarge, and nothing changed, where the record would not fit into max.message.bytes.
func (s *Splitter) WriteAt(p []byte, pos int64) error {
	if s.format != Whole {
		return fmt.Errorf("write at a position of %s: %w", s.format, errWrongFormat)
	}
	if len(p) == 0 {
		return nil
	}
	if pos < 0 || pos > math.MaxInt64-int64(len(p)) {
		return fmt.Errorf("%w: write at position %d", storage.ErrInvalidRecord, pos)
	}
	if err := s.grow(pos + int64(len(p))); err != nil {
		return err
	}
	copy(s.buf[pos:], p)
	s.torn = false
	return nil
}

// Truncate makes the record of the format Whole size bytes long. It only ever extends it, with zeros: ErrNotPermitted for a smaller size.
func (s *Splitter) Truncate(size int64) error {
	if s.format != Whole {
		return fmt.Errorf("truncate %s: %w", s.format, errWrongFormat)
	}
	if size < int64(s.n) {
		return fmt.Errorf("%w: cut a record of %d bytes to %d", storage.ErrNotPermitted, s.n, size)
	}
	return s.grow(size)
}

// grow makes the record at least size bytes long.
func (s *Splitter) grow(size int64) error {
	if size <= int64(s.n) {
		return nil
	}
	if size > int64(s.max) || ownBatch(size) > int64(s.max) {
		s.torn = s.torn || s.n > 0
		return fmt.Errorf("%w: a record of %d bytes, max.message.bytes is %d", storage.ErrTooLarge, size, s.max)
	}
	s.buf = slices.Grow(s.buf[:s.n], int(size)-s.n)[:size]
	clear(s.buf[s.n:])
	s.n = int(size)
	return nil
}
