package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/logmount/logmount/storage"
)

var errLockLost = fmt.Errorf("%w: .lock is not ours any more, another program may be using the log directory", storage.ErrReadOnly)

// Close implements storage.Engine. The marker of a clean shutdown is put back as the last thing but the lock, and only if everything before went well.
func (e *Engine) Close() error {
	if err := e.shut(); err != nil {
		return err
	}
	e.cancel(fmt.Errorf("log directory %s: %w", e.o.Dir, storage.ErrClosed))
	e.wg.Wait()
	e.change <- struct{}{} // a change of topics that was under way is finished
	defer func() { <-e.change }()
	e.lockTick()
	inOrder := e.writable && e.refusal() == nil
	err := e.closeLogs(inOrder)
	if inOrder {
		err = errors.Join(err, e.settleDoubt(), e.saveCheckpoints())
	}
	err = errors.Join(err, e.files.Close())
	if inOrder && err == nil && e.allClean() && (e.kind == kindOwn || e.marker != nil) {
		err = e.putMarker()
	}
	if err != nil {
		e.o.Log.Error("the log directory was not closed cleanly", "dir", e.o.Dir, "err", err)
	}
	return errors.Join(err, e.releaseLock())
}

func (e *Engine) shut() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("log directory %s: %w", e.o.Dir, storage.ErrClosed)
	}
	e.closed = true
	return nil
}

// closeLogs closes all open logs, some at a time, and returns what went wrong.
func (e *Engine) closeLogs(inOrder bool) error {
	todo := make(chan *part)
	var workers sync.WaitGroup
	var mu sync.Mutex // guards errs
	var errs []error
	for range runtime.NumCPU() {
		workers.Go(func() {
			for p := range todo {
				if err := closeLog(p, inOrder); err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("partition %s: %w", p.tp, err))
					mu.Unlock()
				}
			}
		})
	}
	for _, p := range e.parts() {
		todo <- p
	}
	close(todo)
	workers.Wait()
	return errors.Join(errs...)
}

// closeLog closes a log. One that may be another program's by now is not written any more; what was appended is still put on stable storage.
func closeLog(p *part, inOrder bool) error {
	l := p.opened()
	if l == nil {
		return nil
	}
	ctx := context.Background() // nothing cuts a close short
	if inOrder || !l.MayWrite() {
		return l.Close(ctx)
	}
	err := l.Sync(ctx)
	l.Abandon()
	return err
}

// allClean reports whether every log is in order now: it was closed in order before and not touched, or it has been opened, and so recovered, by us.
func (e *Engine) allClean() bool {
	if e.startedClean() {
		return true
	}
	for _, p := range e.parts() {
		l := p.opened()
		recovered := p.own && (l == nil && p.fresh || l != nil && l.Writable(context.Background()) == nil)
		if !recovered {
			return false
		}
	}
	return true
}
