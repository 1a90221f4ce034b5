package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/logmount/logmount/storage"
)

type memBatch struct {
	records []storage.Record // never empty
	data    []byte
	bad     bool
}

func (b *memBatch) first() storage.Offset { return b.records[0].Offset }
func (b *memBatch) last() storage.Offset  { return b.records[len(b.records)-1].Offset }

// memState is one state of a log. It is immutable once published; batches grow by append, which never touches what an older state sees.
type memState struct {
	start, end storage.Offset
	generation uint64
	modified   int64
	final      bool
	batches    []memBatch // all that were ever appended
	cuts       []memCut
}

// memCut says that a generation began with the log cut at an offset.
type memCut struct {
	generation uint64
	offset     storage.Offset
}

type memPartition struct {
	m      *Memory
	tp     storage.TopicPartition
	config storage.TopicConfig
	state  atomic.Pointer[memState]
	gone   atomic.Int64 // offsets below it are not readable by anybody

	// mu guards the fields below and the change of state.
	mu       sync.Mutex
	reason   string
	poisoned error
	removed  bool
	synced   storage.Offset
	watchers map[int]chan<- struct{}
	watchID  int
}

var _ storage.Partition = (*memPartition)(nil)

func newMemPartition(m *Memory, tp storage.TopicPartition, config storage.TopicConfig) *memPartition {
	p := &memPartition{m: m, tp: tp, config: config, watchers: map[int]chan<- struct{}{}}
	p.state.Store(&memState{modified: m.knobs.now().UnixMilli()})
	return p
}

// change publishes a new state and wakes the watchers.
func (p *memPartition) change(f func(*memState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changeLocked(f)
}

func (p *memPartition) changeLocked(f func(*memState)) {
	next := *p.state.Load()
	f(&next)
	p.state.Store(&next)
	for _, ch := range p.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (p *memPartition) enter(ctx context.Context, op string) error {
	if err := p.m.enter(ctx, op); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed {
		return fmt.Errorf("partition %s: %w", p.tp, storage.ErrTopicNotFound)
	}
	return nil
}

func (p *memPartition) remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = true
	p.changeLocked(func(s *memState) { s.generation++ })
}

func (p *memPartition) readOnlyReason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

func (p *memPartition) holdsRecords() bool {
	s := p.snapshot()
	holds := false
	s.visible(s.Start(), s.End(), func(*storage.Record) bool { holds = true; return false })
	return holds
}

func (p *memPartition) status() storage.PartitionStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state.Load()
	st := storage.PartitionStatus{Topic: p.tp.Topic, Partition: p.tp.Partition, Start: s.start, End: s.end, RecoveryPoint: p.synced, Segments: 1, Sized: 1}
	for _, b := range s.batches {
		st.Bytes += int64(len(b.data))
	}
	st.Reason = p.reason
	if st.Reason == "" {
		st.Reason = p.m.knobs.readOnly()
	}
	st.Writable = st.Reason == ""
	return st
}

func (p *memPartition) snapshot() *memSnapshot { return &memSnapshot{p: p, memState: p.state.Load()} }

// Snapshot implements storage.Partition.
func (p *memPartition) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	if err := p.enter(ctx, "snapshot"); err != nil {
		return nil, err
	}
	return p.snapshot(), nil
}

func (p *memPartition) check(records []storage.Record) error {
	for i := range records {
		if n := aloneSize(&records[i]); n > p.config.MaxMessageBytes {
			return fmt.Errorf("partition %s: %w: %d bytes, max.message.bytes is %d", p.tp, storage.ErrTooLarge, n, p.config.MaxMessageBytes)
		}
	}
	return nil
}

// Append implements storage.Partition.
func (p *memPartition) Append(ctx context.Context, records []storage.Record, batchBytes int) (storage.Appended, error) {
	if err := p.enter(ctx, "append"); err != nil {
		return storage.Appended{}, err
	}
	if err := p.Writable(ctx); err != nil {
		return storage.Appended{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poisoned != nil {
		return storage.Appended{}, p.poisoned
	}
	if err := p.check(records); err != nil {
		return storage.Appended{}, err
	}
	return p.appendLocked(records, batchBytes), nil
}

func (p *memPartition) appendLocked(records []storage.Record, batchBytes int) storage.Appended {
	first := p.state.Load().end
	own := make([]storage.Record, 0, len(records))
	for i := range records {
		own = append(own, cloneRecord(&records[i], first+storage.Offset(i)))
	}
	if len(own) == 0 {
		return storage.Appended{First: first, Next: first}
	}
	modified := p.m.knobs.now().UnixMilli()
	p.changeLocked(func(s *memState) {
		for _, rs := range cut(own, batchBytes) {
			s.batches = append(s.batches, memBatch{records: rs, data: encodeBatch(rs)})
		}
		s.end, s.modified = first+storage.Offset(len(own)), modified
	})
	return storage.Appended{First: first, Next: first + storage.Offset(len(own))}
}

func cloneRecord(r *storage.Record, o storage.Offset) storage.Record {
	out := storage.Record{Offset: o, Timestamp: r.Timestamp, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, storage.Header{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)})
	}
	return out
}

