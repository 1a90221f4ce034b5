package fs

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// part is a partition as the tree sees it.
type part struct {
	storage.Partition
	tp storage.TopicPartition
	// life tells a topic from an earlier one of the same name.
	life uint64
}

// partTable remembers which storage.Partition a name meant, to notice that it means another.
type partTable struct {
	engine storage.Engine

	mu    sync.Mutex // guards what follows; a leaf
	m     map[storage.TopicPartition]*part
	lives uint64
}

func newPartTable(e storage.Engine) *partTable {
	return &partTable{engine: e, m: make(map[storage.TopicPartition]*part)}
}

// get returns a partition of the engine.
func (t *partTable) get(ctx context.Context, tp storage.TopicPartition) (*part, error) {
	p, err := t.engine.Partition(ctx, tp)
	if err != nil {
		t.drop(tp, err)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.m[tp]; old != nil && old.Partition == p {
		return old, nil
	}
	t.lives++
	t.m[tp] = &part{Partition: p, tp: tp, life: t.lives}
	return t.m[tp], nil
}

// sync puts what is in a partition on stable storage, records of closes that are under way too.
func (t *Tree) sync(ctx context.Context, p *part) error {
	if err := t.settle.wait(ctx, p.tp); err != nil {
		return err
	}
	return p.Sync(ctx)
}

// drop forgets a partition that is no more.
func (t *partTable) drop(tp storage.TopicPartition, err error) {
	if !errors.Is(err, storage.ErrTopicNotFound) && !errors.Is(err, storage.ErrPartitionNotFound) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, tp)
}

// newSplitter returns a splitter for what is written to topic in format f.
func (t *Tree) newSplitter(ctx context.Context, topic string, f format.Format) (*format.Splitter, error) {
	info, err := t.engine.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	limit := storage.DefaultTopicConfig().MaxMessageBytes
	if s := info.Config["max.message.bytes"]; s != "" {
		if n, err := strconv.ParseInt(s, 10, 32); err == nil {
			limit = n
		}
	}
	return format.NewSplitter(f, int(limit)), nil
}

// asNoEntry makes "no such topic", "no such offset" and "no name of that form" what a lookup says of all of them.
func asNoEntry(err error) error {
	for _, e := range []error{storage.ErrTopicNotFound, storage.ErrPartitionNotFound, storage.ErrOutOfRange, storage.ErrOffsetGone, storage.ErrInvalidName} {
		if errors.Is(err, e) {
			return errNoEntry
		}
	}
	return err
}

func number(p int32) string { return strconv.Itoa(int(p)) }
