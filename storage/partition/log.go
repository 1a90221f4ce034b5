package partition

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// Env is what all logs of an engine share.
type Env struct {
	FS     vfs.FS
	Files  *vfs.Files
	Now    func() time.Time
	Report func(storage.Report)
	Log    *slog.Logger
	// CacheDir is where size indexes of directories live that may not be written; empty to keep them in memory.
	CacheDir string
	// Seal is called, with no lock held, when a log has closed segments that wait for Maintain.
	Seal func(*Log)
	// Watched is called, with no lock held, when somebody begins to wait for a log that must be looked at to notice a change: see Log.Look.
	Watched func(*Log)
	// Sleep waits, or returns the context's cause.
	Sleep func(context.Context, time.Duration) error
}

// Options say which log to open and how.
type Options struct {
	TP       storage.TopicPartition
	Dir      string
	Config   storage.TopicConfig
	Writable bool
	Reason   string // why it is not writable
	// Clean says that whoever wrote the log last closed it in order.
	Clean bool
	// RecoveryPoint and LogStart come from the checkpoints; 0 where there is none.
	RecoveryPoint, LogStart storage.Offset
	// LogStartNow returns the checkpointed log start of a log that somebody else writes; nil where LogStart stays.
	LogStartNow func() storage.Offset
	// Final says that nobody writes the log: what is there is all there will be.
	Final bool
	// Foreign says that the log is another's although it is Writable: nothing of it is cut or written but what an append or a new start needs, and what is
	// only ours is kept elsewhere.
	Foreign bool
	// Denied says that Reason holds for good, whatever the mount: Writable is storage.ErrNotPermitted then.
	Denied bool
	// Exact makes AppendBatches take batches as a follower does, with their producers, transactions and, where that is possible, offsets.
	Exact bool
	// Committed hides the data of aborted transactions and ends the log at its last stable offset.
	Committed bool
}

// Log is one log. It implements storage.Partition.
type Log struct {
	env  *Env
	seg  *segment.Env
	o    Options
	snap atomic.Pointer[snapshot]
	gone atomic.Pointer[error] // why it is not to be used any more

	mu       sync.Mutex // appends, rolls, publishing; guards what follows
	whole    *snapshot  // what has been written, before isolation
	active   segment.Appender
	open     []*closedSegment // closed, not sealed yet, ascending
	epochs   state.Epochs
	work     appendWork
	refusal  error // why appends are refused from now on
	poisoned error
	closed   bool
	owner    vfs.Owner

	startMu sync.Mutex // held while the start is changed
	onStart func(storage.Offset) error

	syncer    syncer
	watch     watchers
	observer  *observer  // of a log that is not written here
	committed *committed // under isolation; guarded by mu, or by the observer's gate
	foreign   *foreign   // of a log that is another's and may be written here
	producers *producers // nil where none are kept; guarded by mu

	recovered atomic.Pointer[string] // what was found at the end of the log and done about it
	// disbelieved is set at Open if the checkpointed log start cannot be.
	disbelieved bool
	told        map[string]bool // what was reported of the directory; used while it is listed
}

// closedSegment is a segment that was rolled and is not on stable storage yet.
type closedSegment struct {
	view segment.View
	next storage.Offset // base of the segment behind it
}

// Open reads a log's directory and, if the log is writable, recovers what an unclean stop left. A log that is not writable is not changed at all.
func Open(ctx context.Context, env *Env, o Options) (*Log, error) {
	l := &Log{env: env, o: o, seg: &segment.Env{FS: env.FS, Files: env.Files, Now: env.Now, Report: env.Report, Log: env.Log, CacheDir: env.CacheDir}}
	l.syncer.init()
	if !o.Writable {
		l.observer = newObserver()
	}
	if o.Committed {
		l.committed = &committed{}
	}
	st, err := env.FS.Stat(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.TP, err)
	}
	l.owner = vfs.OwnerOf(st)
	if err := l.load(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.TP, err)
	}
	return l, nil
}

// Create makes the empty first segment of a new log in an existing directory. The directory is not synced.
func Create(env *Env, dir string, owner vfs.Owner) error {
	s := segment.New(&segment.Env{FS: env.FS, Files: env.Files, Now: env.Now, Log: env.Log}, dir, 0, segment.Settings{Own: true})
	return s.Create(owner)
}

func (l *Log) newSegment(base storage.Offset) *segment.Segment {
	return segment.New(l.seg, l.o.Dir, base, l.settings(""))
}

func (l *Log) settings(suffix string) segment.Settings {
	return segment.Settings{Own: l.o.Writable && !l.o.Foreign, IndexInterval: l.o.Config.IndexIntervalBytes, MaxIndexBytes: l.o.Config.SegmentIndexBytes, Suffix: suffix}
}

func (l *Log) path(name string) string { return filepath.Join(l.o.Dir, name) }

