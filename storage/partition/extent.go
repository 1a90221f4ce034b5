package partition

import (
	"context"
	"fmt"

	"github.com/logmount/logmount/storage"
)

// Extent implements storage.Snapshot.
func (s *snapshot) Extent(ctx context.Context, m *storage.Measure, from, to storage.Offset) (int64, error) {
	to = min(to, s.end)
	if from >= to {
		return 0, nil
	}
	if base := s.at(0).Base; from < base {
		return 0, fmt.Errorf("%s: offset %d: %w: the log starts at %d", s.log.o.TP, from, storage.ErrOffsetGone, base)
	}
	first, last := s.find(from), s.find(to-1)
	if first < last && !m.Batches {
		s.build(ctx, m, first, last)
	}
	var n int64
	for i := first; i <= last; i++ {
		x, err := s.at(i).Extent(ctx, m, from, to)
		if err != nil {
			return 0, err
		}
		n += x
	}
	return n, nil
}

// ExtentNow implements storage.Snapshot.
func (s *snapshot) ExtentNow(m *storage.Measure, from, to storage.Offset) (n int64, exact bool) {
	to = min(to, s.end)
	if from >= to {
		return 0, true
	}
	exact = from >= s.at(0).Base
	for i := s.find(to - 1); i >= s.find(from); i-- {
		x, ok := s.at(i).ExtentNow(m, from, to)
		n += x
		exact = exact && ok
	}
	return n, exact
}

// Locate implements storage.Snapshot.
func (s *snapshot) Locate(ctx context.Context, m *storage.Measure, anchor storage.Offset, p int64) (storage.Offset, int64, error) {
	if first := s.at(0).Base; anchor < first { // what lies between is not known any more
		return 0, 0, fmt.Errorf("%s: byte %d from offset %d: %w: the log starts at %d", s.log.o.TP, p, anchor, storage.ErrOffsetGone, first)
	}
	i := s.find(anchor)
	v := s.at(i)
	at, err := v.Before(ctx, m, anchor)
	if err != nil {
		return 0, 0, err
	}
	p += at
	for p < 0 {
		if i == 0 {
			return 0, 0, fmt.Errorf("%s: byte %d before offset %d: %w", s.log.o.TP, -p, s.at(0).Base, storage.ErrOffsetGone)
		}
		i--
		n, err := s.at(i).Extent(ctx, m, s.at(i).Base, s.at(i).Next)
		if err != nil {
			return 0, 0, err
		}
		p += n
	}
	for ; i < s.len(); i++ {
		v := s.at(i)
		n, err := v.Extent(ctx, m, v.Base, v.Next)
		if err != nil {
			return 0, 0, err
		}
		if p < n {
			return v.Locate(ctx, m, p)
		}
		p -= n
	}
	return s.end, 0, nil
}
