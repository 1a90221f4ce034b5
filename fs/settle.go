package fs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/logmount/logmount/storage"
)

// close(2) returns when FLUSH has been answered, but only RELEASE tells that it was the last close and that an unfinished record is one. Between the two
// the same program may already look at the log. So whoever looks at a partition waits for handles that were flushed with something unfinished. Not for
// ever: a FLUSH comes with every close of a duplicate too.
const (
	settleLimit         = time.Second
	settleOutlivedLimit = 20 * time.Millisecond
)

// wholeTopic stands for all partitions where it is not decided yet which one a record goes to.
const wholeTopic = -1

type settleState int

const (
	settled   settleState = iota
	flushed               // a FLUSH found an unfinished record; RELEASE may follow
	releasing             // RELEASE has come and is being worked on
)

// settleTable makes looks at a partition wait for closes that are under way.
type settleTable struct {
	busy atomic.Int64 // closings that are not settled

	mu sync.Mutex // guards what follows and the closings; a leaf
	m  map[storage.TopicPartition]map[*closing]struct{}
}

// closing is what the table knows of one write handle.
type closing struct {
	key      storage.TopicPartition
	state    settleState
	outlived bool          // it was still used after such a FLUSH
	changed  chan struct{} // closed when the state is left
	timer    *time.Timer
}

func newSettleTable() *settleTable {
	return &settleTable{m: make(map[storage.TopicPartition]map[*closing]struct{})}
}

// flush says that a FLUSH found an unfinished record. One that comes while the last is not settled is that of another descriptor, which a program that was
// just started had inherited, say: RELEASE may be right behind it. Who waits goes on waiting, not longer than a look waits for a handle that outlives.
func (t *settleTable) flush(c *closing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := settleLimit
	switch c.state {
	case releasing:
		return
	case flushed:
		if c.outlived {
			return
		}
		c.outlived = true
		if !c.timer.Stop() {
			return // it is about to end the wait
		}
		limit = settleOutlivedLimit
	case settled:
		t.enter(c, flushed)
		if c.outlived {
			limit = settleOutlivedLimit
		}
	}
	changed := c.changed
	c.timer = time.AfterFunc(limit, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.state == flushed && c.changed == changed {
			c.outlived = true
			t.leave(c)
		}
	})
}

// alive says that the handle is used: a FLUSH before was not the last.
func (t *settleTable) alive(c *closing) {
	if t.busy.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.state == flushed {
		c.outlived = true
		t.leave(c)
	}
}

// release says that RELEASE has come for a handle with an unfinished record. From here on looks wait without limit.
func (t *settleTable) release(c *closing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.state == flushed { // whoever waits already goes on waiting
		c.state = releasing
		c.timer.Stop()
		return
	}
	t.enter(c, releasing)
}

// done says that nothing is unfinished any more.
func (t *settleTable) done(c *closing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(c)
}

func (t *settleTable) enter(c *closing, s settleState) {
	c.state, c.changed = s, make(chan struct{})
	if t.m[c.key] == nil {
		t.m[c.key] = make(map[*closing]struct{})
	}
	t.m[c.key][c] = struct{}{}
	t.busy.Add(1)
}

func (t *settleTable) leave(c *closing) {
	if c.state == settled {
		return
	}
	c.state = settled
	if c.timer != nil {
		c.timer.Stop()
	}
	close(c.changed)
	t.busy.Add(-1)
	delete(t.m[c.key], c)
	if len(t.m[c.key]) == 0 {
		delete(t.m, c.key)
	}
}

// wait returns when nothing that was being closed when it was called is unsettled any more in the partition, or with an error when ctx is cancelled.
func (t *settleTable) wait(ctx context.Context, tp storage.TopicPartition) error {
	if t.busy.Load() == 0 {
		return nil
	}
	return waitAll(ctx, t.pending(func(key storage.TopicPartition) bool {
		return key.Topic == tp.Topic && (key.Partition == tp.Partition || key.Partition == wholeTopic)
	}))
}

// waitTopic is wait for all partitions of a topic.
func (t *settleTable) waitTopic(ctx context.Context, topic string) error {
	if t.busy.Load() == 0 {
		return nil
	}
	return waitAll(ctx, t.pending(func(key storage.TopicPartition) bool { return key.Topic == topic }))
}

func waitAll(ctx context.Context, pending []<-chan struct{}) error {
	for _, ch := range pending {
		select {
		case <-ch:
		case <-ctx.Done():
			return context.Canceled
		}
	}
	return nil
}

// waitFor returns when it is known whether the FLUSH that a handle had last was that of its last close, and if it was, when the handle is done.
func (t *settleTable) waitFor(ctx context.Context, c *closing) {
	if ch := t.changing(c); ch != nil {
		select {
		case <-ch:
		case <-ctx.Done():
		}
	}
}

func (t *settleTable) changing(c *closing) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.state == settled {
		return nil
	}
	return c.changed
}

// pending returns what there is to wait for of the partitions that match.
func (t *settleTable) pending(match func(storage.TopicPartition) bool) []<-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []<-chan struct{}
	for key, closings := range t.m {
		if !match(key) {
			continue
		}
		for c := range closings {
			out = append(out, c.changed)
		}
	}
	return out
}
