package fs

import (
	"context"
	"fmt"
	"time"

	"github.com/logmount/logmount/storage"
)

// sink is where a writer's records go.
type sink interface {
	// append adds all records or none, in their order.
	append(ctx context.Context, records []storage.Record) error
	// appendBatches says how many it took; unless all, the rest are to be given again with those that follow. Without more to come it takes all.
	appendBatches(ctx context.Context, batches [][]byte, more bool) (taken int, err error)
	// check returns what append would, as far as that can be told.
	check(ctx context.Context, r *storage.Record) error
	sync(ctx context.Context) error
	// key is the partition that looks wait for, wholeTopic where that is open.
	key() storage.TopicPartition
	path() string
}

// partSink is one partition.
type partSink struct {
	t *Tree
	p *part
}

func (s *partSink) append(ctx context.Context, records []storage.Record) error {
	_, err := s.p.Append(ctx, records, s.t.opts.BatchSize)
	return err
}

func (s *partSink) appendBatches(ctx context.Context, batches [][]byte, more bool) (int, error) {
	_, taken, err := s.p.AppendBatches(ctx, batches, more)
	return taken, err
}

func (s *partSink) check(ctx context.Context, r *storage.Record) error {
	return s.p.CheckAppend(ctx, r)
}

func (s *partSink) sync(ctx context.Context) error { return s.p.Sync(ctx) }

func (s *partSink) key() storage.TopicPartition { return s.p.tp }

func (s *partSink) path() string {
	return "/" + s.p.tp.Topic + "/" + number(s.p.tp.Partition) + "/tail"
}

// topicSink spreads records over the partitions of a topic, as a producer does. It is for one goroutine at a time.
type topicSink struct {
	t     *Tree
	topic string
	pick  *partitioner
	parts []*part
	split [][]storage.Record // by partition; reused
}

// load takes the partitions that there are. One that is added later gets records of later opens.
func (s *topicSink) load(ctx context.Context, numbers []int32) error {
	for _, n := range numbers {
		p, err := s.t.parts.get(ctx, storage.TopicPartition{Topic: s.topic, Partition: n})
		if err != nil {
			return err
		}
		if err := p.Writable(ctx); err != nil {
			return err
		}
		s.parts = append(s.parts, p)
	}
	if len(s.parts) == 0 {
		return fmt.Errorf("topic %s has no partitions: %w", s.topic, storage.ErrPartitionNotFound)
	}
	s.split = make([][]storage.Record, len(s.parts))
	return nil
}

// append is all or nothing in each partition only: what was added to others before an error stays, and is reported.
func (s *topicSink) append(ctx context.Context, records []storage.Record) error {
	for i := range records {
		n := s.pick.pick(&records[i], len(s.parts))
		s.split[n] = append(s.split[n], records[i])
	}
	defer func() {
		for i := range s.split {
			clear(s.split[i]) // they would keep the request's buffer alive
			s.split[i] = s.split[i][:0]
		}
	}()
	done := 0
	for i, part := range s.split {
		if len(part) == 0 {
			continue
		}
		if err := s.appendTo(ctx, i, part, done > 0); err != nil {
			if done > 0 {
				s.t.report(s.path(), fmt.Sprintf("a write that failed in partition %d had added %d records to others: %v", i, done, err))
			}
			return err
		}
		done += len(part)
	}
	return nil
}

// appendTo adds to one partition. Once another has been changed it must not be cut short.
func (s *topicSink) appendTo(ctx context.Context, i int, records []storage.Record, begun bool) error {
	if begun {
		ctx = context.WithoutCancel(ctx)
	}
	_, err := s.parts[i].Append(ctx, records, s.t.opts.BatchSize)
	return err
}

func (s *topicSink) appendBatches(context.Context, [][]byte, bool) (int, error) {
	return 0, errNotAllowed
}

func (s *topicSink) check(ctx context.Context, r *storage.Record) error {
	for _, p := range s.parts {
		if err := p.CheckAppend(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *topicSink) sync(ctx context.Context) error {
	for _, p := range s.parts {
		if err := p.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *topicSink) key() storage.TopicPartition {
	if len(s.parts) == 1 {
		return s.parts[0].tp
	}
	return storage.TopicPartition{Topic: s.topic, Partition: wholeTopic}
}

func (s *topicSink) path() string { return "/" + s.topic + "/tail" }

// report remembers what happened where no system call can tell.
func (t *Tree) report(path, reason string) {
	t.reports.Add(storage.Report{Time: t.opts.Now(), Path: path, Reason: reason})
}

// seed returns a number that differs from open to open.
func (t *Tree) seed() uint64 {
	return uint64(t.opts.Now().UnixNano()) + t.seeds.Add(1)<<32
}

// now returns the timestamp of a record written now.
func (t *Tree) now() int64 { return t.opts.Now().Truncate(time.Millisecond).UnixMilli() }
