package local

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
)

const (
	followEvery     = 50 * time.Millisecond
	checkpointEvery = time.Minute
	lockEvery       = 2 * time.Second
	lockRetry       = 100 * time.Millisecond
)

// startLoops starts the background work, which ends when the engine's context does.
func (e *Engine) startLoops() {
	e.wg.Go(func() { e.sizesPass(e.ctx) })
	e.wg.Go(func() { e.followLoop(e.ctx) })
	if !e.writable {
		return
	}
	e.wg.Go(func() { e.maintainLoop(e.ctx) })
	e.wg.Go(func() { e.every(e.ctx, checkpointEvery, e.checkpointTick) })
	e.wg.Go(func() { e.every(e.ctx, lockEvery, func(context.Context) { e.lockTick() }) })
}

func (e *Engine) every(ctx context.Context, d time.Duration, tick func(context.Context)) {
	t := time.NewTicker(d) //nolint:forbidigo // the one place where the loops wait for time to pass
	defer t.Stop()
	for {
		select {
		case <-t.C:
			tick(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// checkpointTick writes the checkpoints if something has changed.
func (e *Engine) checkpointTick(ctx context.Context) {
	if e.turn(ctx) != nil {
		return
	}
	defer func() { <-e.change }()
	if e.refusal() != nil {
		return
	}
	if err := e.saveCheckpoints(); err != nil {
		e.report(e.o.Dir, "writing the checkpoints: "+err.Error())
		e.o.Log.Warn("writing the checkpoints", "dir", e.o.Dir, "err", err)
	}
}

// lockTick refuses appends when the lock is not ours any more: somebody has unlinked it, and another program may be writing.
func (e *Engine) lockTick() {
	if e.lock != nil && !e.lock.Ours() {
		e.refuse(errLockLost)
	}
}

func (e *Engine) watch(*partition.Log) {
	select {
	case e.watched <- struct{}{}:
	default:
	}
}

// followLoop looks at logs that others write for as long as somebody waits for them.
func (e *Engine) followLoop(ctx context.Context) {
	for {
		select {
		case <-e.watched:
		case <-ctx.Done():
			return
		}
		looks, stop := context.WithCancel(ctx)
		e.every(looks, followEvery, func(ctx context.Context) {
			if !e.followTick(ctx) {
				stop()
			}
		})
		stop()
	}
}

// followTick reports whether there was a log to look at.
func (e *Engine) followTick(ctx context.Context) bool {
	any := false
	for _, p := range e.parts() {
		l := p.opened()
		if l == nil || !l.Waited() || !l.Followed() {
			continue
		}
		any = true
		err := l.Look(ctx)
		switch {
		case err == nil || ctx.Err() != nil || p.gone() != nil:
		case errors.Is(err, storage.ErrPartitionNotFound): // whoever waits for it has to be told
			if err := e.refresh(); err != nil {
				e.report(e.o.Dir, "following: "+err.Error())
			}
		default:
			e.report(p.dir, "following: "+err.Error())
		}
	}
	return any
}

// sleep waits for d, or returns the context's cause.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d) //nolint:forbidigo // waiting for another process
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retryLocked calls take until it gives something other than storage.ErrLocked, or the options' time is up.
func (e *Engine) retryLocked(ctx context.Context, take func() error) error {
	for waited := time.Duration(0); ; waited += lockRetry {
		err := take()
		if !errors.Is(err, storage.ErrLocked) || waited >= e.o.LockWait {
			return err
		}
		if waited == 0 {
			e.o.Log.Info("waiting for the lock", "err", err)
		}
		if err := sleep(ctx, lockRetry); err != nil {
			return err
		}
	}
}

// maintenance is the queue of logs that have closed segments to be sealed.
type maintenance struct {
	wake chan struct{}

	// mu guards the fields below.
	mu     sync.Mutex
	queue  []*partition.Log
	queued map[*partition.Log]bool
}

func (m *maintenance) init() {
	m.wake, m.queued = make(chan struct{}, 1), map[*partition.Log]bool{}
}

func (m *maintenance) add(l *partition.Log) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.queued[l] {
		m.queued[l] = true
		m.queue = append(m.queue, l)
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *maintenance) next() *partition.Log {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return nil
	}
	l := m.queue[0]
	m.queue = m.queue[1:]
	delete(m.queued, l)
	return l
}

func (e *Engine) maintainLoop(ctx context.Context) {
	for {
		select {
		case <-e.seal.wake:
			e.maintainTick(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// maintainTick seals what waits to be sealed.
func (e *Engine) maintainTick(ctx context.Context) {
	for ctx.Err() == nil {
		l := e.seal.next()
		if l == nil {
			return
		}
		if err := l.Maintain(ctx); err != nil && ctx.Err() == nil {
			st := l.Status()
			tp := storage.TopicPartition{Topic: st.Topic, Partition: st.Partition}
			e.report(tp.String(), "sealing segments: "+err.Error())
			e.o.Log.Warn("sealing segments", "topic", st.Topic, "partition", st.Partition, "err", err)
		}
	}
}

// sizesPass opens all logs and works out the sums that their segments lack, some logs at a time.
func (e *Engine) sizesPass(ctx context.Context) {
	todo := make(chan *part)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for p := range todo {
				e.sizesTick(ctx, p)
			}
		})
	}
	for _, p := range e.parts() {
		select {
		case todo <- p:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(todo)
	workers.Wait()
}

func (e *Engine) sizesTick(ctx context.Context, p *part) {
	l, err := e.logOf(ctx, p)
	if err != nil {
		return // reported where it was found
	}
	if err := l.BuildSizes(ctx); err != nil && ctx.Err() == nil && p.gone() == nil {
		e.report(p.dir, "measuring: "+err.Error())
	}
}
