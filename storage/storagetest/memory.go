package storagetest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/logmount/logmount/storage"
)

// Memory is an engine in memory: the reference model. Its zero value is not usable, see NewMemory.
type Memory struct {
	knobs knobs

	// mu guards the fields below. It is taken before the lock of a partition, never inside it.
	mu     sync.Mutex
	topics map[string]*memTopic
	ids    uint64
	closed bool
}

type memTopic struct {
	info  storage.TopicInfo
	parts []*memPartition
}

var _ storage.Engine = (*Memory)(nil)

// NewMemory returns an empty writable engine. Its clock starts in September 2020 and moves by a millisecond each time somebody asks.
func NewMemory() *Memory {
	m := &Memory{topics: map[string]*memTopic{}}
	m.knobs.init()
	return m
}

// Info implements storage.Engine.
func (m *Memory) Info() storage.EngineInfo {
	reason := m.knobs.readOnly()
	return storage.EngineInfo{Data: "memory", Writable: reason == "", Reason: reason, Mode: 0o755, Modified: time.UnixMilli(epoch)}
}

// enter is the beginning of every method: cancelled contexts, a closed engine and the knobs.
func (m *Memory) enter(ctx context.Context, op string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.checkOpen(); err != nil {
		return err
	}
	return m.knobs.pass(ctx, op)
}

func (m *Memory) checkOpen() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("engine: %w", storage.ErrClosed)
	}
	return nil
}

func (m *Memory) writable() error {
	if reason := m.knobs.readOnly(); reason != "" {
		return fmt.Errorf("%w: %s", storage.ErrReadOnly, reason)
	}
	return nil
}

// Topics implements storage.Engine.
func (m *Memory) Topics(ctx context.Context) ([]storage.TopicInfo, error) {
	if err := m.enter(ctx, "topics"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []storage.TopicInfo
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		out = append(out, m.infoLocked(m.topics[name]))
	}
	return out, nil
}

// Topic implements storage.Engine.
func (m *Memory) Topic(ctx context.Context, name string) (storage.TopicInfo, error) {
	if err := m.enter(ctx, "topics"); err != nil {
		return storage.TopicInfo{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.topicLocked(name)
	if err != nil {
		return storage.TopicInfo{}, err
	}
	return m.infoLocked(t), nil
}

func (m *Memory) topicLocked(name string) (*memTopic, error) {
	t := m.topics[name]
	if t == nil {
		return nil, fmt.Errorf("topic %q: %w", name, storage.ErrTopicNotFound)
	}
	return t, nil
}

func (m *Memory) infoLocked(t *memTopic) storage.TopicInfo {
	info := t.info
	info.Config = maps.Clone(info.Config)
	for i := range t.parts {
		info.Partitions = append(info.Partitions, int32(i))
	}
	info.Reason = m.knobs.readOnly()
	for _, p := range t.parts {
		if info.Reason == "" {
			info.Reason = p.readOnlyReason()
		}
	}
	info.Writable = info.Reason == ""
	return info
}

// CreateTopic implements storage.Engine.
func (m *Memory) CreateTopic(ctx context.Context, spec storage.TopicSpec) error {
	if err := m.enter(ctx, "create"); err != nil {
		return err
	}
	if err := m.writable(); err != nil {
		return err
	}
	if err := checkName(spec.Name); err != nil {
		return err
	}
	if spec.Partitions < 1 {
		return fmt.Errorf("topic %q: %w: %d partitions", spec.Name, storage.ErrInvalidName, spec.Partitions)
	}
	config, err := parseConfig(spec.Config)
	if err != nil {
		return fmt.Errorf("topic %q: %w", spec.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.topics[spec.Name] != nil {
		return fmt.Errorf("topic %q: %w", spec.Name, storage.ErrTopicExists)
	}
	m.ids++
	id := binary.BigEndian.AppendUint64([]byte("logmount"), m.ids)
	t := &memTopic{info: storage.TopicInfo{Name: spec.Name, ID: base64.RawURLEncoding.EncodeToString(id), Config: maps.Clone(spec.Config), Created: m.knobs.now()}}
	for i := range spec.Partitions {
		t.parts = append(t.parts, newMemPartition(m, storage.TopicPartition{Topic: spec.Name, Partition: i}, config))
	}
	m.topics[spec.Name] = t
	return nil
}

// DeleteTopic implements storage.Engine.
func (m *Memory) DeleteTopic(ctx context.Context, name string, force bool) error {
	if err := m.enter(ctx, "delete"); err != nil {
		return err
	}
	if err := m.writable(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.topicLocked(name)
	if err != nil {
		return err
	}
	for _, p := range t.parts {
		if !force && p.holdsRecords() {
			return fmt.Errorf("topic %q: %w", name, storage.ErrNotEmpty)
		}
	}
	delete(m.topics, name)
	for _, p := range t.parts {
		p.remove()
	}
	return nil
}

// AddPartition implements storage.Engine.
func (m *Memory) AddPartition(ctx context.Context, topic string, n int32) error {
	if err := m.enter(ctx, "create"); err != nil {
		return err
	}
	if err := m.writable(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.topicLocked(topic)
	if err != nil {
		return err
	}
	switch next := int32(len(t.parts)); {
	case n >= 0 && n < next:
		return fmt.Errorf("partition %s-%d: %w", topic, n, storage.ErrTopicExists)
	case n != next:
		return fmt.Errorf("partition %s-%d: %w: the next number is %d", topic, n, storage.ErrInvalidName, next)
	}
	t.parts = append(t.parts, newMemPartition(m, storage.TopicPartition{Topic: topic, Partition: n}, t.parts[0].config))
	return nil
}

// Partition implements storage.Engine.
func (m *Memory) Partition(ctx context.Context, tp storage.TopicPartition) (storage.Partition, error) {
	if err := m.enter(ctx, "partition"); err != nil {
		return nil, err
	}
	p, err := m.find(tp)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (m *Memory) find(tp storage.TopicPartition) (*memPartition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.topicLocked(tp.Topic)
	if err != nil {
		return nil, err
	}
	if tp.Partition < 0 || int(tp.Partition) >= len(t.parts) {
		return nil, fmt.Errorf("partition %s: %w", tp, storage.ErrPartitionNotFound)
	}
	return t.parts[tp.Partition], nil
}

// Status implements storage.Engine.
func (m *Memory) Status() storage.EngineStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := storage.EngineStatus{Topics: len(m.topics), Clean: true}
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		for _, p := range m.topics[name].parts {
			st.Partitions++
			st.Opened++
			st.List = append(st.List, p.status())
		}
	}
	return st
}

// Close implements storage.Engine.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("engine: %w", storage.ErrClosed)
	}
	m.closed = true
	return nil
}
