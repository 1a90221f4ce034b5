package composite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/logmount/logmount/storage"
)

// Engine is several engines. It implements storage.Engine.
type Engine struct {
	parts []storage.Engine

	// mu guards place: the engine that served a log last. It is not held while an engine is asked.
	mu    sync.Mutex
	place map[storage.TopicPartition]int
}

var (
	_ storage.Engine = (*Engine)(nil)
	_ storage.Roomy  = (*Engine)(nil)
)

// New puts engines together after it has seen that they can belong to one broker: none is ours, none names another cluster or node, and none has a log
// that another has too. The engines are closed by Close; after an error they stay the caller's.
func New(ctx context.Context, engines ...storage.Engine) (*Engine, error) {
	if len(engines) == 0 {
		return nil, fmt.Errorf("%w: no log directory", storage.ErrInvalidConfig)
	}
	e := &Engine{parts: engines, place: map[storage.TopicPartition]int{}}
	if len(engines) == 1 {
		return e, nil
	}
	if err := agree(engines); err != nil {
		return nil, err
	}
	if err := e.spread(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// agree checks what the engines say of themselves.
func agree(engines []storage.Engine) error {
	var cluster, node storage.EngineInfo
	seen := map[string]bool{}
	for _, p := range engines {
		i := p.Info()
		switch {
		case i.Own:
			return fmt.Errorf("%s: %w: it is logmount's own; mount it by itself", i.Data, storage.ErrNotPermitted)
		case seen[i.Data]:
			return fmt.Errorf("%s is given twice: %w", i.Data, storage.ErrInvalidConfig)
		case i.ClusterID != "" && cluster.ClusterID != "" && i.ClusterID != cluster.ClusterID:
			return fmt.Errorf("%s is of cluster %s, %s of cluster %s: %w", cluster.Data, cluster.ClusterID, i.Data, i.ClusterID, storage.ErrInvalidConfig)
		case i.NodeID != "" && node.NodeID != "" && i.NodeID != node.NodeID:
			return fmt.Errorf("%s is of node %s, %s of node %s: %w", node.Data, node.NodeID, i.Data, i.NodeID, storage.ErrInvalidConfig)
		}
		seen[i.Data] = true
		if cluster.ClusterID == "" {
			cluster = i
		}
		if node.NodeID == "" {
			node = i
		}
	}
	return nil
}

// spread finds where the logs are and refuses one that is in two places: which of them is the log nobody can tell, and a broker does not start then.
func (e *Engine) spread(ctx context.Context) error {
	for n, p := range e.parts {
		topics, err := p.Topics(ctx)
		if err != nil {
			return err
		}
		for _, t := range topics {
			for _, number := range t.Partitions {
				tp := storage.TopicPartition{Topic: t.Name, Partition: number}
				if at, twice := e.place[tp]; twice {
					return fmt.Errorf("%s is in %s and in %s: %w", tp, e.parts[at].Info().Data, p.Info().Data, storage.ErrTopicExists)
				}
				e.place[tp] = n
			}
		}
	}
	return nil
}

// Info implements storage.Engine. Owner and mode are those of the first engine.
func (e *Engine) Info() storage.EngineInfo {
	info := e.parts[0].Info()
	if len(e.parts) == 1 {
		return info
	}
	data := []string{info.Data}
	dirs := append([]string{}, info.Dirs...)
	for _, p := range e.parts[1:] {
		i := p.Info()
		data, dirs = append(data, i.Data), append(dirs, i.Dirs...)
		if i.Modified.After(info.Modified) {
			info.Modified = i.Modified
		}
		info.ClusterID, info.NodeID = first(info.ClusterID, i.ClusterID), first(info.NodeID, i.NodeID)
		info.Committed = info.Committed && i.Committed
		info.Writable, info.Reason = info.Writable && i.Writable, first(info.Reason, i.Reason)
	}
	info.Data, info.Dirs = strings.Join(data, ","), dirs
	return info
}

// together is why topics are not made or deleted where there are several engines: which of them would have them is the broker's decision.
const together = "several log directories are shown together, and their broker makes and deletes topics"

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// CreateTopic implements storage.Engine.
func (e *Engine) CreateTopic(ctx context.Context, spec storage.TopicSpec) error {
	return e.change(func(p storage.Engine) error { return p.CreateTopic(ctx, spec) })
}

// DeleteTopic implements storage.Engine.
func (e *Engine) DeleteTopic(ctx context.Context, name string, force bool) error {
	return e.change(func(p storage.Engine) error { return p.DeleteTopic(ctx, name, force) })
}

// AddPartition implements storage.Engine.
func (e *Engine) AddPartition(ctx context.Context, topic string, n int32) error {
	return e.change(func(p storage.Engine) error { return p.AddPartition(ctx, topic, n) })
}

// change changes topics where there is one engine. Of several the first gives its own reason why it does not.
func (e *Engine) change(do func(storage.Engine) error) error {
	if len(e.parts) > 1 && e.parts[0].Info().Writable {
		return fmt.Errorf("%w: %s", storage.ErrNotPermitted, together)
	}
	return do(e.parts[0])
}

// Partition implements storage.Engine. The engine that had the log before is asked first, and the others only if it has it no more.
func (e *Engine) Partition(ctx context.Context, tp storage.TopicPartition) (storage.Partition, error) {
	at, known := e.at(tp)
	p, err := e.parts[at].Partition(ctx, tp)
	if err == nil || len(e.parts) == 1 || known && !elsewhere(err) {
		return p, err
	}
	for n, other := range e.parts {
		if n == at {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p, oerr := other.Partition(ctx, tp)
		if oerr == nil {
			e.put(tp, n)
			return p, nil
		}
		err = worse(err, oerr)
	}
	return nil, err
}

// elsewhere reports whether an engine does not have what another one may have.
func elsewhere(err error) bool {
	return errors.Is(err, storage.ErrTopicNotFound) || errors.Is(err, storage.ErrPartitionNotFound)
}

// worse picks the error to return when no engine has what was asked for: one that could not look says more than one that looked, and
// a topic without the partition more than no topic.
func worse(a, b error) error {
	rank := func(err error) int {
		switch {
		case errors.Is(err, storage.ErrTopicNotFound):
			return 0
		case errors.Is(err, storage.ErrPartitionNotFound):
			return 1
		}
		return 2
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// at returns the engine that served a log last; where none did, the first one and false.
func (e *Engine) at(tp storage.TopicPartition) (n int, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, known = e.place[tp]
	return n, known
}

func (e *Engine) put(tp storage.TopicPartition, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.place[tp] = n
}

// Room implements storage.Roomy: the room of the first engine, which is what has one. Room on other disks cannot be used by its logs.
func (e *Engine) Room(ctx context.Context) (storage.Room, error) {
	if r, ok := e.parts[0].(storage.Roomy); ok {
		return r.Room(ctx)
	}
	return storage.Room{}, fmt.Errorf("room: %w", storage.ErrUnsupported)
}

// Close implements storage.Engine. All engines are closed, whatever one of them says.
func (e *Engine) Close() error {
	var errs []error
	for _, p := range e.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
