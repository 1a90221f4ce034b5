package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// fopenStream tells the kernel that a file has no position at all.
const fopenStream = fuse.FOPEN_STREAM | fuse.FOPEN_NONSEEKABLE | fuse.FOPEN_DIRECT_IO

// followNode is the file that waits for records: of one partition, or of all of a topic.
type followNode struct {
	t         *Tree
	topic     string
	partition int32 // or wholeTopic
	format    format.Format
}

func (n *followNode) attr(_ context.Context, _ *file, out *fuse.Attr) (time.Duration, error) {
	n.t.fileAttr(out, 0o444, 0, n.t.engine.Info().Modified)
	return dirKeep, nil
}

func (n *followNode) open(ctx context.Context, flags uint32) (handle, uint32, error) {
	if accessOf(flags).write {
		return nil, 0, errNoAccess
	}
	// What was closed before is not "from now on".
	if err := n.settle(ctx); err != nil {
		return nil, 0, err
	}
	h := &followHandle{gate: newGate(), n: n, wake: make(chan struct{}, 1), parts: make(map[int32]*followed)}
	if err := h.attach(ctx, true); err != nil {
		h.detach()
		return nil, 0, err
	}
	n.t.followers.Add(1)
	return h, fopenStream, nil
}

func (n *followNode) settle(ctx context.Context) error {
	if n.partition == wholeTopic {
		return n.t.settle.waitTopic(ctx, n.topic)
	}
	return n.t.settle.wait(ctx, storage.TopicPartition{Topic: n.topic, Partition: n.partition})
}

func (n *followNode) sync(ctx context.Context) error {
	if n.partition == wholeTopic {
		return n.t.syncTopic(ctx, n.topic)
	}
	p, err := n.t.parts.get(ctx, storage.TopicPartition{Topic: n.topic, Partition: n.partition})
	if err != nil {
		return err
	}
	return n.t.sync(ctx, p)
}

// followHandle gives each record once, as it arrives, from the open on.
type followHandle struct {
	gate
	n    *followNode
	wake chan struct{}

	// guarded by gate
	parts   map[int32]*followed
	order   []*followed
	left    []byte
	scratch []byte
	failed  error // met behind what the last read gave
}

type followed struct {
	p          *part
	cur        storage.Cursor
	generation uint64 // of the log when following began
	stop       func()
}

// attach adds partitions that are not followed yet: at first from their ends, those that come later from their beginnings.
func (h *followHandle) attach(ctx context.Context, first bool) error {
	numbers := []int32{h.n.partition}
	if h.n.partition == wholeTopic {
		info, err := h.n.t.engine.Topic(ctx, h.n.topic)
		if err != nil {
			return err
		}
		numbers = info.Partitions
	}
	for _, i := range numbers {
		if h.parts[i] != nil {
			continue
		}
		p, err := h.n.t.parts.get(ctx, storage.TopicPartition{Topic: h.n.topic, Partition: i})
		if err != nil {
			return err
		}
		stop := p.Watch(h.wake)
		s, err := p.Snapshot(ctx)
		if err != nil {
			stop()
			return err
		}
		from := s.Start()
		if first {
			from = s.End()
		}
		f := &followed{p: p, cur: s.Records(from), generation: s.Generation(), stop: stop}
		h.parts[i] = f
		h.order = append(h.order, f)
	}
	return nil
}

// detach lets go of what is followed.
func (h *followHandle) detach() {
	for _, f := range h.order {
		f.stop()
		f.cur.Close()
	}
}

func (h *followHandle) release() {
	h.detach()
	h.n.t.followers.Add(-1)
}

func (h *followHandle) read(ctx context.Context, dest []byte, _ int64, flags uint32) (int, error) {
	if len(dest) == 0 {
		return 0, nil
	}
	if err := h.lock(ctx); err != nil {
		return 0, err
	}
	defer h.unlock()
	for {
		changed := h.n.t.topics.next()
		n, err := h.drain(ctx, dest)
		switch {
		case n > 0:
			return n, nil
		case isGone(err), errors.Is(err, storage.ErrClosed):
			return 0, nil // nothing will ever come
		case err != nil:
			return 0, err
		case h.n.t.stopping.Load():
			return 0, nil
		case flags&syscall.O_NONBLOCK != 0:
			return 0, errTryAgain
		}
		select {
		case <-h.wake:
		case <-changed:
			if h.n.partition != wholeTopic {
				continue
			}
			if err := h.attach(ctx, false); err != nil && !isGone(err) {
				return 0, err
			}
		case <-h.n.t.stop:
		case <-ctx.Done():
			return 0, context.Canceled
		}
	}
}

// drain takes what is there. An error comes after what stood before it.
func (h *followHandle) drain(ctx context.Context, dest []byte) (int, error) {
	n := copy(dest, h.left)
	h.left = h.left[n:]
	if err := h.failed; err != nil && n == 0 {
		h.failed = nil
		return 0, err
	}
	for i := 0; i < len(h.order); i++ {
		f := h.order[i]
		if n == len(dest) {
			// Whoever was not reached is first the next time.
			h.order = append(h.order[i:len(h.order):len(h.order)], h.order[:i]...)
			return n, nil
		}
		more, err := h.drainOne(ctx, f, dest[n:])
		n += more
		if isGone(err) && len(h.order) > 1 { // the others may still be there
			f.stop()
			f.cur.Close()
			h.order = append(h.order[:i:i], h.order[i+1:]...)
			i--
			continue
		}
		if err != nil {
			if n > 0 && more == 0 && !interrupted(ctx, err) { // of another partition; its cursor may be behind the place by now
				h.failed = err
			}
			return n, err
		}
	}
	return n, nil
}

func (h *followHandle) drainOne(ctx context.Context, f *followed, dest []byte) (int, error) {
	s, err := f.p.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	if cut := s.Unchanged(f.generation); f.cur.Offset() > cut {
		return 0, fmt.Errorf("%s from offset %d on: %w: the log was cut there", f.p.tp, cut, storage.ErrOffsetGone)
	}
	f.generation = s.Generation() // what has been read so far is in it
	f.cur.Advance(s)
	n := 0
	for n < len(dest) && len(h.left) == 0 {
		at := f.cur.Offset()
		if at >= s.End() {
			break
		}
		b, err := h.next(ctx, f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if n > 0 || interrupted(ctx, err) { // found again by the next read
				f.cur.Close()
				f.cur = s.Records(at)
			}
			return n, err
		}
		c := copy(dest[n:], b)
		n += c
		h.left = b[c:]
	}
	return n, nil
}

// next returns the bytes of the next record, in memory of the handle.
func (h *followHandle) next(ctx context.Context, f *followed) ([]byte, error) {
	if h.n.format == format.Batch {
		b, err := f.cur.NextBatch(ctx)
		h.scratch = append(h.scratch[:0], b...)
		return h.scratch, err
	}
	r, err := f.cur.Next(ctx)
	if err != nil {
		return nil, err
	}
	if h.n.format == format.JSON && h.n.partition == wholeTopic {
		h.scratch = format.AppendJSONWithPartition(h.scratch[:0], r, f.p.tp.Partition)
	} else {
		h.scratch = h.n.format.Append(h.scratch[:0], r)
	}
	return h.scratch, nil
}
