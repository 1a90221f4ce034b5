package partition

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
)

// Maintain seals the closed segments: log and indexes go to stable storage, then the size index is written and what the writer kept in memory let go.
func (l *Log) Maintain(ctx context.Context) error {
	for {
		l.mu.Lock()
		if len(l.open) == 0 || l.poisoned != nil { // nothing of a poisoned log is sealed
			l.mu.Unlock()
			return nil //nolint:nilerr // The log has told why already.
		}
		c := l.open[0]
		l.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := l.seal(ctx, c); err != nil && !l.dropped(c.view.Segment) {
			return err
		}
	}
}

func (l *Log) seal(ctx context.Context, c *closedSegment) error {
	err := c.view.SyncAll()
	if err == nil && l.keepsTxns() {
		err = c.view.SyncTxns()
	}
	if err == nil {
		err = l.syncTo(ctx, c.next)
	}
	if err == nil {
		err = c.view.SaveSizes(ctx)
	} else if !l.dropped(c.view.Segment) && ctx.Err() == nil {
		l.Poison(fmt.Errorf("seal %s: %w", c.view.Path(), err))
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.poisoned != nil {
		return err
	}
	for i, o := range l.open {
		if o == c {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
			break
		}
	}
	l.noteUnsealedLocked()
	l.settleView(c)
	return err
}

// noteUnsealedLocked keeps the recovery point in the first segment whose indexes may not be on stable storage.
func (l *Log) noteUnsealedLocked() {
	l.syncer.mu.Lock()
	defer l.syncer.mu.Unlock()
	l.syncer.unsealed = -1
	if len(l.open) > 0 {
		l.syncer.unsealed = l.open[0].view.Base
	}
}

// settleView publishes a sealed segment's view without what the writer knew of it: readers look into the files from now on.
func (l *Log) settleView(c *closedSegment) {
	old := l.whole
	i := old.find(c.view.Base)
	if i >= len(old.closed) || old.closed[i].Segment != c.view.Segment {
		return
	}
	v := *old.closed[i]
	v.Live = nil
	v.ForgetIndexes()
	s := *old
	s.closed = append([]*segment.View{}, old.closed...)
	s.closed[i] = &v
	if err := l.publishWritten(context.Background(), &s); err != nil {
		l.report(l.o.Dir, err.Error())
	}
}

// BuildSizes makes the sums of all segments that lack them, newest first.
func (l *Log) BuildSizes(ctx context.Context) error {
	s := l.snap.Load()
	m := &storage.Measure{}
	for i := s.len() - 1; i >= 0; i-- {
		if _, err := s.at(i).Table(ctx, m); err != nil && !errors.Is(err, storage.ErrOffsetGone) {
			return err
		}
	}
	return nil
}

// build makes the tables of a measure for several segments at once. Errors come back when the tables are used.
func (s *snapshot) build(ctx context.Context, m *storage.Measure, first, last int) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := last; i >= first && ctx.Err() == nil; i-- {
		v := s.at(i)
		if v.Has(m) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, _ = v.Table(ctx, m)
		})
	}
	wg.Wait()
}

// Close ends the log: watchers are told, segments sealed, the active one's indexes closed and its size index written. An error, or a log that was
// poisoned before, means that the next opening has to recover it.
func (l *Log) Close(ctx context.Context) error {
	l.startMu.Lock() // a change of the start that is under way ends first: it removes files
	defer l.startMu.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	poisoned := l.poisoned
	l.mu.Unlock()
	l.watch.wake()
	defer l.leave(storage.ErrClosed) // not earlier: there may be much to sync, and readers go on meanwhile
	if !l.Checkpointed() {
		return l.keepSizes(ctx)
	}
	if poisoned != nil {
		return fmt.Errorf("%s: %w: %w", l.o.TP, storage.ErrPoisoned, poisoned)
	}
	if err := l.Maintain(ctx); err != nil {
		return err
	}
	if err := l.closeSegment(&l.active); err != nil {
		return fmt.Errorf("%s: close: %w", l.o.TP, err)
	}
	if err := l.active.Segment().SyncAll(); err != nil {
		return fmt.Errorf("%s: close: %w", l.o.TP, err)
	}
	if err := l.syncTo(ctx, l.active.Next); err != nil {
		return err
	}
	if err := l.closeProducers(); err != nil {
		return fmt.Errorf("%s: close: %w", l.o.TP, err)
	}
	v := l.active.View()
	return v.SaveSizes(ctx)
}

// keepSizes writes the sums of the end of a log that is not written here where the next mount will find them.
func (l *Log) keepSizes(ctx context.Context) error {
	s := l.snap.Load()
	if s.active.Tail {
		return s.active.SaveSizes(ctx)
	}
	return nil
}
