package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
)

// cursor walks over a log, one segment after the other. It implements storage.Cursor.
type cursor struct {
	snap *snapshot
	from storage.Offset // where to start, while reader is not open
	r    segment.Reader
	open bool
}

// Offset implements storage.Cursor.
func (c *cursor) Offset() storage.Offset {
	if c.open {
		return c.r.Offset()
	}
	return c.from
}

// Close implements storage.Cursor.
func (c *cursor) Close() {
	c.from = c.Offset()
	c.r.Close()
	c.open = false
}

// Advance implements storage.Cursor.
func (c *cursor) Advance(s storage.Snapshot) {
	n, ok := s.(*snapshot)
	if !ok || n.log != c.snap.log {
		return
	}
	if n.Unchanged(c.snap.generation) != math.MaxInt64 { // the log was cut: what was read ahead may be gone
		c.Close()
	}
	c.snap = n
}

// Next implements storage.Cursor.
func (c *cursor) Next(ctx context.Context) (*storage.Record, error) {
	for {
		if c.open {
			r, err := c.r.Next()
			if err == nil || !errors.Is(err, io.EOF) {
				return r, err
			}
		}
		if err := c.turn(ctx); err != nil {
			return nil, err
		}
	}
}

// NextBatch implements storage.Cursor.
func (c *cursor) NextBatch(ctx context.Context) ([]byte, error) {
	for {
		if c.open {
			b, err := c.r.NextBatch()
			if err == nil || !errors.Is(err, io.EOF) {
				return b, err
			}
		}
		if err := c.turn(ctx); err != nil {
			return nil, err
		}
	}
}

// turn opens the segment where the cursor stands, or leaves one that has been read to its end.
func (c *cursor) turn(ctx context.Context) error {
	if !c.open {
		err := c.enter(ctx)
		if errors.Is(err, storage.ErrOffsetGone) && c.rewritten(ctx) {
			err = c.enter(ctx)
		}
		return err
	}
	if err := c.leave(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil { // between segments: one may have nothing to show
		return context.Cause(ctx)
	}
	return nil
}

// enter opens the segment where the cursor stands.
func (c *cursor) enter(ctx context.Context) error {
	if first := c.snap.at(0).Base; c.from < first {
		return fmt.Errorf("%s: offset %d: %w: the log starts at %d", c.snap.log.o.TP, c.from, storage.ErrOffsetGone, first)
	}
	if err := c.r.Open(ctx, c.snap.at(c.snap.find(c.from)), c.from); err != nil {
		return err
	}
	c.open = true
	return nil
}

// rewritten looks whether a segment that is not there any more has been replaced, as a compaction does, and takes the replacement. What follows the snapshot's
// end stays hidden: the last segment is kept as it was.
func (c *cursor) rewritten(ctx context.Context) bool {
	l, old := c.snap.log, c.snap
	if !l.Followed() || l.Look(ctx) != nil {
		return false
	}
	now := l.snap.Load()
	i := now.find(old.active.Base)
	if now.generation == old.generation || now.Unchanged(old.generation) != math.MaxInt64 || now.at(i).Segment != old.active.Segment || c.from < now.at(0).Base {
		return false
	}
	s := *old
	s.closed = now.closed[:i:i]
	c.snap = &s
	return true
}

// leave is called at the end of the segment's view: it takes a newer view of the segment or goes to the next segment. io.EOF where there is no more.
func (c *cursor) leave(ctx context.Context) error {
	old := c.r.View()
	i := c.snap.find(old.Base)
	if v := c.snap.at(i); v.Segment == old.Segment {
		if v.Size > old.Size {
			return c.r.Extend(ctx, v)
		}
		if i == c.snap.len()-1 {
			c.r.Rest()
			return io.EOF
		}
		c.from = max(c.r.Offset(), c.snap.at(i+1).Base)
	} else {
		// The segment was removed while it was read: what follows it may be there.
		c.from = max(c.r.Offset(), old.Next)
	}
	c.r.Close()
	c.open = false
	return nil
}
