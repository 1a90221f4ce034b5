package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const checkpointLimit = 64 << 20

// checkpoints are the two checkpoint files that say where recovery begins and where logs start.
type checkpoints struct {
	// mu guards the fields below and the files. It is taken inside the locks of a partition.Log, so none of those may be taken while it is held.
	mu       sync.Mutex
	recovery checkpoint
	start    checkpoint
	high     checkpoint   // high watermarks; of another's directory alone
	startAt  vfs.FileInfo // of the file of start, when somebody else's was last read
}

// checkpoint is one of them: its content, and the bytes of the file as far as they are known.
type checkpoint struct {
	state.Checkpoint
	onDisk []byte
	bad    error // why the file cannot be understood
}

// loadCheckpoints reads both files. One that cannot be understood is reported and taken for missing.
func (e *Engine) loadCheckpoints() error {
	recovery, err := e.readCheckpoint(state.RecoveryPointFile)
	if err != nil {
		return err
	}
	start, err := e.readCheckpoint(state.LogStartFile)
	if err != nil {
		return err
	}
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	e.points.recovery, e.points.start = recovery, start
	return nil
}

// readCheckpoint reads a file. What makes it impossible (it is a directory, a link to nowhere, another user's) is an error where we are to write it; who only
// looks at a directory may be about to rescue what is left of it, and is told.
func (e *Engine) readCheckpoint(name string) (checkpoint, error) {
	path := filepath.Join(e.o.Dir, name)
	b, err := vfs.ReadFile(e.o.FS, path, checkpointLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint{}, nil
	}
	if err != nil && e.writable && !errors.Is(err, vfs.ErrTooBig) {
		return checkpoint{}, err
	}
	c := checkpoint{onDisk: b}
	if err == nil {
		c.Checkpoint, err = state.ParseCheckpoint(b)
	}
	if err != nil {
		e.report(path, err.Error())
		c.Checkpoint, c.bad = state.Checkpoint{}, err
	}
	return c, nil
}

// of returns a log's recovery point and log start, 0 where the files do not say.
func (c *checkpoints) of(tp storage.TopicPartition) (recovery, start storage.Offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recovery, _ = c.recovery.Get(tp)
	start, _ = c.start.Get(tp)
	return recovery, start
}

// logStartNow returns the log start that somebody else has checkpointed by now.
func (e *Engine) logStartNow(tp storage.TopicPartition) storage.Offset {
	c := &e.points
	at, err := e.o.FS.Stat(filepath.Join(e.o.Dir, state.LogStartFile))
	c.mu.Lock()
	changed := err == nil && at != c.startAt
	c.mu.Unlock()
	if changed {
		if start, err := e.readCheckpoint(state.LogStartFile); err == nil {
			c.mu.Lock()
			if start.bad == nil {
				c.start = start
			}
			c.startAt = at
			c.mu.Unlock()
		}
	}
	_, start := c.of(tp)
	return start
}

// putLocked writes a checkpoint if its file says something else.
func (e *Engine) putLocked(c *checkpoint, name string) error {
	b := c.Format()
	if bytes.Equal(b, c.onDisk) || c.onDisk == nil && c.Len() == 0 && len(c.Unusable()) == 0 {
		return nil
	}
	c.onDisk = []byte{} // unknown until it is written
	if err := vfs.WriteFile(e.o.FS, filepath.Join(e.o.Dir, name), b, 0o644, e.owner); err != nil {
		return err
	}
	c.onDisk = b
	return nil
}

// saveStart makes a new log start durable before what lies below it is removed.
func (e *Engine) saveStart(p *part, o storage.Offset) error {
	if err := e.refusal(); err != nil {
		return err
	}
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	if err := p.gone(); err != nil {
		return err
	}
	before := e.points.start.Clone()
	e.points.start.Set(p.tp, o)
	if err := e.putLocked(&e.points.start, state.LogStartFile); err != nil {
		e.points.start.Checkpoint = before
		return fmt.Errorf("log start of %s: %w", p.tp, err)
	}
	return nil
}

// forget removes logs from both files, durably.
func (e *Engine) forget(tps []storage.TopicPartition) error {
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	for _, tp := range tps {
		e.points.recovery.Delete(tp)
		e.points.start.Delete(tp)
	}
	return errors.Join(e.putLocked(&e.points.recovery, state.RecoveryPointFile), e.putLocked(&e.points.start, state.LogStartFile))
}

// point is what a log says for the checkpoints.
type point struct {
	tp              storage.TopicPartition
	recovery, start storage.Offset
	needsStart      bool
	disbelieved     bool // the log start in the file cannot be
}

// saveCheckpoints writes down how far the logs of the engine are. Lines of logs that were not opened stay. It needs Engine.change, so that no topic
// comes or goes meanwhile. The line of a log start that is the base of the first segment is not needed once the removal of those below is durable.
func (e *Engine) saveCheckpoints() error {
	var all []point
	for _, p := range e.parts() {
		l := p.opened()
		if l == nil || !l.Checkpointed() {
			continue
		}
		start, needs := l.LogStart()
		if !needs && e.points.hasStart(p.tp) {
			needs = !e.removedBelow(p.dir, start)
		}
		all = append(all, point{tp: p.tp, recovery: l.RecoveryPoint(), start: start, needsStart: needs, disbelieved: l.StartDisbelieved()})
	}
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	for _, x := range all {
		e.points.recovery.Set(x.tp, x.recovery)
		e.points.raiseLocked(x.tp, x.recovery)
		cur, has := e.points.start.Get(x.tp)
		switch {
		case has && x.start < cur && !x.disbelieved: // what was just read is older than what SetStart has written
		case x.needsStart:
			e.points.start.Set(x.tp, x.start)
		default:
			e.points.start.Delete(x.tp)
		}
	}
	return errors.Join(
		e.putLocked(&e.points.recovery, state.RecoveryPointFile), e.putLocked(&e.points.start, state.LogStartFile), e.putLocked(&e.points.high, state.HighWatermarkFile),
	)
}

// removedBelow reports whether no segment below a log's start is there or may come back after a crash.
func (e *Engine) removedBelow(dir string, start storage.Offset) bool {
	if e.o.FS.SyncDir(dir) != nil {
		return false
	}
	entries, err := e.o.FS.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, en := range entries {
		if base, ok := state.ParseLogName(en.Name); ok && base < start {
			return false
		}
	}
	return true
}

func (c *checkpoints) hasStart(tp storage.TopicPartition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, has := c.start.Get(tp)
	return has
}
