package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// defaultBatchSize is what a Kafka producer's batch.size is by default.
const defaultBatchSize = 16384

// Options says how a tree shows its engine. Now is required; whatever else is zero has a default.
type Options struct {
	// ReadOnly refuses what would change the log even where the engine would allow it.
	ReadOnly bool
	// UID and GID own everything; nil is the owner of DATA.
	UID, GID *uint32
	// Umask gives the modes (0777 and 0666 without its bits); nil takes them from DATA's mode.
	Umask *uint32
	// BatchSize is the largest batch that the records of one request are put together to, in bytes.
	BatchSize int
	// Now is the clock of timestamps and of names relative to it.
	Now func() time.Time
	// Location is the zone of times in names that have none. The default is UTC.
	Location *time.Location
	// Version is what .logmount/version says.
	Version string
	// Log gets what an operator should see. The default discards it.
	Log *slog.Logger
	// Reports collects what went wrong; a fresh one if nil.
	Reports *Reports
	// Settings is what .logmount/config shows.
	Settings map[string]string
}

// Tree answers the kernel's requests from an engine. It is everything but the mount: it needs no mount to be tested, and starts no
// goroutine but those that read ahead of a file.
type Tree struct {
	engine  storage.Engine
	opts    Options
	log     *slog.Logger
	reports *Reports
	started time.Time

	dying func(pid uint32) bool // whether a task is being ended by a signal

	raw     *rawFS
	parts   *partTable
	settle  *settleTable
	locks   *lockTable
	writers *writerSet

	readers, writing, followers atomic.Int64 // open files, for status

	stopping atomic.Bool
	stopOnce sync.Once
	stop     chan struct{} // closed by Shutdown

	topics broadcast     // a topic or partition was made here
	seeds  atomic.Uint64 // numbers the opens of topic tails
}

// NewTree returns the tree over e. It does not touch e yet.
func NewTree(e storage.Engine, o Options) *Tree {
	if o.BatchSize <= 0 {
		o.BatchSize = defaultBatchSize
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Reports == nil {
		o.Reports = NewReports(o.Log, o.Now)
	}
	t := &Tree{
		engine:  e,
		opts:    o,
		log:     o.Log,
		reports: o.Reports,
		started: o.Now(),
		dying:   taskDying,
		parts:   newPartTable(e),
		settle:  newSettleTable(),
		locks:   newLockTable(),
		writers: newWriterSet(),
		stop:    make(chan struct{}),
	}
	t.raw = newRawFS(t)
	return t
}

// Raw returns the handler of the kernel's requests, to be given to fuse.NewServer.
func (t *Tree) Raw() fuse.RawFileSystem { return t.raw }

// Shutdown ends the use of the tree: new opens and writes are refused, followers get end of file, and the unfinished lines of writers that are still open
// become records; what is unfinished of .json, .batch and .whole is dropped and reported, as it may be half of one. It may be called more than once. The engine is not closed.
func (t *Tree) Shutdown(ctx context.Context) {
	t.stopOnce.Do(func() {
		t.stopping.Store(true)
		close(t.stop)
		t.locks.close()
	})
	for _, w := range t.writers.list() {
		w.stop(ctx)
	}
}

// errStopping is what is refused during Shutdown.
var errStopping = fmt.Errorf("the mount is going away: %w", storage.ErrClosed)

// running returns nil, or the error that new opens and writes get once Shutdown has begun.
func (t *Tree) running() error {
	if t.stopping.Load() {
		return errStopping
	}
	return nil
}

// mayChange returns nil unless the whole mount is read-only.
func (t *Tree) mayChange() error {
	if t.opts.ReadOnly {
		return fmt.Errorf("the mount is read-only: %w", storage.ErrReadOnly)
	}
	return t.running()
}

// openHandles returns how many files are open, by what they are open for.
func (t *Tree) openHandles() (readers, writers, followers int64) {
	return t.readers.Load(), t.writing.Load(), t.followers.Load()
}

// runNotifier tells the kernel to forget names that have not been used for long, until ctx is cancelled. It is a goroutine of the mount: to notify
// the kernel from within a handler could wait for that very handler.
func (t *Tree) runNotifier(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-t.raw.table.stale:
			if s := t.raw.server.Load(); s != nil {
				_ = s.EntryNotify(n.parent, n.name) // ENOENT where the kernel has forgotten it already
			}
		}
	}
}

// status turns the error of a handler into the answer to the kernel.
func (t *Tree) status(op string, in *inode, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	if r, ok := errors.AsType[refusal](err); ok {
		return fuse.Status(r)
	}
	return fuse.Status(failure(t.log, t.reports, op, in.path(), err))
}

// fileStatus is status for what is done through an open file: that its topic is no more does not mean that a name was not found.
func (t *Tree) fileStatus(op string, in *inode, err error) fuse.Status {
	if isGone(err) {
		err = errStale
	}
	return t.status(op, in, err)
}

// isGone reports whether err says that a topic or partition is not there, which of one that was means that it has been deleted.
func isGone(err error) bool {
	return errors.Is(err, storage.ErrTopicNotFound) || errors.Is(err, storage.ErrPartitionNotFound)
}

// broadcast wakes everybody who waits for a change.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that is closed at the next change.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// gate is a mutex whose wait can be interrupted.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) lock(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Canceled
	}
}

func (g gate) unlock() { <-g }
