package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// Engine is a log directory that is open. It implements storage.Engine.
type Engine struct {
	o        Options
	kind     kind
	identity state.MetaProperties // of a broker's directory
	writable bool
	reason   string     // why not
	marker   []byte     // content of the marker of that shutdown; nil if there was none
	owner    *vfs.Owner // of what is made at the top; nil where it cannot be given away
	lock     vfs.Lock   // nil where not writable
	files    *vfs.Files
	env      *partition.Env
	foreign  foreign // of a directory that is another's and is written
	points   checkpoints
	seal     maintenance
	watched  chan struct{} // gets a token when somebody begins to wait for a log that others write

	// change is held (a token is in it) by whoever makes or deletes topics or writes checkpoints, and by Close. It guards the fields below.
	change   chan struct{}
	catalog  *state.Topics
	doubt    error     // why the catalogue on disk may be another one; nil if it is not
	doubted  []*part   // those that it may say to be deleted: they take no appends
	halfMade *halfMade // what could not be made and is still to be taken back

	// look is held while an engine that is not writable lists the directory anew.
	look sync.Mutex

	ctx    context.Context //nolint:containedctx // the life of the engine: logs are opened and loops run until Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // loops and openings; added to with mu held while not closed

	// mu guards the fields below.
	mu      sync.RWMutex
	topics  map[string]*topic
	seen    sighting
	clean   bool  // the shutdown before was clean
	refused error // why appends are refused since some moment; nil if they are not
	closed  bool
}

// topic is a topic and its logs. Its fields are guarded by Engine.mu.
type topic struct {
	info  storage.TopicInfo // without Partitions
	own   bool
	parts map[int32]*part
}

var (
	_ storage.Engine = (*Engine)(nil)
	_ storage.Roomy  = (*Engine)(nil)
)

// Info implements storage.Engine.
func (e *Engine) Info() storage.EngineInfo {
	e.mu.RLock()
	defer e.mu.RUnlock()
	at := e.seen.info
	info := storage.EngineInfo{
		Data: e.o.Dir, Dirs: []string{e.o.Dir}, Writable: e.writable, Reason: e.reason, UID: at.UID, GID: at.GID, Mode: uint32(at.Mode.Perm()), Modified: at.Time(),
		Committed: e.o.Committed, Own: e.kind == kindOwn, ClusterID: e.identity.ClusterID, NodeID: nodeID(e.identity),
	}
	if e.refused != nil {
		info.Writable, info.Reason = false, reasonOf(e.refused)
	}
	return info
}

// Room implements storage.Roomy.
func (e *Engine) Room(context.Context) (storage.Room, error) {
	if err := e.open(); err != nil {
		return storage.Room{}, err
	}
	u, err := e.o.FS.Usage(e.o.Dir)
	if err != nil {
		return storage.Room{}, fmt.Errorf("log directory: %w", err)
	}
	return storage.Room{Total: u.Total, Free: u.Free, Avail: u.Avail}, nil
}

// reasonOf is the text of an error without the words that ErrReadOnly adds.
func reasonOf(err error) string {
	return strings.TrimPrefix(err.Error(), storage.ErrReadOnly.Error()+": ")
}

// enter begins a method that looks at topics: a closed engine, a directory that has changed under an engine that only reads it. Contexts are looked at where
// there is something to wait for: every signal cancels one, and a disk does not answer stat(2) or open(2) with EINTR.
func (e *Engine) enter() error {
	if err := e.open(); err != nil {
		return err
	}
	if !e.writable {
		return e.refresh()
	}
	return nil
}

func (e *Engine) open() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return fmt.Errorf("log directory %s: %w", e.o.Dir, storage.ErrClosed)
	}
	return nil
}

// Topics implements storage.Engine.
func (e *Engine) Topics(context.Context) ([]storage.TopicInfo, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	var out []storage.TopicInfo
	for _, name := range e.names() {
		if info, err := e.info(name); err == nil { // else deleted in the meantime
			out = append(out, info)
		}
	}
	return out, nil
}

func (e *Engine) names() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.topics))
}

// Topic implements storage.Engine.
func (e *Engine) Topic(_ context.Context, name string) (storage.TopicInfo, error) {
	if err := e.enter(); err != nil {
		return storage.TopicInfo{}, err
	}
	return e.info(name)
}

func (e *Engine) info(name string) (storage.TopicInfo, error) {
	info, idFrom, err := e.knownInfo(name)
	if err != nil || idFrom == "" {
		return info, err
	}
	info.ID = readTopicID(e.o.FS, idFrom)
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.topics[name]; t != nil && t.info.ID == "" {
		t.info.ID = info.ID
	}
	return info, nil
}

// knownInfo returns what is known of a topic, and the directory that tells its id if that is not known.
func (e *Engine) knownInfo(name string) (info storage.TopicInfo, idFrom string, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.topicLocked(name)
	if err != nil {
		return info, "", err
	}
	info = t.info
	info.Config = maps.Clone(info.Config)
	info.Partitions = slices.Sorted(maps.Keys(t.parts))
	if !t.own {
		for _, p := range t.parts {
			if p.found.After(info.Modified) {
				info.Modified = p.found
			}
		}
	}
	if info.ID == "" && len(info.Partitions) > 0 {
		idFrom = t.parts[info.Partitions[0]].dir
	}
	if info.Writable && e.refused != nil {
		info.Writable, info.Reason = false, reasonOf(e.refused)
	}
	return info, idFrom, nil
}

func (e *Engine) topicLocked(name string) (*topic, error) {
	t := e.topics[name]
	if t == nil {
		return nil, fmt.Errorf("topic %q: %w", name, storage.ErrTopicNotFound)
	}
	return t, nil
}

// Partition implements storage.Engine.
func (e *Engine) Partition(ctx context.Context, tp storage.TopicPartition) (storage.Partition, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	p, err := e.find(tp)
	if err != nil {
		return nil, err
	}
	l, err := e.logOf(ctx, p)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (e *Engine) find(tp storage.TopicPartition) (*part, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.topicLocked(tp.Topic)
	if err != nil {
		return nil, err
	}
	p := t.parts[tp.Partition]
	if p == nil {
		return nil, fmt.Errorf("partition %s: %w", tp, storage.ErrPartitionNotFound)
	}
	return p, nil
}

// parts returns all partitions in the order of topics and numbers.
func (e *Engine) parts() []*part {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var out []*part
	for _, name := range slices.Sorted(maps.Keys(e.topics)) {
		t := e.topics[name]
		for _, n := range slices.Sorted(maps.Keys(t.parts)) {
			out = append(out, t.parts[n])
		}
	}
	return out
}

// refuse makes all appends and changes fail from now on: what the directory would look like after them is not known. It reports the first reason.
func (e *Engine) refuse(err error) {
	if !e.setRefused(err) {
		return
	}
	e.report(e.o.Dir, err.Error())
	e.o.Log.Error("appends are refused", "dir", e.o.Dir, "err", err)
	for _, p := range e.parts() {
		if l := p.opened(); l != nil {
			l.Refuse(err)
		}
	}
}

func (e *Engine) setRefused(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := e.refused == nil
	if first {
		e.refused = err
	}
	return first
}

func (e *Engine) refusal() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.refused
}

func (e *Engine) report(path, reason string) {
	e.o.Report(storage.Report{Time: e.o.Now(), Path: path, Reason: reason})
}
