package partition

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
)

// syncer shares syncs: who comes while one is under way waits for it and then for the next, which covers all who came.
type syncer struct {
	names atomic.Uint64 // changes of names in the directory

	mu       sync.Mutex // guards what follows
	running  chan struct{}
	synced   storage.Offset // below it everything is on stable storage
	lasting  uint64         // what names was when the last sync of the directory began that succeeded
	unsealed storage.Offset // base of the first closed segment whose indexes may not be; -1 = none
	failed   error
}

func (s *syncer) init() { s.unsealed = -1 }

func (s *syncer) set(o storage.Offset) {
	s.mu.Lock()
	s.synced = o
	s.mu.Unlock()
}

// point is the recovery point: scanning starts at its segment, so it stays in the first segment whose indexes are not on stable storage.
func (s *syncer) point() storage.Offset {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsealed >= 0 {
		return min(s.synced, s.unsealed)
	}
	return s.synced
}

func (s *syncer) lastingNames() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lasting
}

// Sync implements storage.Partition.
func (l *Log) Sync(ctx context.Context) error {
	if err := l.goneErr(); err != nil {
		return err
	}
	if !l.Checkpointed() {
		return nil
	}
	return l.syncTo(ctx, l.unfiltered().end)
}

func (l *Log) syncTo(ctx context.Context, end storage.Offset) error {
	s := &l.syncer
	for {
		s.mu.Lock()
		if s.failed != nil {
			s.mu.Unlock()
			return fmt.Errorf("%s: %w: %w", l.o.TP, storage.ErrPoisoned, s.failed)
		}
		if s.synced >= end && s.lasting == s.names.Load() {
			s.mu.Unlock()
			return nil
		}
		if running := s.running; running != nil {
			s.mu.Unlock()
			select {
			case <-running:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		done := make(chan struct{})
		s.running = done
		s.mu.Unlock()
		l.syncRound(done)
	}
}

// syncRound does one sync, which no one can cut short.
func (l *Log) syncRound(done chan struct{}) {
	s := &l.syncer
	end, names, err := l.syncFiles()
	if err != nil {
		l.Poison(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = err
	} else {
		s.synced, s.lasting = max(s.synced, end), names
	}
	s.running = nil
	close(done)
}

// syncFiles puts the logs of all segments that are not sealed on stable storage, and the names of new ones.
func (l *Log) syncFiles() (end storage.Offset, names uint64, err error) {
	l.mu.Lock()
	end = l.active.Next
	segs := make([]*segment.Segment, 0, len(l.open)+1)
	for _, c := range l.open {
		segs = append(segs, c.view.Segment)
	}
	segs = append(segs, l.active.Segment())
	names = l.syncer.names.Load() // with the lock held: who counts one up makes the file before he lets go of the lock
	l.mu.Unlock()
	for _, seg := range segs {
		if err := seg.SyncLog(); err != nil && !l.dropped(seg) {
			return 0, 0, fmt.Errorf("sync: %w", err)
		}
	}
	if names != l.syncer.lastingNames() {
		if err := l.env.FS.SyncDir(l.o.Dir); err != nil {
			return 0, 0, fmt.Errorf("sync: %w", err)
		}
	}
	return end, names, nil
}

// dropped reports whether a segment has left the log, so that its files may be gone.
func (l *Log) dropped(seg *segment.Segment) bool {
	s := l.unfiltered()
	return s.at(s.find(seg.Base)).Segment != seg
}
