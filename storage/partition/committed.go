package partition

import (
	"context"
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
)

// committed is what read_committed needs to know of a log. It is nil where aborted transactions are shown.
type committed struct {
	txns segment.Txns
	upTo storage.Offset // batches below it are in txns
}

// note takes the batches of s that are new since the last call.
func (c *committed) note(ctx context.Context, s *snapshot) error {
	if c.upTo >= s.end {
		return nil
	}
	next := c.txns.Clone()
	for i := s.find(c.upTo); i < s.len(); i++ {
		v := s.at(i)
		pos, err := v.StartOf(ctx, c.upTo)
		if err != nil {
			return err
		}
		if err := v.AddTransactions(ctx, next, pos, max(v.Base, c.upTo)); err != nil {
			return err
		}
	}
	c.txns, c.upTo = *next, s.end
	return nil
}

// again starts from the beginning, because what was noted is not in the log any more.
func (c *committed) again() { *c = committed{} }

// of returns s as read_committed shows it: without the data of aborted transactions, and ending at the last stable offset.
func (c *committed) of(ctx context.Context, s *snapshot) (*snapshot, error) {
	stable := c.txns.Stable(s.end)
	hidden := segment.Hide(c.txns.Aborted())
	if stable >= s.end && hidden == nil {
		return s, nil
	}
	r := *s
	r.end = max(min(stable, s.end), s.start)
	last := s.find(r.end)
	r.closed = nil
	for i := 0; i <= last; i++ {
		v, err := s.at(i).Committed(ctx, hidden, r.end)
		if err != nil {
			return nil, err
		}
		if i == last {
			r.active = v
		} else {
			r.closed = append(r.closed, &v)
		}
	}
	return &r, nil
}

// Holds reports whether the log has a record that is shown, or may be once a transaction that is open now has ended.
func (l *Log) Holds(ctx context.Context) (bool, error) {
	s, err := l.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	o, err := s.Next(ctx, s.Start())
	if err != nil || o < s.End() || !l.o.Writable {
		return o < s.End(), err
	}
	w := l.unfiltered()
	o, err = w.Next(ctx, max(s.End(), w.start))
	return o < w.end, err
}

// openTransaction returns why a log with an open transaction takes no appends under read_committed: its reader would not see them.
func (l *Log) openTransaction(s *snapshot) error {
	stable := l.committed.txns.Stable(s.end)
	if stable >= s.end {
		return nil
	}
	return fmt.Errorf("%s: %w: a transaction is open from offset %d on, and isolation=read_committed ends there", l.o.TP, storage.ErrReadOnly, stable)
}
