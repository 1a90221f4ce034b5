package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const metadataLimit = 4096

// part is one log of the directory, which may not have been opened yet.
type part struct {
	tp     storage.TopicPartition
	dir    string
	ino    uint64    // of the directory, as it was listed
	found  time.Time // when the directory had last been changed then; zero of one made in this run
	id     string    // topic id of one of ours, else empty
	config storage.TopicConfig
	own    bool
	reason string // why it is not written
	fresh  bool   // made in this run: there is nothing to recover

	// mu guards the fields below.
	mu      sync.Mutex
	log     *partition.Log
	opening *opening
	removed error // why it is not to be opened any more
}

// opening is one attempt to open a log, shared by all who wait for it.
type opening struct {
	done chan struct{}
	log  *partition.Log
	err  error
}

// opened returns the log if it is open.
func (p *part) opened() *partition.Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log
}

// gone returns the reason why the log is not to be used any more, or nil.
func (p *part) gone() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removed
}

// logOf returns the log, opening it first if nobody has. Opening goes on when one who waits for it leaves.
func (e *Engine) logOf(ctx context.Context, p *part) (*partition.Log, error) {
	l, op, err := e.join(p)
	if err != nil || l != nil {
		return l, err
	}
	select {
	case <-op.done:
		return op.log, op.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join returns the open log, or the attempt to open it that is under way, after starting one where there is none.
func (e *Engine) join(p *part) (*partition.Log, *opening, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return nil, nil, fmt.Errorf("partition %s: %w", p.tp, storage.ErrClosed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.removed != nil:
		return nil, nil, p.removed
	case p.log != nil:
		return p.log, nil, nil
	case p.opening == nil:
		op := &opening{done: make(chan struct{})}
		p.opening = op
		e.wg.Go(func() { e.runOpening(p, op) })
	}
	return nil, p.opening, nil
}

func (e *Engine) runOpening(p *part, op *opening) {
	defer close(op.done)
	l, err := e.openLog(p)
	op.log, op.err = e.settle(p, l, err)
	if op.err != nil && !errors.Is(op.err, context.Canceled) && !errors.Is(op.err, storage.ErrClosed) {
		e.report(p.dir, op.err.Error())
	}
}

// settle makes a log that was opened the part's, unless the part has been removed in the meantime.
func (e *Engine) settle(p *part, l *partition.Log, err error) (*partition.Log, error) {
	if err == nil {
		if refused := e.refusal(); refused != nil {
			l.Refuse(refused)
		}
	}
	removed := p.assign(l, err)
	if err == nil && removed != nil {
		l.Remove()
		return nil, removed
	}
	// Whoever refuses appends sets the reason first and then tells the logs that it finds: one of the two looks sees the other.
	if err == nil {
		if refused := e.refusal(); refused != nil {
			l.Refuse(refused)
		}
		return l, nil
	}
	return nil, err
}

func (p *part) assign(l *partition.Log, err error) (removed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening = nil
	if err == nil && p.removed == nil {
		p.log = l
	}
	return p.removed
}

// openLog opens, and recovers, a log.
func (e *Engine) openLog(p *part) (*partition.Log, error) {
	reason := p.reason
	if p.own && e.writable {
		var err error
		if reason, err = e.completeDir(p); err != nil {
			return nil, fmt.Errorf("partition %s: %w", p.tp, err)
		}
	}
	var refused refusal
	if e.foreignWrites() {
		var err error
		if refused, err = e.admit(p); err != nil {
			return nil, fmt.Errorf("partition %s: %w", p.tp, err)
		}
		reason = refused.reason
	}
	recovery, start := e.points.of(p.tp)
	o := partition.Options{
		TP: p.tp, Dir: p.dir, Config: p.config, Writable: (p.own || e.foreignWrites()) && e.writable && reason == "", Reason: reason, Clean: e.wasClean(p),
		RecoveryPoint: recovery, LogStart: start, Final: e.final(p), Committed: e.o.Committed, Foreign: e.foreignWrites(), Denied: refused.denied, Exact: e.o.Exact && p.own,
	}
	if o.Foreign && !o.Writable {
		o.Final = true // nobody else can be writing it while we have the lock
	}
	if !o.Writable {
		o.LogStartNow = func() storage.Offset { return e.logStartNow(p.tp) }
	}
	l, err := partition.Open(e.ctx, e.env, o)
	if o.Writable && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		// What recovery needs room for waits until the next mount; what is there can be read.
		e.report(p.dir, err.Error()+": read-only until the next mount")
		o.Writable, o.Clean, o.Final, o.Reason = false, false, true, "there was no room to recover it: "+err.Error()
		l, err = partition.Open(e.ctx, e.env, o)
	}
	if err != nil {
		return nil, err
	}
	if o.Writable {
		l.OnStart(func(o storage.Offset) error { return e.saveStart(p, o) })
	}
	return l, nil
}

// wasClean reports whether the log was closed cleanly by whoever wrote it last.
func (e *Engine) wasClean(p *part) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.clean || p.fresh
}

// final reports that nobody can be writing the log: it is a copy without a lock, or we hold the lock and do not write it.
func (e *Engine) final(p *part) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.kind == kindCopy && !e.seen.locked || e.kind == kindOwn && e.writable && !p.own
}

// completeDir finishes what a crash left of the making of one of our directories. It returns a reason not to write the log.
func (e *Engine) completeDir(p *part) (reason string, err error) {
	name := filepath.Join(p.dir, state.MetadataFile)
	b, err := vfs.ReadFile(e.o.FS, name, metadataLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", e.fillDir(p.dir, p.id)
	case err != nil:
		return "", err
	}
	id, err := state.ParsePartitionMetadata(b)
	if err != nil {
		e.report(name, err.Error())
		return state.MetadataFile + " cannot be read", nil
	}
	if id != p.id {
		reason = fmt.Sprintf("%s says topic id %s, %s says %s", state.MetadataFile, id, state.TopicsFile, p.id)
		e.report(name, reason)
	}
	return reason, nil
}

// readTopicID returns the topic id that a partition's directory tells, or "".
func readTopicID(fsys vfs.FS, dir string) string {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, state.MetadataFile), metadataLimit)
	if err != nil {
		return ""
	}
	id, err := state.ParsePartitionMetadata(b)
	if err != nil {
		return ""
	}
	return id
}
