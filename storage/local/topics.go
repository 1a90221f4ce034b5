package local

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// begin takes Engine.change for a change of the topics. The caller gives it back with end.
func (e *Engine) begin(ctx context.Context) (end func(), err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	if !e.writable {
		return nil, fmt.Errorf("log directory %s: %w: %s", e.o.Dir, storage.ErrReadOnly, e.whyNoTopics())
	}
	if e.foreignWrites() {
		return nil, fmt.Errorf("log directory %s: %w: %w", e.o.Dir, storage.ErrNotPermitted, errAppendsOnly)
	}
	if err := e.turn(ctx); err != nil {
		return nil, err
	}
	end = func() { <-e.change }
	if err := e.mayChange(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// whyNoTopics says why topics are neither made nor deleted in a directory that is not written. In another's, what makes its logs writable does not help.
func (e *Engine) whyNoTopics() string {
	whose := (&listing{kind: e.kind}).whose()
	switch e.kind {
	case kindBroker:
		return whose + ", and its broker alone makes and deletes topics; make them in a directory of logmount's own"
	case kindCopy:
		return whose + "; logmount topics import makes topics of it ours, others can be made then"
	case kindOwn:
	}
	return e.reason
}

// turn takes Engine.change, waiting for it if it must.
func (e *Engine) turn(ctx context.Context) error {
	select {
	case e.change <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.change <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mayChange checks what may have changed while the caller waited.
func (e *Engine) mayChange() error {
	if err := e.open(); err != nil {
		return err
	}
	e.lockTick()
	if err := e.refusal(); err != nil {
		return fmt.Errorf("log directory %s: %w", e.o.Dir, err)
	}
	if err := e.settleDoubt(); err != nil {
		return fmt.Errorf("log directory %s: %w", e.o.Dir, err)
	}
	if err := e.finishDeletions(); err != nil { // a name that is still taken is found out later
		e.o.Log.Warn("removing deleted topics", "dir", e.o.Dir, "err", err)
	}
	return nil
}

// CheckTopicName returns nil where a topic of that name may be made, else storage.ErrInvalidName with the reason.
func CheckTopicName(name string) error {
	if name == storage.ControlName {
		return fmt.Errorf("%w: a mount has a directory of its own of that name, which would hide the topic", storage.ErrInvalidName)
	}
	return state.ValidTopic(name)
}

// CreateTopic implements storage.Engine.
func (e *Engine) CreateTopic(ctx context.Context, spec storage.TopicSpec) error {
	if err := CheckTopicName(spec.Name); err != nil {
		return err
	}
	if spec.Partitions < 1 || spec.Partitions > MaxPartitions {
		return fmt.Errorf("topic %s: %w: %d partitions, 1 to %d are allowed", spec.Name, storage.ErrInvalidName, spec.Partitions, MaxPartitions)
	}
	config, err := ParseConfig(spec.Config)
	if err != nil {
		return fmt.Errorf("topic %s: %w", spec.Name, err)
	}
	end, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := e.vacant(spec.Name); err != nil {
		return err
	}
	id, err := state.NewTopicID(e.o.Rand)
	if err != nil {
		return err
	}
	t := state.Topic{ID: id, Partitions: spec.Partitions, Config: maps.Clone(spec.Config), Created: e.o.Now().UTC().Round(0)}
	if err := e.enlarge(spec.Name, t, 0); err != nil {
		return fmt.Errorf("create topic %s: %w", spec.Name, err)
	}
	e.addTopic(spec.Name, t, config, 0)
	e.o.Log.Info("topic created", "topic", spec.Name, "partitions", spec.Partitions)
	return nil
}

// vacant checks that no topic has the name, and no directory that is not a topic of ours.
func (e *Engine) vacant(name string) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.topics[name] != nil {
		return fmt.Errorf("topic %s: %w", name, storage.ErrTopicExists)
	}
	return nil
}

// enlarge makes a topic, or gives it more partitions: those from number from on. It needs Engine.change.
func (e *Engine) enlarge(name string, t state.Topic, from int32) error {
	var tps []storage.TopicPartition
	for n := from; n < t.Partitions; n++ {
		tp := storage.TopicPartition{Topic: name, Partition: n}
		there, err := vfs.Exists(e.o.FS, filepath.Join(e.o.Dir, tp.String()))
		if err != nil {
			return err
		}
		if there {
			return fmt.Errorf("directory %s, which is not ours: %w", tp, storage.ErrTopicExists)
		}
		tps = append(tps, tp)
	}
	if err := e.forget(tps); err != nil { // what an earlier log of that name was checkpointed with
		return err
	}
	before := e.catalog
	c := before.Clone()
	c.Topics[name] = t
	if err := e.writeCatalog(c); err != nil {
		return err
	}
	err := e.makePartDirs(name, t.ID, from, t.Partitions)
	if err == nil {
		return nil
	}
	uerr := e.undo(&halfMade{before, tps})
	if uerr == nil {
		uerr = e.finishDeletions()
	}
	if uerr != nil {
		e.o.Log.Warn("taking back a topic that could not be made", "topic", name, "err", uerr)
	}
	return err
}

// halfMade is what the making of a topic or of partitions left when it failed.
type halfMade struct {
	before *state.Topics
	tps    []storage.TopicPartition
}

// undo goes back to an earlier catalogue, in which the directories made since are on their way out. What cannot be done now (the disk may be full) is done before the next change.
func (e *Engine) undo(h *halfMade) error {
	c := h.before.Clone()
	for _, tp := range h.tps {
		d, err := e.newDeletion(tp)
		if err != nil {
			return err
		}
		c.Deleting = append(c.Deleting, d)
	}
	e.halfMade = h
	if err := e.writeCatalog(c); err != nil {
		return err
	}
	e.halfMade = nil
	return nil
}

func (e *Engine) newDeletion(tp storage.TopicPartition) (state.Deletion, error) {
	id, err := state.NewDirID(e.o.Rand)
	if err != nil {
		return state.Deletion{}, err
	}
	return state.Deletion{Dir: tp.String(), As: state.DeleteDirName(tp, id)}, nil
}

// addTopic makes a topic, or its partitions from number from on, known.
func (e *Engine) addTopic(name string, t state.Topic, config storage.TopicConfig, from int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.info.Modified = e.o.Now().UnixNano()
	to := e.topics[name]
	if to == nil {
		to = newTopic(name, &t, "")
		e.topics[name] = to
	}
	for n := from; n < t.Partitions; n++ {
		tp := storage.TopicPartition{Topic: name, Partition: n}
		to.parts[n] = &part{tp: tp, dir: filepath.Join(e.o.Dir, tp.String()), id: t.ID, config: config, own: true, fresh: true}
	}
}

func newTopic(name string, t *state.Topic, reason string) *topic {
	out := &topic{parts: map[int32]*part{}, info: storage.TopicInfo{Name: name, Writable: reason == "", Reason: reason}}
	if t != nil {
		out.own = true
		out.info.ID, out.info.Config, out.info.Created = t.ID, maps.Clone(t.Config), t.Created
	}
	return out
}

// AddPartition implements storage.Engine.
func (e *Engine) AddPartition(ctx context.Context, name string, n int32) error {
	end, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := e.nextPartition(name, n); err != nil {
		return err
	}
	t := e.catalog.Topics[name]
	t.Partitions = n + 1
	config, err := ParseConfig(t.Config)
	if err != nil {
		return err
	}
	if err := e.enlarge(name, t, n); err != nil {
		return fmt.Errorf("add partition %s-%d: %w", name, n, err)
	}
	e.addTopic(name, t, config, n)
	e.o.Log.Info("partition added", "topic", name, "partition", n)
	return nil
}

// nextPartition checks that n is the number of a topic's next partition.
func (e *Engine) nextPartition(name string, n int32) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.topicLocked(name)
	if err != nil {
		return err
	}
	if !t.own {
		return fmt.Errorf("topic %s: %w: %s", name, storage.ErrReadOnly, t.info.Reason)
	}
	next := e.catalog.Topics[name].Partitions
	switch {
	case t.parts[n] != nil:
		return fmt.Errorf("partition %s-%d: %w", name, n, storage.ErrTopicExists)
	case n != next || next >= MaxPartitions:
		return fmt.Errorf("partition %s-%d: %w: the next number is %d, the last one %d", name, n, storage.ErrInvalidName, next, MaxPartitions-1)
	}
	return nil
}
