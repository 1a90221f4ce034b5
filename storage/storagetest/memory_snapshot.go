package storagetest

import (
	"context"
	"fmt"
	"math"

	"github.com/logmount/logmount/storage"
)

// memSnapshot answers everything by a walk over the records.
type memSnapshot struct {
	p *memPartition
	*memState
}

var _ storage.Snapshot = (*memSnapshot)(nil)

// Start implements storage.Snapshot.
func (s *memSnapshot) Start() storage.Offset { return s.start }

// End implements storage.Snapshot.
func (s *memSnapshot) End() storage.Offset { return s.end }

// Unchanged implements storage.Snapshot.
func (s *memSnapshot) Unchanged(generation uint64) storage.Offset {
	o := storage.Offset(math.MaxInt64)
	for _, c := range s.cuts {
		if c.generation > generation {
			o = min(o, c.offset)
		}
	}
	return o
}

// Generation implements storage.Snapshot.
func (s *memSnapshot) Generation() uint64 { return s.generation }

// Modified implements storage.Snapshot.
func (s *memSnapshot) Modified() int64 { return s.modified }

// Final implements storage.Snapshot.
func (s *memSnapshot) Final() bool { return s.final }

// visible calls f with the records of readable batches with from <= offset < to until f returns false.
func (s *memSnapshot) visible(from, to storage.Offset, f func(*storage.Record) bool) {
	for i := range s.batches {
		if s.batches[i].bad {
			continue
		}
		for j := range s.batches[i].records {
			r := &s.batches[i].records[j]
			if r.Offset >= from && r.Offset < min(to, s.end) && !f(r) {
				return
			}
		}
	}
}

// Next implements storage.Snapshot.
func (s *memSnapshot) Next(ctx context.Context, o storage.Offset) (storage.Offset, error) {
	if err := s.p.m.enter(ctx, "find"); err != nil {
		return 0, err
	}
	if o < s.start || o > s.end {
		return 0, fmt.Errorf("offset %d: %w: the log is %d to %d", o, storage.ErrOutOfRange, s.start, s.end)
	}
	found := s.end
	s.visible(o, s.end, func(r *storage.Record) bool { found = r.Offset; return false })
	return found, nil
}

// FindTime implements storage.Snapshot.
func (s *memSnapshot) FindTime(ctx context.Context, ts int64) (storage.Offset, error) {
	if err := s.p.m.enter(ctx, "find"); err != nil {
		return 0, err
	}
	found := s.end
	s.visible(s.start, s.end, func(r *storage.Record) bool {
		if r.Timestamp >= ts {
			found = r.Offset
		}
		return r.Timestamp < ts
	})
	return found, nil
}

// FindLast implements storage.Snapshot.
func (s *memSnapshot) FindLast(ctx context.Context, n int64) (storage.Offset, error) {
	if err := s.p.m.enter(ctx, "find"); err != nil {
		return 0, err
	}
	var all []storage.Offset
	s.visible(s.start, s.end, func(r *storage.Record) bool { all = append(all, r.Offset); return true })
	switch {
	case n <= 0 || len(all) == 0:
		return s.end, nil
	case n >= int64(len(all)):
		return all[0], nil
	}
	return all[int64(len(all))-n], nil
}

// piece is a record or batch with its size in some measure.
type piece struct {
	first, last storage.Offset
	size        int64
}

// pieces lists what of the whole log can be measured, in order.
func (s *memSnapshot) pieces(m *storage.Measure) []piece {
	var out []piece
	if !m.Batches {
		s.visible(0, s.end, func(r *storage.Record) bool {
			out = append(out, piece{first: r.Offset, last: r.Offset, size: m.Of(r)})
			return true
		})
		return out
	}
	for i := range s.batches {
		if b := &s.batches[i]; b.first() < s.end {
			out = append(out, piece{first: b.first(), last: b.last(), size: int64(len(b.data))})
		}
	}
	return out
}

func (s *memSnapshot) extent(m *storage.Measure, from, to storage.Offset) int64 {
	var n int64
	for _, x := range s.pieces(m) {
		if from < to && x.last >= from && x.first < to {
			n += x.size
		}
	}
	return n
}

func (s *memSnapshot) checkGone(o storage.Offset) error {
	if gone := storage.Offset(s.p.gone.Load()); o < gone {
		return fmt.Errorf("partition %s: offset %d: %w", s.p.tp, o, storage.ErrOffsetGone)
	}
	return nil
}

// Extent implements storage.Snapshot.
func (s *memSnapshot) Extent(ctx context.Context, m *storage.Measure, from, to storage.Offset) (int64, error) {
	if err := s.p.m.enter(ctx, "extent"); err != nil {
		return 0, err
	}
	if !m.Linear() {
		if err := s.p.m.enter(ctx, "count"); err != nil {
			return 0, err
		}
	}
	if err := s.checkGone(from); err != nil {
		return 0, err
	}
	return s.extent(m, from, to), nil
}

// ExtentNow implements storage.Snapshot.
func (s *memSnapshot) ExtentNow(m *storage.Measure, from, to storage.Offset) (n int64, exact bool) {
	if s.p.m.knobs.held("extent") || !m.Linear() && s.p.m.knobs.held("count") {
		return 0, false
	}
	return s.extent(m, from, to), true
}

// Locate implements storage.Snapshot.
func (s *memSnapshot) Locate(ctx context.Context, m *storage.Measure, anchor storage.Offset, p int64) (storage.Offset, int64, error) {
	if err := s.p.m.enter(ctx, "locate"); err != nil {
		return 0, 0, err
	}
	all := s.pieces(m)
	at := int64(0) // the place of the next piece, counted from the anchor
	for _, x := range all {
		if x.last < anchor {
			at -= x.size
		}
	}
	if p < at {
		return 0, 0, fmt.Errorf("partition %s: byte %d before offset %d: %w", s.p.tp, -p, anchor, storage.ErrOffsetGone)
	}
	for _, x := range all {
		if p < at+x.size {
			if err := s.checkGone(x.first); err != nil {
				return 0, 0, err
			}
			return x.first, p - at, nil
		}
		at += x.size
	}
	return s.end, 0, nil
}

// Records implements storage.Snapshot.
func (s *memSnapshot) Records(o storage.Offset) storage.Cursor { return &memCursor{s: s, at: o} }
