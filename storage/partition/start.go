package partition

import (
	"context"
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
)

// SetStart implements storage.Partition.
func (l *Log) SetStart(ctx context.Context, o storage.Offset) error {
	l.startMu.Lock()
	defer l.startMu.Unlock()
	l.mu.Lock()
	err := l.refusedLocked()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	s := l.unfiltered()
	if o > s.end {
		return fmt.Errorf("%s: start %d: %w: the log ends at %d", l.o.TP, o, storage.ErrOutOfRange, s.end)
	}
	if o <= s.start {
		return nil
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	// What is below the new start must not come back, and what is above must not be lost with what was above it.
	if err := l.syncTo(ctx, o); err != nil {
		return err
	}
	if l.foreign == nil { // before the start is written down, after which it is not to be refused any more
		if err := l.rollEmptied(o); err != nil {
			return fmt.Errorf("%s: start %d: %w", l.o.TP, o, err)
		}
		// The name of the segment that goes on must last before those that held the log's end are removed.
		if err := l.syncTo(ctx, o); err != nil {
			return err
		}
	}
	if l.onStart != nil {
		if err := l.onStart(o); err != nil {
			return fmt.Errorf("%s: start %d: %w", l.o.TP, o, err)
		}
	}
	gone := l.publishStart(o)
	l.watch.wake()
	for _, v := range gone {
		if err := v.Remove(); err != nil {
			l.env.Log.Warn("segment not removed", "path", v.Path(), "err", err)
		}
	}
	return nil
}

// rollEmptied begins a new segment if the active one would hold nothing any more, so that its room is freed.
func (l *Log) rollEmptied(o storage.Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusedLocked(); err != nil {
		return err
	}
	if o != l.active.Next || l.active.Size == 0 {
		return nil
	}
	now := l.env.Now().UnixMilli()
	w := l.begin()
	w.finishPiece(0)
	w.app = l.newSegment(o).NewAppender(now)
	w.piece(true)
	modified := l.whole.modified
	if err := l.commit(w, now); err != nil {
		return err
	}
	s := *l.whole
	s.modified = modified // nothing was appended
	return l.publishWritten(context.Background(), &s)
}

// publishStart publishes the new start and returns the segments that lie below it.
func (l *Log) publishStart(o storage.Offset) []*segment.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := *l.whole
	n := 0
	for n < len(s.closed) && s.closed[n].Next <= o {
		n++
	}
	gone := s.closed[:n:n]
	s.closed = s.closed[n:]
	s.start, s.generation = o, s.generation+1
	for len(l.open) > 0 && l.open[0].next <= o {
		l.open = l.open[1:]
	}
	l.noteUnsealedLocked()
	if err := l.publishWritten(context.Background(), &s); err != nil {
		l.report(l.o.Dir, err.Error())
	}
	return gone
}
