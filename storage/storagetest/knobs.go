package storagetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/logmount/logmount/storage"
)

// epoch is the time, in milliseconds, at which the clock of a Memory starts.
const epoch int64 = 1_600_000_000_000

type knobs struct {
	// mu guards the fields below; a leaf lock.
	mu     sync.Mutex
	fail   map[string]error
	hold   map[string]chan struct{}
	reason string
	drop   bool
	clock  func() time.Time
}

func (k *knobs) init() {
	k.fail, k.hold = map[string]error{}, map[string]chan struct{}{}
	at := time.UnixMilli(epoch)
	k.clock = func() time.Time { at = at.Add(time.Millisecond); return at }
}

func (k *knobs) pass(ctx context.Context, op string) error {
	k.mu.Lock()
	err, wait := k.fail[op], k.hold[op]
	delete(k.fail, op)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if wait == nil {
		return nil
	}
	select {
	case <-wait:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *knobs) held(op string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hold[op] != nil
}

func (k *knobs) readOnly() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reason
}

func (k *knobs) drops() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.drop
}

func (k *knobs) now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clock()
}

// Fail makes the next call of op return err without doing anything. Ops are "topics", "create" (topics and partitions), "delete", "partition",
// "snapshot", "append" (records and batches), "check" (CheckAppend), "sync", "start" (SetStart), "find" (Next, FindTime and FindLast), "extent",
// "count" (the part of Extent that has to read the records: JSON),
// "locate" and "next" (of a cursor, records and batches).
func (m *Memory) Fail(op string, err error) {
	m.knobs.mu.Lock()
	defer m.knobs.mu.Unlock()
	m.knobs.fail[op] = err
}

// Hold makes every call of op wait until release is called or its context is cancelled. While "extent" is held, ExtentNow is not
// exact; while "count" is, that of JSON is not.
func (m *Memory) Hold(op string) (release func()) {
	m.knobs.mu.Lock()
	defer m.knobs.mu.Unlock()
	ch := make(chan struct{})
	m.knobs.hold[op] = ch
	return sync.OnceFunc(func() {
		m.knobs.mu.Lock()
		defer m.knobs.mu.Unlock()
		close(ch)
		if m.knobs.hold[op] == ch {
			delete(m.knobs.hold, op)
		}
	})
}

// ReadOnly makes the engine and all its partitions read-only for the reason given; an empty reason makes them writable again.
func (m *Memory) ReadOnly(reason string) {
	m.knobs.mu.Lock()
	defer m.knobs.mu.Unlock()
	m.knobs.reason = reason
}

// DropBelowStart decides whether records that SetStart deletes are gone at once for older snapshots and cursors too (ErrOffsetGone). Without it, which
// is how Memory starts, they stay readable for ever, as if all records were in one segment.
func (m *Memory) DropBelowStart(on bool) {
	m.knobs.mu.Lock()
	defer m.knobs.mu.Unlock()
	m.knobs.drop = on
}

// mustFind is for the knobs of one partition, which tests use with names that they have made.
func (m *Memory) mustFind(tp storage.TopicPartition) *memPartition {
	p, err := m.find(tp)
	if err != nil {
		panic(fmt.Sprintf("storagetest: %v", err))
	}
	return p
}

// PartitionReadOnly makes one partition read-only for the reason given; an empty reason makes it writable again.
func (m *Memory) PartitionReadOnly(tp storage.TopicPartition, reason string) {
	p := m.mustFind(tp)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reason = reason
}

// Gap moves the end of the log by n offsets that hold no visible record, as control batches and compaction leave them.
func (m *Memory) Gap(tp storage.TopicPartition, n int64) {
	p := m.mustFind(tp)
	p.change(func(s *memState) { s.end += storage.Offset(n) })
}

// Corrupt makes the batch that holds offset o unreadable: a cursor gets one ErrCorrupt there and goes on behind it.
func (m *Memory) Corrupt(tp storage.TopicPartition, o storage.Offset) {
	p := m.mustFind(tp)
	p.change(func(s *memState) {
		s.batches = append([]memBatch(nil), s.batches...)
		for i := range s.batches {
			if b := &s.batches[i]; b.first() <= o && o <= b.last() {
				b.bad = true
			}
		}
	})
}

// Rewrite changes the generation of the log without changing a record, as a truncation or compaction does.
func (m *Memory) Rewrite(tp storage.TopicPartition) {
	p := m.mustFind(tp)
	p.change(func(s *memState) { s.generation++ })
}

// Cut takes the records from offset o on away, as a broker does with those that its leader does not have.
func (m *Memory) Cut(tp storage.TopicPartition, o storage.Offset) {
	p := m.mustFind(tp)
	p.change(func(s *memState) {
		kept := make([]memBatch, 0, len(s.batches))
		for i := range s.batches {
			if s.batches[i].last() < o {
				kept = append(kept, s.batches[i])
			}
		}
		s.batches, s.end = kept, min(s.end, o)
		s.generation++
		s.cuts = append(slices.Clone(s.cuts), memCut{s.generation, o})
	})
}
