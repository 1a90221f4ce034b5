package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
)

// snapshot is the state of a log at one moment. It implements storage.Snapshot.
type snapshot struct {
	log        *Log
	closed     []*segment.View // ascending; shared between snapshots
	active     segment.View    // the last segment
	start, end storage.Offset
	generation uint64
	modified   int64
	cuts       []cut // ascending; shared between snapshots
}

func (s *snapshot) len() int { return len(s.closed) + 1 }

func (s *snapshot) at(i int) *segment.View {
	if i < len(s.closed) {
		return s.closed[i]
	}
	return &s.active
}

// find returns the number of the segment that holds o: the last whose base is not above it.
func (s *snapshot) find(o storage.Offset) int {
	return max(0, sort.Search(s.len(), func(i int) bool { return s.at(i).Base > o })-1)
}

// Start implements storage.Snapshot.
func (s *snapshot) Start() storage.Offset { return s.start }

// End implements storage.Snapshot.
func (s *snapshot) End() storage.Offset { return s.end }

// Generation implements storage.Snapshot.
func (s *snapshot) Generation() uint64 { return s.generation }

// Unchanged implements storage.Snapshot.
func (s *snapshot) Unchanged(generation uint64) storage.Offset {
	o := storage.Offset(math.MaxInt64)
	for i := len(s.cuts) - 1; i >= 0 && s.cuts[i].generation > generation; i-- {
		o = min(o, s.cuts[i].offset)
	}
	return o
}

// Modified implements storage.Snapshot.
func (s *snapshot) Modified() int64 { return s.modified }

// Final implements storage.Snapshot.
func (s *snapshot) Final() bool { return s.log.o.Final }

func (s *snapshot) inRange(o storage.Offset) error {
	if o < s.start || o > s.end {
		return fmt.Errorf("%s: offset %d: %w: the log holds %d to %d", s.log.o.TP, o, storage.ErrOutOfRange, s.start, s.end)
	}
	return nil
}

// Next implements storage.Snapshot.
func (s *snapshot) Next(ctx context.Context, o storage.Offset) (storage.Offset, error) {
	if err := s.inRange(o); err != nil {
		return 0, err
	}
	for i := s.find(o); i < s.len(); i++ {
		found, err := s.at(i).FindNext(ctx, o)
		if err == nil || !errors.Is(err, segment.ErrNone) {
			return found, err
		}
	}
	return s.end, nil
}

// FindTime implements storage.Snapshot.
func (s *snapshot) FindTime(ctx context.Context, ts int64) (storage.Offset, error) {
	for i := s.find(s.start); i < s.len(); i++ {
		found, err := s.at(i).FindTime(ctx, ts, s.start)
		if err == nil || !errors.Is(err, segment.ErrNone) {
			return found, err
		}
	}
	return s.end, nil
}

// FindLast implements storage.Snapshot.
func (s *snapshot) FindLast(ctx context.Context, n int64) (storage.Offset, error) {
	if n <= 0 {
		return s.end, nil
	}
	first := s.find(s.start)
	for i := s.len() - 1; i >= first; i-- {
		found, have, err := s.at(i).FindLast(ctx, n, s.start)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, segment.ErrNone) {
			return 0, err
		}
		n -= have
	}
	return s.Next(ctx, s.start)
}

// Records implements storage.Snapshot.
func (s *snapshot) Records(o storage.Offset) storage.Cursor { return &cursor{snap: s, from: o} }
