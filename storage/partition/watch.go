package partition

import (
	"sync"
	"sync/atomic"
)

// watchers are told of each new snapshot.
type watchers struct {
	n  atomic.Int32 // so that an append that nobody watches takes no lock
	mu sync.Mutex   // guards m
	m  map[*watcher]struct{}
}

type watcher struct{ ch chan<- struct{} }

// Watch implements storage.Partition.
func (l *Log) Watch(ch chan<- struct{}) (stop func()) {
	w := &watcher{ch}
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	if l.watch.m == nil {
		l.watch.m = map[*watcher]struct{}{}
	}
	l.watch.m[w] = struct{}{}
	l.watch.n.Add(1)
	return func() {
		l.watch.mu.Lock()
		defer l.watch.mu.Unlock()
		if _, ok := l.watch.m[w]; ok {
			delete(l.watch.m, w)
			l.watch.n.Add(-1)
		}
	}
}

func (w *watchers) wake() {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.m {
		select {
		case x.ch <- struct{}{}:
		default:
		}
	}
}
