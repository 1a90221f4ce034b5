package kraft

import (
	"errors"
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// Partition says who holds the replicas of a partition.
type Partition struct {
	Replicas []int32
	Removing []int32 // that a reassignment under way takes away
	Adding   []int32 // that it adds
}

// Sole reports whether node is the only one that has, or is about to have, a replica.
func (p *Partition) Sole(node int32) bool {
	return len(p.Replicas) == 1 && p.Replicas[0] == node && len(p.Adding) == 0 && len(p.Removing) == 0
}

// topic is one topic.
type topic struct {
	name  string
	parts map[int32]Partition
}

// State is what a metadata log says up to some offset. The zero value is empty and ready.
type State struct {
	next   storage.Offset // no batch below it counts
	begun  bool           // next is where the log must go on
	topics map[ID]*topic

	open    bool     // a transaction is
	pending [][]byte // its records

	reader record.Reader
}

// Next returns the offset behind the last batch.
func (s *State) Next() storage.Offset { return s.next }

// Topic returns the name of a topic; false where the log knows no such id.
func (s *State) Topic(id ID) (name string, ok bool) {
	t := s.topics[id]
	if t == nil {
		return "", false
	}
	return t.name, true
}

// Partition returns the replicas of a partition; false where the log does not know it.
func (s *State) Partition(id ID, n int32) (Partition, bool) {
	t := s.topics[id]
	if t == nil {
		return Partition{}, false
	}
	p, ok := t.parts[n]
	return p, ok
}

// Snapshot takes a batch of a snapshot file whose end offset is end, in the order of the file. All of them come before the batches of the log.
func (s *State) Snapshot(batch []byte, end storage.Offset) error {
	h, _, err := s.reader.Validate(batch)
	if err != nil {
		return fmt.Errorf("metadata snapshot: %w", err)
	}
	s.next, s.begun = end, true
	return s.records(&h)
}

// Batch takes the next batch of the log. Those that a snapshot has taken in already are passed over. Batches must follow each other without a gap.
func (s *State) Batch(batch []byte) error {
	h, _, err := s.reader.Validate(batch)
	if err != nil {
		return fmt.Errorf("metadata log: %w", err)
	}
	if s.begun && h.NextOffset() <= s.next {
		return nil
	}
	if h.BaseOffset > s.next || s.begun && h.BaseOffset < s.next {
		return fmt.Errorf("metadata log: %w: offset %d where %d comes next", storage.ErrCorrupt, h.BaseOffset, s.next)
	}
	s.next, s.begun = h.NextOffset(), true
	return s.records(&h)
}

// records applies the records of the batch that the reader stands before.
func (s *State) records(h *record.Header) error {
	if h.Attributes.Control() {
		return nil
	}
	var r storage.Record
	for {
		ok, err := s.reader.Next(&r)
		if err != nil {
			return fmt.Errorf("metadata log: %w", err)
		}
		if !ok {
			return nil
		}
		if err := s.apply(r.Value); err != nil {
			return fmt.Errorf("metadata log: record %d: %w", r.Offset, err)
		}
	}
}

// Numbers of the types of records that matter here.
const (
	typeTopic           = 2
	typePartition       = 3
	typePartitionChange = 5
	typeRemoveTopic     = 9
	typeBegin           = 23
	typeEnd             = 24
	typeAbort           = 25
)

// newest holds the newest known version of the types that matter.
var newest = map[int]int{typeTopic: 0, typePartition: 2, typePartitionChange: 2, typeRemoveTopic: 0, typeBegin: 0, typeEnd: 0, typeAbort: 0}

// apply takes the value of one record.
func (s *State) apply(value []byte) error {
	f := fields{b: value}
	frame, kind, version := f.uvarint(), f.uvarint(), f.uvarint()
	if f.err != nil {
		return f.err
	}
	if frame != 1 {
		return fmt.Errorf("frame version %d: %w", frame, storage.ErrUnsupported)
	}
	last, matters := newest[kind]
	if !matters {
		return nil
	}
	if version > last {
		return fmt.Errorf("type %d version %d: %w", kind, version, storage.ErrUnsupported)
	}
	switch kind {
	case typeBegin:
		s.open, s.pending = true, nil
		return nil
	case typeEnd:
		return s.commit()
	case typeAbort:
		s.open, s.pending = false, nil
		return nil
	}
	if s.open {
		s.pending = append(s.pending, append([]byte(nil), value...))
		return nil
	}
	return s.change(kind, version, &f)
}

// commit applies what a transaction wrote.
func (s *State) commit() error {
	pending := s.pending
	s.open, s.pending = false, nil
	for _, value := range pending {
		if err := s.apply(value); err != nil {
			return err
		}
	}
	return nil
}

// errUnknown is a record about a topic or partition that no record before has made.
var errUnknown = errors.New("it names what is not there")

func (s *State) change(kind, version int, f *fields) error {
	switch kind {
	case typeTopic:
		return s.addTopic(f)
	case typePartition:
		return s.setPartition(version, f)
	case typePartitionChange:
		return s.changePartition(f)
	case typeRemoveTopic:
		id := f.id()
		f.tags(func(int) func(*fields) { return nil })
		if f.end(); f.err != nil {
			return f.err
		}
		delete(s.topics, id)
	}
	return nil
}

func (s *State) addTopic(f *fields) error {
	name, id := f.str(), f.id()
	f.tags(func(int) func(*fields) { return nil })
	if f.end(); f.err != nil {
		return f.err
	}
	if s.topics == nil {
		s.topics = map[ID]*topic{}
	}
	s.topics[id] = &topic{name: name, parts: map[int32]Partition{}}
	return nil
}

func (s *State) setPartition(version int, f *fields) error {
	n, id := f.int32(), f.id()
	p := Partition{Replicas: f.ints()}
	f.ints() // in sync
	p.Removing, p.Adding = f.ints(), f.ints()
	f.take(4 + 4 + 4) // leader, its epoch, the partition's epoch
	if version >= 1 {
		f.skipIDs() // directories
	}
	f.tags(func(int) func(*fields) { return nil })
	if f.end(); f.err != nil {
		return f.err
	}
	t := s.topics[id]
	if t == nil {
		return fmt.Errorf("partition %d: %w: %w", n, storage.ErrCorrupt, errUnknown)
	}
	t.parts[n] = p
	return nil
}

func (s *State) changePartition(f *fields) error {
	n, id := f.int32(), f.id()
	t := s.topics[id]
	if f.err == nil && t == nil {
		return fmt.Errorf("partition %d: %w: %w", n, storage.ErrCorrupt, errUnknown)
	}
	var p Partition
	if t != nil {
		var ok bool
		if p, ok = t.parts[n]; !ok {
			return fmt.Errorf("partition %d: %w: %w", n, storage.ErrCorrupt, errUnknown)
		}
	}
	f.tags(func(tag int) func(*fields) {
		switch tag {
		case 2:
			return func(f *fields) { p.Replicas = keepNull(p.Replicas, f.ints()) }
		case 3:
			return func(f *fields) { p.Removing = keepNull(p.Removing, f.ints()) }
		case 4:
			return func(f *fields) { p.Adding = keepNull(p.Adding, f.ints()) }
		}
		return nil
	})
	if f.end(); f.err != nil {
		return f.err
	}
	t.parts[n] = p
	return nil
}

// keepNull returns the new value of a list; null leaves it as it was.
func keepNull(was, now []int32) []int32 {
	if now == nil {
		return was
	}
	return now
}
