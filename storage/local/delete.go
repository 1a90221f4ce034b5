package local

import (
	"context"
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
)

// DeleteTopic implements storage.Engine. Once the catalogue says so the topic is deleted: what fails after that is reported and tried again later.
func (e *Engine) DeleteTopic(ctx context.Context, name string, force bool) error {
	end, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	parts, err := e.deletable(name)
	if err != nil {
		return err
	}
	if !force {
		if err := e.refuseEmpty(ctx, name, parts); err != nil {
			return err
		}
	}
	if err := e.dropFromCatalog(name, parts); err != nil {
		switch {
		case e.doubt != nil: // what was appended to it might be deleted by the next start
			refuseAll(parts, fmt.Errorf("topic %s may have been deleted: %w", name, storage.ErrReadOnly))
			e.doubted = parts
		case !force && e.refusal() == nil:
			refuseAll(parts, nil)
		}
		return fmt.Errorf("delete topic %s: %w", name, err)
	}
	e.dropTopic(name)
	e.letGo(parts, fmt.Errorf("topic %q: %w", name, storage.ErrTopicNotFound))
	e.o.Log.Info("topic deleted", "topic", name)
	var tps []storage.TopicPartition
	for _, p := range parts {
		tps = append(tps, p.tp)
	}
	if err := e.forget(tps); err != nil {
		e.o.Log.Warn("removing a deleted topic from the checkpoints", "topic", name, "err", err)
	}
	if err := e.finishDeletions(); err != nil {
		e.report(e.o.Dir, fmt.Sprintf("topic %s is deleted, its files are removed later: %v", name, err))
	}
	return nil
}

// deletable returns the logs of a topic that is ours, all of them.
func (e *Engine) deletable(name string) ([]*part, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.topicLocked(name)
	if err != nil {
		return nil, err
	}
	var out []*part
	for _, p := range t.parts {
		if !p.own {
			return nil, fmt.Errorf("partition %s: %w: %s", p.tp, storage.ErrReadOnly, p.reason)
		}
		out = append(out, p)
	}
	return out, nil
}

// refuseEmpty makes sure that no log holds a record and that none can get one. A log that got one meanwhile takes appends again.
func (e *Engine) refuseEmpty(ctx context.Context, name string, parts []*part) error {
	if err := e.empty(ctx, parts); err != nil {
		return err
	}
	refuseAll(parts, fmt.Errorf("topic %s is being deleted: %w", name, storage.ErrTopicNotFound))
	err := e.empty(ctx, parts)
	if err != nil && e.refusal() == nil {
		refuseAll(parts, nil)
		if lost := e.refusal(); lost != nil { // the lock was lost in between
			refuseAll(parts, lost)
		}
	}
	return err
}

func refuseAll(parts []*part, err error) {
	for _, p := range parts {
		if l := p.opened(); l != nil {
			l.Refuse(err)
		}
	}
}

func (e *Engine) empty(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		l, err := e.logOf(ctx, p)
		if err != nil {
			return err
		}
		holds, err := l.Holds(ctx)
		if err != nil {
			return err
		}
		if holds {
			return fmt.Errorf("partition %s: %w", p.tp, storage.ErrNotEmpty)
		}
	}
	return nil
}

func (e *Engine) dropFromCatalog(name string, parts []*part) error {
	c := e.catalog.Clone()
	delete(c.Topics, name)
	for _, p := range parts {
		d, err := e.newDeletion(p.tp)
		if err != nil {
			return err
		}
		c.Deleting = append(c.Deleting, d)
	}
	return e.writeCatalog(c)
}

func (e *Engine) dropTopic(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.info.Modified = e.o.Now().UnixNano()
	delete(e.topics, name)
}

// letGo makes the engine forget logs, for the reason given to whoever still asks. Attempts to open them are waited for.
func (e *Engine) letGo(parts []*part, reason error) {
	for _, p := range parts {
		l, op := p.remove(reason)
		if op != nil {
			<-op.done // it sees that the log has been removed
		}
		if l != nil {
			l.Remove()
		}
	}
}

func (p *part) remove(reason error) (*partition.Log, *opening) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = reason
	l := p.log
	p.log = nil
	if l == nil {
		return nil, p.opening
	}
	return l, nil
}
