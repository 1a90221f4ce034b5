package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const markerLimit = 4096

// Open opens a log directory. It reads the directory's listing and the small files at its top; logs are opened when they are first asked for.
//
// An empty directory and one of ours are opened for writing: the lock is taken (storage.ErrLocked), and what a crash left of changes to topics is
// finished. Every other log directory is read-only, unless the options say ReadWrite. A directory that is neither is storage.ErrNotLogDirectory.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := makeDir(&o); err != nil {
		return nil, err
	}
	l, err := scan(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	if o.OneOfSeveral && l.kind == kindOwn {
		return nil, l.alone(o.Dir)
	}
	if o.Exact && l.kind != kindOwn {
		return nil, fmt.Errorf("%s: %w: -o batch=exact is for directories of logmount's own; %s", o.Dir, storage.ErrNotPermitted, l.whose())
	}
	e := &Engine{o: o, identity: readIdentity(&o, l), kind: l.kind, change: make(chan struct{}, 1), files: vfs.NewFiles(o.FS, o.MaxFiles), reason: l.reason(&o)}
	e.seal.init()
	e.watched = make(chan struct{}, 1)
	e.env = &partition.Env{FS: o.FS, Files: e.files, Now: o.Now, Report: o.Report, Log: o.Log, CacheDir: o.cacheDir(), Seal: e.seal.add, Sleep: sleep, Watched: e.watch}
	e.ctx, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	e.writable = e.reason == ""
	if err := e.prepare(ctx); err != nil {
		e.cancel(err)
		return nil, errors.Join(err, e.files.Close(), e.releaseLock())
	}
	if !o.noLoops {
		e.startLoops()
	}
	return e, nil
}

// prepare does what Open writes and reads.
func (e *Engine) prepare(ctx context.Context) error {
	if e.writable {
		if err := e.takeLock(ctx); err != nil {
			return err
		}
	}
	if !e.writable {
		return e.list()
	}
	l, err := scan(e.o.FS, e.o.Dir) // it may have changed while the lock was not ours
	if err != nil {
		return err
	}
	if l.kind != e.kind {
		return fmt.Errorf("log directory %s: %w: it has just become another's", e.o.Dir, storage.ErrUnavailable)
	}
	if e.kind == kindOwn {
		if err := e.own(l); err != nil {
			return err
		}
		return e.list()
	}
	if err := e.adopt(l); err != nil {
		return err
	}
	err = e.list()
	if err != nil && e.marker != nil {
		err = errors.Join(err, e.putMarker())
	}
	return err
}

// takeLock takes the lock, waiting for it as long as the options say. On a medium that cannot be written the engine becomes read-only.
func (e *Engine) takeLock(ctx context.Context) error {
	path := filepath.Join(e.o.Dir, state.LockFile)
	var lock vfs.Lock
	err := e.retryLocked(ctx, func() (err error) {
		lock, err = e.o.FS.Lock(path, 0o644)
		return err
	})
	if errors.Is(err, syscall.EROFS) {
		e.writable, e.reason = false, "the file system is read-only"
		return nil
	}
	if err != nil {
		return err
	}
	e.lock = lock
	info, err := e.o.FS.Stat(e.o.Dir)
	if err != nil {
		return err
	}
	owner := vfs.OwnerOf(info)
	switch err := owner.Apply(e.o.FS, path); {
	case err == nil:
		e.owner = &owner
	case errors.Is(err, fs.ErrPermission) && e.kind == kindOwn:
		e.o.Log.Info("files are made as our own, not as the directory's owner's", "dir", e.o.Dir)
	default:
		return err
	}
	return nil
}

func (e *Engine) releaseLock() error {
	if e.lock == nil {
		return nil
	}
	return e.lock.Release()
}

// own makes a directory of ours ready for writing. The marker of a clean shutdown is taken away before anything else is written, and put back if the
// rest fails: no log has been touched then.
func (e *Engine) own(l *listing) error {
	c, err := readCatalog(e.o.FS, e.o.Dir)
	if err != nil {
		return err
	}
	if err := e.loadCheckpoints(); err != nil {
		return err
	}
	e.clean = l.clean || l.empty
	if err := e.takeMarker(); err != nil {
		return err
	}
	if err := e.settleTopics(c, l); err != nil {
		if e.marker != nil {
			err = errors.Join(err, e.putMarker())
		}
		return err
	}
	return nil
}

// settleTopics makes the catalogue and the directories agree.
func (e *Engine) settleTopics(c *state.Topics, l *listing) error {
	if c == nil {
		if err := e.writeCatalog(state.NewTopics()); err != nil {
			return err
		}
	} else {
		e.catalog = c
	}
	if err := e.finishDeletions(); err != nil {
		return err
	}
	made := false
	for name, t := range e.catalog.Topics {
		for n := range t.Partitions {
			tp := storage.TopicPartition{Topic: name, Partition: n}
			if _, there := l.dirs[tp]; there {
				continue
			}
			made = true
			dir := filepath.Join(e.o.Dir, tp.String())
			e.report(dir, "the directory of the partition was missing: made anew, empty")
			if err := e.makePartDir(dir, t.ID); err != nil {
				return err
			}
		}
	}
	if made {
		return e.o.FS.SyncDir(e.o.Dir)
	}
	return nil
}

// takeMarker remembers and removes the marker of a clean shutdown.
func (e *Engine) takeMarker() error {
	path := filepath.Join(e.o.Dir, state.CleanMarkerFile)
	b, err := vfs.ReadFile(e.o.FS, path, markerLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, vfs.ErrTooBig) && e.kind == kindOwn:
		b = state.FormatCleanMarker(state.UnknownBrokerEpoch) // only that it is there counts
	case err != nil:
		return err
	}
	e.marker = b
	if err := e.o.FS.Remove(path); err != nil {
		return err
	}
	return e.o.FS.SyncDir(e.o.Dir)
}

// putMarker makes the marker of a clean shutdown: the one that was there, or a new one.
func (e *Engine) putMarker() error {
	b := e.marker
	if b == nil {
		b = state.FormatCleanMarker(state.UnknownBrokerEpoch)
	}
	return vfs.WriteFile(e.o.FS, filepath.Join(e.o.Dir, state.CleanMarkerFile), b, 0o644, e.owner)
}
