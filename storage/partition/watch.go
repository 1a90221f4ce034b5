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
	if l.watch.add(w) && l.Followed() && l.env.Watched != nil {
		l.env.Watched(l)
	}
	return func() { l.watch.remove(w) }
}

// add reports whether w is the first.
func (w *watchers) add(x *watcher) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m == nil {
		w.m = map[*watcher]struct{}{}
	}
	w.m[x] = struct{}{}
	return w.n.Add(1) == 1
}

func (w *watchers) remove(x *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.m[x]; ok {
		delete(w.m, x)
		w.n.Add(-1)
	}
}

// Followed reports whether somebody else may be writing the log, so that it has to be looked at.
func (l *Log) Followed() bool { return l.observer != nil && !l.o.Final }

// Waited reports whether anybody waits for the log.
func (l *Log) Waited() bool { return l.watch.n.Load() > 0 }

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
