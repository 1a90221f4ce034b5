package segment

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// maxBatchBytes is the largest batch that is read into memory. Kafka's own limit is a setting (max.message.bytes, 1 MiB by default).
const maxBatchBytes = 256 << 20

// Env is what all segments of an engine share.
type Env struct {
	FS     vfs.FS
	Files  *vfs.Files
	Now    func() time.Time
	Report func(storage.Report)
	Log    *slog.Logger
	// CacheDir is where size indexes of directories live that may not be written; empty to keep them in memory.
	CacheDir string
}

// Segment is the identity of one segment. Its methods may be called by many goroutines at once.
type Segment struct {
	env    *Env
	Base   storage.Offset
	dir    string
	suffix string
	names  atomic.Pointer[names] // made at first use: most segments of a log are never looked at
	own    bool                  // files beside the log may be written
	// interval is index.interval.bytes: the distance between entries of the indexes that are built here.
	interval int64
	maxIndex int64
	ino      uint64 // of the log, where others may put another one under its name; else 0

	mu       sync.Mutex // guards what follows; held for no I/O
	reported map[storage.Pos]bool
	bad      map[storage.Pos]storage.Pos // start of unreadable bytes -> where the next good batch starts

	indexes indexes
	sums    sums
}

// Settings of a segment that come from its topic.
type Settings struct {
	Own           bool   // the directory is ours: derived files may be written beside the log
	IndexInterval int64  // index.interval.bytes
	MaxIndexBytes int64  // segment.index.bytes
	Suffix        string // behind the names of its files: those of a segment that waits to be swapped in
}

// New returns the segment of dir that starts at base. It touches no file.
func New(env *Env, dir string, base storage.Offset, st Settings) *Segment {
	return &Segment{env: env, Base: base, dir: dir, suffix: st.Suffix, own: st.Own, interval: max(st.IndexInterval, 0), maxIndex: st.MaxIndexBytes}
}

func (s *Segment) path(ext string) string {
	return filepath.Join(s.dir, state.FileName(s.Base, ext)+s.suffix)
}

// names are the files' names.
type names struct{ log, index, timeIndex string }

func (s *Segment) named() *names {
	if n := s.names.Load(); n != nil {
		return n
	}
	n := &names{s.path(state.ExtLog), s.path(state.ExtIndex), s.path(state.ExtTimeIndex)}
	s.names.Store(n)
	return n
}

func (s *Segment) logPath() string       { return s.named().log }
func (s *Segment) indexPath() string     { return s.named().index }
func (s *Segment) timeIndexPath() string { return s.named().timeIndex }

// Path returns the name of the .log file.
func (s *Segment) Path() string { return s.logPath() }

// gate is a lock that waiting for can be interrupted. It is made at first use.
type gate struct{ ch chan struct{} } // ch is guarded by Segment.mu

func (s *Segment) enter(ctx context.Context, g *gate) error {
	s.mu.Lock()
	if g.ch == nil {
		g.ch = make(chan struct{}, 1)
	}
	ch := g.ch
	s.mu.Unlock()
	select {
	case ch <- struct{}{}: // without a wait it does not matter that the context has ended
		return nil
	default:
	}
	select {
	case ch <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Segment) leave(g *gate) {
	s.mu.Lock()
	ch := g.ch
	s.mu.Unlock()
	<-ch
}

// Create makes the empty files of the segment. The directory is not synced.
func (s *Segment) Create(owner vfs.Owner) error {
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		f, err := s.env.FS.OpenFile(s.path(ext), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := owner.Apply(s.env.FS, s.path(ext)); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the segment's files. Readers that have the log open go on.
func (s *Segment) Remove() error {
	var first error
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex, state.ExtTxnIndex, state.ExtSnapshot, state.ExtSizeIndex} {
		if err := s.env.FS.Remove(s.path(ext)); err != nil && !errors.Is(err, fs.ErrNotExist) && first == nil {
			first = err
		}
		s.env.Files.Forget(s.path(ext)) // not earlier: who opens it meanwhile would leave it in the cache, and its room taken
	}
	return first
}

// open pins the log for reading. A log that is not there any more is ErrOffsetGone.
func (s *Segment) open() (*vfs.Handle, error) {
	for again := true; ; again = false {
		h, err := s.env.Files.Open(s.logPath(), os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return h, gone(s.logPath())
		}
		if err != nil || s.ino == 0 {
			return h, err
		}
		st, err := h.Stat()
		if err == nil && st.Ino == s.ino {
			return h, nil
		}
		h.Unpin()
		if err != nil {
			return nil, err
		}
		if !again {
			return nil, gone(s.logPath())
		}
		s.env.Files.Forget(s.logPath()) // what is cached may be the one that is not there any more
	}
}

// Only makes the segment that of the file with this inode number alone: what gets its name later is another. It is called before anybody else has the segment.
func (s *Segment) Only(ino uint64) { s.ino = ino }

func gone(path string) error { return &goneError{path} }

type goneError struct{ path string }

func (e *goneError) Error() string { return e.path + ": " + storage.ErrOffsetGone.Error() }
func (e *goneError) Unwrap() error { return storage.ErrOffsetGone }

// report tells once of a place in the log that cannot be read.
func (s *Segment) report(err *storage.CorruptError) {
	s.mu.Lock()
	seen := s.reported[err.Pos]
	if !seen && len(s.reported) < 1000 {
		if s.reported == nil {
			s.reported = map[storage.Pos]bool{}
		}
		s.reported[err.Pos] = true
	}
	s.mu.Unlock()
	if !seen && s.env.Report != nil {
		s.env.Report(storage.Report{Time: s.env.Now(), Path: err.Path, Reason: strings.TrimPrefix(err.Error(), err.Path+": ")})
	}
}

// View is what a segment holds at one moment.
type View struct {
	*Segment
	Size storage.Pos    // bytes of whole batches
	Next storage.Offset // offset behind the last batch, or the next segment's base
	// Tail marks a view that does not take in the whole of a closed segment: it may be followed by a longer one, and the files beside the log do not tell
	// of it alone.
	Tail bool
	// Hidden is what the view does not show of its batches.
	Hidden *Hidden
	// Live is set on the view of a segment that this process is appending to, nil on any other.
	Live *Live
}

// Live is what the appender knows of a segment without reading it.
type Live struct {
	Offsets, Times int   // entries in the index files
	MaxTimestamp   int64 // largest timestamp, or -1
	Sizes          Table
}

// Empty reports whether the view holds no batch.
func (v *View) Empty() bool { return v.Size == 0 }
