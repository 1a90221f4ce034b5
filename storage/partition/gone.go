package partition

import (
	"fmt"

	"github.com/logmount/logmount/storage"
)

// goneErr returns why the log is not to be used any more, or nil.
func (l *Log) goneErr() error {
	if err := l.gone.Load(); err != nil {
		return *err
	}
	return nil
}

// leave makes every later use of the log return why. The first reason stays. What readers have of it, snapshots and cursors, goes on as long as the files are there.
func (l *Log) leave(why error) {
	err := fmt.Errorf("%s: %w", l.o.TP, why)
	l.gone.CompareAndSwap(nil, &err)
}

// Remove makes the log refuse all work (storage.ErrPartitionNotFound) and lets go of its files, which the caller removes. Watchers are told.
func (l *Log) Remove() { l.drop(storage.ErrPartitionNotFound) }

// Abandon closes the log without writing anything.
func (l *Log) Abandon() { l.drop(storage.ErrClosed) }

func (l *Log) drop(why error) {
	l.leave(why)
	l.startMu.Lock() // a change of the start that is under way ends first: it removes files
	defer l.startMu.Unlock()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.watch.wake()
	l.env.Files.ForgetUnder(l.o.Dir)
}
