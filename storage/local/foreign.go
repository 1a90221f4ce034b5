package local

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/kraft"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// internalTopics are those that a broker keeps its own affairs in. One strange record there, and it does not start again.
var internalTopics = map[string]bool{
	state.MetadataTopic: true, "__consumer_offsets": true, "__transaction_state": true, "__share_group_state": true, "__remote_log_metadata": true,
}

const internalReason = "it is an internal topic of brokers"

// errAppendsOnly is why topics of a directory that is another's are neither made nor deleted.
var errAppendsOnly = errors.New("it is another's directory: records can be appended to what is there, and deleted from its start, nothing else")

// foreign is a directory that is another's and is written because that was asked for.
type foreign struct {
	metadata *kraft.State // of a broker's directory; nil where it cannot be had
	why      error        // why not
	sole     map[string]bool
}

// foreignWrites reports whether the directory is another's and is written.
func (e *Engine) foreignWrites() bool { return e.writable && e.kind != kindOwn }

// adopt makes a directory that is another's ready for writing. Nothing in it changes but the marker of a clean shutdown, which goes last.
func (e *Engine) adopt(l *listing) error {
	if err := e.ownersReached(l); err != nil {
		return err
	}
	if err := e.loadCheckpoints(); err != nil {
		return err
	}
	high, err := e.readCheckpoint(state.HighWatermarkFile)
	if err != nil {
		return err
	}
	for _, c := range []checkpoint{e.points.recovery, e.points.start, high} {
		if c.bad != nil {
			return fmt.Errorf("log directory %s: %w: a checkpoint cannot be read, and what it says of other logs would be lost: %w", e.o.Dir, storage.ErrReadOnly, c.bad)
		}
	}
	e.points.high = high
	e.foreign.sole = map[string]bool{}
	for _, name := range e.o.Unreplicated {
		e.foreign.sole[name] = true
	}
	if e.kind == kindBroker {
		e.foreign.metadata, e.foreign.why = loadMetadata(e.o.FS, e.identity.ClusterID, append([]string{e.o.Dir}, e.o.MetadataDirs...))
		if e.foreign.why != nil {
			e.report(e.o.Dir, "nobody tells which partitions have replicas elsewhere: "+e.foreign.why.Error())
		}
	}
	e.clean = l.clean
	return e.takeMarker()
}

// ownersReached checks that what is made here can be given to whom the directories belong: a file of another user's stops a broker. It tries with the lock file.
func (e *Engine) ownersReached(l *listing) error {
	path := filepath.Join(e.o.Dir, state.LockFile)
	tried := map[vfs.Owner]bool{}
	try := func(o vfs.Owner) error {
		if tried[o] {
			return nil
		}
		tried[o] = true
		return o.Apply(e.o.FS, path)
	}
	for tp := range l.dirs {
		dir := filepath.Join(e.o.Dir, tp.String())
		at, err := e.o.FS.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = try(vfs.OwnerOf(at))
		}
		if err != nil {
			return fmt.Errorf("log directory %s: %w: files in %s cannot be given to its owner: %w", e.o.Dir, storage.ErrReadOnly, tp, err)
		}
	}
	tried = map[vfs.Owner]bool{}
	if err := try(vfs.OwnerOf(l.info)); err != nil {
		return fmt.Errorf("log directory %s: %w: files cannot be given to its owner: %w", e.o.Dir, storage.ErrReadOnly, err)
	}
	return nil
}

// refusal is why a log of another's must not be written.
type refusal struct {
	reason string
	denied bool // for good
}

// admit decides about a log as far as that can be told without looking into it.
func (e *Engine) admit(p *part) (refusal, error) {
	if internalTopics[p.tp.Topic] {
		return refusal{internalReason, true}, nil
	}
	if e.kind == kindBroker && !e.foreign.sole[p.tp.Topic] {
		if why := e.replicated(p); why != "" {
			return refusal{reason: why}, nil
		}
	}
	tiered, err := e.tiered(p)
	if tiered {
		return refusal{reason: "its first records are in remote storage; what is on disk begins later than the log"}, nil
	}
	return refusal{}, err
}

// replicated says why it is not certain that a broker's log has no replica elsewhere; empty where it is.
func (e *Engine) replicated(p *part) string {
	const unless = " (if it has no other replica: -o assume-unreplicated=%s)"
	if e.foreign.metadata == nil {
		return fmt.Sprintf("nobody tells whether it has replicas elsewhere: %v; see --metadata-dir"+unless, e.foreign.why, p.tp.Topic)
	}
	if e.identity.NodeID < 0 {
		return fmt.Sprintf("%s does not tell the broker's node.id"+unless, state.MetaPropertiesFile, p.tp.Topic)
	}
	text := readTopicID(e.o.FS, p.dir)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != len(kraft.ID{}) {
		return fmt.Sprintf("its topic id cannot be read from %s"+unless, state.MetadataFile, p.tp.Topic)
	}
	id := kraft.ID(raw)
	at, known := e.foreign.metadata.Partition(id, p.tp.Partition)
	name, _ := e.foreign.metadata.Topic(id)
	if !known || name != p.tp.Topic {
		return fmt.Sprintf("the cluster's metadata do not know it under topic id %s"+unless, text, p.tp.Topic)
	}
	if at.Sole(e.identity.NodeID) {
		return ""
	}
	return fmt.Sprintf("it has replicas on nodes %s, this is node %d: replicas would differ", nodes(at.Replicas, at.Adding, at.Removing), e.identity.NodeID)
}

func nodes(lists ...[]int32) string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	var s []string
	for _, n := range slices.Compact(all) {
		s = append(s, strconv.Itoa(int(n)))
	}
	return strings.Join(s, ", ")
}

// tiered reports whether a log's checkpointed start lies below its first segment: what is between the two has gone to remote storage.
func (e *Engine) tiered(p *part) (bool, error) {
	start, has := e.points.checkpointedStart(p.tp)
	if !has {
		return false, nil
	}
	entries, err := e.o.FS.ReadDir(p.dir)
	if err != nil {
		return false, err
	}
	for _, en := range entries { // in the order of base offsets
		if base, ok := state.ParseLogName(en.Name); ok {
			return start < base, nil
		}
	}
	return false, nil
}

func (c *checkpoints) checkpointedStart(tp storage.TopicPartition) (storage.Offset, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Get(tp)
}

// raiseLocked makes the high watermark of a log that was appended to what is on stable storage: it has no other replica. Where the file does not name the log
// its broker works it out.
func (c *checkpoints) raiseLocked(tp storage.TopicPartition, o storage.Offset) {
	if was, has := c.high.Get(tp); has && was < o {
		c.high.Set(tp, o)
	}
}
