package fs

import (
	"context"
	"fmt"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// topicNode is the directory of a topic.
type topicNode struct {
	dir
	topic string
}

func (n *topicNode) attr(ctx context.Context, _ *file, out *fuse.Attr) (time.Duration, error) {
	info, err := n.t.engine.Topic(ctx, n.topic)
	if err != nil {
		return 0, err
	}
	return n.t.dirAttr(out, topicTime(&info)), nil
}

// topicTime is the time of a topic's directory: one that does not move while the topic is there, as a directory that seems to change while it is read makes
// tar(1) complain.
func topicTime(info *storage.TopicInfo) time.Time {
	if info.Created.IsZero() { // another's
		return info.Modified
	}
	return info.Created
}

func (n *topicNode) lookup(ctx context.Context, name string) (*found, error) {
	if p, ok := parsePartition(name); ok {
		pt, err := n.t.parts.get(ctx, storage.TopicPartition{Topic: n.topic, Partition: p})
		if err != nil {
			return nil, asNoEntry(err)
		}
		return &found{node: &partitionNode{partDir{n.dir, pt.tp}}, ino: inoOf(n.topic, name), same: "partition", keep: dirKeep}, nil
	}
	base, f := splitFormat(name)
	switch {
	case base == "tail" && f != format.Batch: // a batch belongs to a partition already
		if _, err := n.t.engine.Topic(ctx, n.topic); err != nil {
			return nil, asNoEntry(err)
		}
		return &found{node: &topicTail{t: n.t, topic: n.topic, format: f}, ino: inoOf(n.topic, name)}, nil
	case base == "follow" && f.Readable():
		if _, err := n.t.engine.Topic(ctx, n.topic); err != nil {
			return nil, asNoEntry(err)
		}
		return &found{node: &followNode{t: n.t, topic: n.topic, partition: wholeTopic, format: f}, ino: inoOf(n.topic, name)}, nil
	}
	return nil, errNoEntry
}

func (n *topicNode) list(ctx context.Context) ([]fuse.DirEntry, error) {
	info, err := n.t.engine.Topic(ctx, n.topic)
	if err != nil {
		return nil, err
	}
	out := make([]fuse.DirEntry, 0, len(info.Partitions))
	for _, p := range info.Partitions {
		out = append(out, fuse.DirEntry{Name: number(p), Mode: fuse.S_IFDIR, Ino: inoOf(n.topic, number(p))})
	}
	return out, nil
}

// mkdir adds the next partition.
func (n *topicNode) mkdir(ctx context.Context, name string) error {
	if err := n.t.mayChange(); err != nil {
		return err
	}
	p, ok := parsePartition(name)
	if !ok {
		return fmt.Errorf("%w: %.80q: a directory in a topic is a partition, which has a number", storage.ErrInvalidName, name)
	}
	return n.t.engine.AddPartition(ctx, n.topic, p)
}

// rmdir takes no partition away: the keys of a topic are spread over all that it has.
func (n *topicNode) rmdir(_ context.Context, name string) error {
	return fmt.Errorf("%w: partition %s cannot be removed alone; rmdir of the topic removes all of them", storage.ErrNotPermitted, name)
}

func (n *topicNode) sync(ctx context.Context) error { return n.t.syncTopic(ctx, n.topic) }

// syncTopic puts all partitions of a topic on stable storage.
func (t *Tree) syncTopic(ctx context.Context, topic string) error {
	if err := t.settle.waitTopic(ctx, topic); err != nil {
		return err
	}
	info, err := t.engine.Topic(ctx, topic)
	if err != nil {
		return err
	}
	for _, p := range info.Partitions {
		pt, err := t.parts.get(ctx, storage.TopicPartition{Topic: topic, Partition: p})
		if err != nil {
			return err
		}
		if err := pt.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// topicTail is the file that takes records for whichever partition they belong to.
type topicTail struct {
	t      *Tree
	topic  string
	format format.Format
}

func (n *topicTail) attr(ctx context.Context, _ *file, out *fuse.Attr) (time.Duration, error) {
	info, err := n.t.engine.Topic(ctx, n.topic)
	if err != nil {
		return 0, err
	}
	n.t.fileAttr(out, 0o222, 0, topicTime(&info))
	out.Blksize = writeBlock
	return 0, nil
}

func (n *topicTail) open(ctx context.Context, flags uint32) (handle, uint32, error) {
	if accessOf(flags).read {
		return nil, 0, errNoAccess
	}
	if err := n.t.settle.waitTopic(ctx, n.topic); err != nil { // what was closed before comes before
		return nil, 0, err
	}
	info, err := n.t.engine.Topic(ctx, n.topic)
	if err != nil {
		return nil, 0, err
	}
	if err := n.t.mayChange(); err != nil {
		return nil, 0, err
	}
	sink := &topicSink{t: n.t, topic: n.topic, pick: newPartitioner(n.t.seed(), n.t.opts.BatchSize)}
	if err := sink.load(ctx, info.Partitions); err != nil {
		return nil, 0, err
	}
	w, err := n.t.newWriteHandle(ctx, sink, n.topic, n.format, flags)
	if err != nil {
		return nil, 0, err
	}
	return w, fuse.FOPEN_DIRECT_IO, nil
}

func (n *topicTail) sync(ctx context.Context) error { return n.t.syncTopic(ctx, n.topic) }