// AppendBatches implements storage.Partition. The model takes each batch's records anew: what it stores is not compressed and has no gaps inside.
func (p *memPartition) AppendBatches(ctx context.Context, batches [][]byte, _ bool) (a storage.Appended, taken int, err error) {
	if err := p.enter(ctx, "append"); err != nil {
		return a, 0, err
	}
	if err := p.Writable(ctx); err != nil {
		return a, 0, err
	}
	var decoded [][]storage.Record
	for _, b := range batches {
		records, err := decodeBatch(b)
		if err != nil {
			return a, 0, fmt.Errorf("partition %s: %w: %w", p.tp, storage.ErrInvalidRecord, err)
		}
		if int64(len(b)) > p.config.MaxMessageBytes {
			return a, 0, fmt.Errorf("partition %s: batch: %w", p.tp, storage.ErrTooLarge)
		}
		decoded = append(decoded, records)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poisoned != nil {
		return a, 0, p.poisoned
	}
	end := p.state.Load().end
	a = storage.Appended{First: end, Next: end}
	for _, records := range decoded {
		a.Next = p.appendLocked(records, math.MaxInt).Next
	}
	return a, len(batches), nil
}

// CheckAppend implements storage.Partition.
func (p *memPartition) CheckAppend(ctx context.Context, r *storage.Record) error {
	if err := p.enter(ctx, "check"); err != nil {
		return err
	}
	if err := p.Writable(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poisoned != nil {
		return p.poisoned
	}
	return p.check([]storage.Record{*r})
}

// Sync implements storage.Partition. A failure set by Fail poisons the partition.
func (p *memPartition) Sync(ctx context.Context) error {
	if err := p.enter(ctx, "sync"); err != nil {
		if ctx.Err() == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.poisoned = fmt.Errorf("partition %s: %w", p.tp, storage.ErrPoisoned)
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poisoned != nil {
		return p.poisoned
	}
	p.synced = p.state.Load().end
	return nil
}

// SetStart implements storage.Partition.
func (p *memPartition) SetStart(ctx context.Context, o storage.Offset) error {
	if err := p.enter(ctx, "start"); err != nil {
		return err
	}
	if err := p.Writable(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state.Load()
	if o > s.end {
		return fmt.Errorf("partition %s: start %d: %w: the end is %d", p.tp, o, storage.ErrOutOfRange, s.end)
	}
	if o <= s.start {
		return nil
	}
	if p.m.knobs.drops() {
		p.gone.Store(int64(o))
	}
	p.changeLocked(func(s *memState) { s.start = o; s.generation++ })
	return nil
}

// Watch implements storage.Partition.
func (p *memPartition) Watch(ch chan<- struct{}) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.watchID
	p.watchID++
	p.watchers[id] = ch
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, id)
	}
}

// Writable implements storage.Partition.
func (p *memPartition) Writable(context.Context) error {
	if err := p.m.writable(); err != nil {
		return err
	}
	reason := p.readOnlyReason()
	if p.state.Load().final && reason == "" {
		reason = "nothing can be appended to it"
	}
	if reason != "" {
		return fmt.Errorf("partition %s: %w: %s", p.tp, storage.ErrReadOnly, reason)
	}
	return nil
}

// Files implements storage.Partition: the model has none.
func (p *memPartition) Files(context.Context) ([]storage.FileInfo, error) {
	return nil, fmt.Errorf("partition %s: files: %w", p.tp, storage.ErrUnsupported)
}

// File implements storage.Partition: the model has none.
func (p *memPartition) File(_ context.Context, name string) (storage.FileInfo, error) {
	return storage.FileInfo{}, fmt.Errorf("partition %s: file %s: %w", p.tp, name, storage.ErrUnsupported)
}

// OpenFile implements storage.Partition: the model has none.
func (p *memPartition) OpenFile(_ context.Context, name string) (storage.RawFile, error) {
	return nil, fmt.Errorf("partition %s: file %s: %w", p.tp, name, storage.ErrUnsupported)
}