func (l *Log) report(path, reason string) {
	if l.env.Report != nil {
		l.env.Report(storage.Report{Time: l.env.Now(), Path: path, Reason: reason})
	}
}

// Snapshot implements storage.Partition.
func (l *Log) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	if err := l.goneErr(); err != nil {
		return nil, err
	}
	if l.Followed() {
		if err := l.Look(ctx); err != nil {
			return nil, err
		}
	}
	return l.snap.Load(), nil
}

// publishWritten makes a new state of a log that is written here known. The lock is held, or the log not known to anybody yet.
func (l *Log) publishWritten(ctx context.Context, s *snapshot) error {
	l.whole = s
	return l.show(ctx, s)
}

// unfiltered returns the newest state of what is in the files, whatever readers are shown of it.
func (l *Log) unfiltered() *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// show makes s what readers see, as far as the isolation lets them.
func (l *Log) show(ctx context.Context, s *snapshot) error {
	if l.committed != nil {
		if err := l.committed.note(ctx, s); err != nil {
			return err
		}
		var err error
		if s, err = l.committed.of(ctx, s); err != nil {
			return err
		}
	}
	l.snap.Store(s)
	return nil
}

// Writable implements storage.Partition. A log that is another's is examined if that has not been done.
func (l *Log) Writable(ctx context.Context) error {
	if !l.o.Writable {
		return l.notWritable()
	}
	return l.ready(ctx)
}

func (l *Log) notWritable() error {
	if l.o.Denied {
		return fmt.Errorf("%s: %w: %s", l.o.TP, storage.ErrNotPermitted, l.o.Reason)
	}
	return fmt.Errorf("%s: %w: %s", l.o.TP, storage.ErrReadOnly, l.o.Reason)
}

// MayWrite reports whether the log may be written here.
func (l *Log) MayWrite() bool { return l.o.Writable }

// refusedLocked returns why appends are refused, if they are. The lock is held.
func (l *Log) refusedLocked() error {
	switch {
	case l.closed && l.goneErr() != nil:
		return l.goneErr()
	case l.closed:
		return fmt.Errorf("%s: %w", l.o.TP, storage.ErrClosed)
	case !l.o.Writable:
		return l.notWritable()
	case l.foreign != nil && l.foreign.refusal != nil:
		return l.foreign.refusal
	case l.poisoned != nil:
		return fmt.Errorf("%s: %w until the next mount: %w", l.o.TP, storage.ErrPoisoned, l.poisoned)
	case l.refusal != nil:
		return l.refusal
	case l.committed != nil:
		return l.openTransaction(l.whole)
	}
	return nil
}

// Poison makes the log refuse appends until it is opened anew, because what is on disk is not known any more. The first reason stays.
func (l *Log) Poison(err error) {
	l.mu.Lock()
	l.poisonLocked(err)
	l.mu.Unlock()
}

func (l *Log) poisonLocked(err error) {
	if l.poisoned != nil {
		return
	}
	l.poisoned = err
	l.report(l.o.Dir, "appends are refused until the next mount: "+err.Error())
}

// Refuse makes appends return err from now on.
func (l *Log) Refuse(err error) {
	l.mu.Lock()
	l.refusal = err
	l.mu.Unlock()
}

// RecoveryPoint is the offset up to which the log is known to be on stable storage.
func (l *Log) RecoveryPoint() storage.Offset {
	if !l.o.Writable {
		return l.o.RecoveryPoint
	}
	return l.syncer.point()
}

// LogStart is the log start offset, and whether it must be kept in a checkpoint because the first segment starts below it.
func (l *Log) LogStart() (o storage.Offset, checkpoint bool) {
	s := l.snap.Load()
	return s.start, s.start > s.at(0).Base
}

// StartDisbelieved reports whether the log was opened with a checkpointed start that cannot be.
func (l *Log) StartDisbelieved() bool { return l.disbelieved }

// OnStart sets what is called with a new log start before a file is removed: it must have made it durable when it returns.
func (l *Log) OnStart(fn func(storage.Offset) error) { l.onStart = fn }

// Status tells about the log.
func (l *Log) Status() storage.PartitionStatus {
	s := l.snap.Load()
	st := storage.PartitionStatus{
		Topic: l.o.TP.Topic, Partition: l.o.TP.Partition, Start: s.start, End: s.end, RecoveryPoint: l.RecoveryPoint(),
		Segments: s.len(),
	}
	if r := l.recovered.Load(); r != nil {
		st.Recovered = *r
	}
	for i := range s.len() {
		v := s.at(i)
		st.Bytes += int64(v.Size)
		if v.Sized() {
			st.Sized++
		}
	}
	l.mu.Lock()
	err := l.refusedLocked()
	l.mu.Unlock()
	st.Writable = err == nil
	if err != nil {
		st.Reason = err.Error()
	}
	return st
}
