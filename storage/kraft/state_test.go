package kraft_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/kraft"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/test/fixture"
)

// eachBatch cuts a file into batches.
func eachBatch(tb testing.TB, name string, fn func(b []byte) error) {
	tb.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	for len(b) > 0 {
		f, err := record.ParseFrame(b)
		if err != nil || f.Size > int64(len(b)) {
			return // zeros or a torn end
		}
		if err := fn(b[:f.Size]); err != nil {
			tb.Fatal(err)
		}
		b = b[f.Size:]
	}
}

func topicID(tb testing.TB, dir string) (id kraft.ID) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "partition.metadata"))
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(b[len(b)-22:]))
	if err != nil {
		tb.Fatal(err)
	}
	copy(id[:], raw)
	return id
}

func TestBrokersLog(t *testing.T) {
	for _, archive := range []string{"clean", "live", "killed"} {
		t.Run(archive, func(t *testing.T) {
			dir := filepath.Join(fixture.Unpack(t, archive+"-4.4.0"), archive)
			log := filepath.Join(dir, "__cluster_metadata-0")
			var s kraft.State
			eachBatch(t, filepath.Join(log, "00000000000000000000-0000000000.checkpoint"), func(b []byte) error { return s.Snapshot(b, 0) })
			eachBatch(t, filepath.Join(log, "00000000000000000000.log"), s.Batch)
			if s.Next() == 0 {
				t.Fatal("the log is empty")
			}
			for _, want := range []struct {
				topic string
				n     int32
			}{{"segments", 0}, {"mixed.with_dots-and-9", 1}, {"__transaction_state", 1}, {"crashed", 0}} {
				path := filepath.Join(dir, storage.TopicPartition{Topic: want.topic, Partition: want.n}.String())
				if _, err := os.Stat(path); err != nil {
					continue // not in this archive
				}
				id := topicID(t, path)
				if name, ok := s.Topic(id); !ok || name != want.topic {
					t.Errorf("topic %x: got %q, %t, want %q", id, name, ok, want.topic)
				}
				p, ok := s.Partition(id, want.n)
				if !ok || !p.Sole(1) || p.Sole(2) {
					t.Errorf("%s-%d: got %+v, %t, want the sole replica on node 1", want.topic, want.n, p, ok)
				}
				if _, ok := s.Partition(id, 99); ok {
					t.Errorf("%s-99 is known", want.topic)
				}
			}
		})
	}
}

// message builds the value of a record.
type message []byte

func kind(n, version int) message {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{1}, uint64(n)), uint64(version))
}
func (m message) i32(v ...int32) message {
	for _, x := range v {
		m = binary.BigEndian.AppendUint32(m, uint32(x))
	}
	return m
}
func (m message) ints(v ...int32) message {
	return append(binary.AppendUvarint(m, uint64(len(v)+1)), message{}.i32(v...)...)
}
func (m message) id(id kraft.ID) message { return append(m, id[:]...) }
func (m message) str(s string) message {
	return append(binary.AppendUvarint(m, uint64(len(s)+1)), s...)
}
func (m message) tags(t ...message) message {
	m = binary.AppendUvarint(m, uint64(len(t)))
	for _, x := range t {
		m = append(m, x...)
	}
	return m
}
func tag(n int, v message) message {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)), uint64(len(v))), v...)
}

func addTopic(id kraft.ID, name string) message { return kind(2, 0).str(name).id(id).tags() }

func partition(version int, id kraft.ID, n int32, replicas ...int32) message {
	m := kind(3, version).i32(n).id(id).ints(replicas...).ints(replicas...).ints().ints().i32(replicas[0], 0, 0)
	if version >= 1 {
		m = append(m, 1)
	}
	return m.tags()
}

func change(version int, id kraft.ID, n int32, t ...message) message {
	return kind(5, version).i32(n).id(id).tags(t...)
}

// log puts each message into a batch of its own.
func log(tb testing.TB, from storage.Offset, all ...message) [][]byte {
	tb.Helper()
	var out [][]byte
	for i, m := range all {
		recs := []storage.Record{{Offset: from + storage.Offset(i), Timestamp: 1, Value: m}}
		b, err := record.Encode(nil, record.NewHeader(recs, 1), recs, record.None)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func TestChanges(t *testing.T) {
	a, b := kraft.ID{1}, kraft.ID{2}
	tests := []struct {
		name string
		log  []message
		want []int32 // replicas of partition 0 of a; nil: it is not known
		sole bool
		err  error
	}{
		{name: "a partition", log: []message{addTopic(a, "a"), partition(0, a, 0, 1)}, want: []int32{1}, sole: true},
		{name: "with directories", log: []message{addTopic(a, "a"), partition(1, a, 0, 1)}, want: []int32{1}, sole: true},
		{name: "of another node", log: []message{addTopic(a, "a"), partition(2, a, 0, 2)}, want: []int32{2}},
		{name: "two replicas", log: []message{addTopic(a, "a"), partition(2, a, 0, 1, 2)}, want: []int32{1, 2}},
		{name: "in sync alone, but replicated", log: []message{addTopic(a, "a"), partition(2, a, 0, 1, 2), change(2, a, 0, tag(0, message{}.ints(1)))}, want: []int32{1, 2}},
		{name: "being added", log: []message{addTopic(a, "a"), partition(2, a, 0, 1), change(2, a, 0, tag(4, message{}.ints(2)))}, want: []int32{1}},
		{name: "added", log: []message{addTopic(a, "a"), partition(2, a, 0, 1), change(0, a, 0, tag(2, message{}.ints(1, 2)))}, want: []int32{1, 2}},
		{
			name: "moved here", log: []message{addTopic(a, "a"), partition(2, a, 0, 2), change(1, a, 0, tag(2, message{}.ints(2, 1)), tag(3, message{}.ints(2)), tag(4, message{}.ints(1))),
				change(1, a, 0, tag(2, message{}.ints(1)), tag(3, message{}.ints()), tag(4, message{}.ints()))}, want: []int32{1}, sole: true,
		},
		{name: "null leaves it", log: []message{addTopic(a, "a"), partition(2, a, 0, 1), change(2, a, 0, tag(2, message{0}), tag(9, message{7}))}, want: []int32{1}, sole: true},
		{name: "removed", log: []message{addTopic(a, "a"), partition(0, a, 0, 1), kind(9, 0).id(a).tags()}},
		{name: "another topic", log: []message{addTopic(b, "b"), partition(0, b, 0, 1)}},
		{name: "other records", log: []message{kind(12, 0).str("x"), kind(99, 77), addTopic(a, "a"), partition(0, a, 0, 1)}, want: []int32{1}, sole: true},
		{name: "a transaction", log: []message{kind(23, 0).tags(), addTopic(a, "a"), partition(0, a, 0, 1), kind(24, 0).tags()}, want: []int32{1}, sole: true},
		{name: "an open transaction", log: []message{kind(23, 0).tags(), addTopic(a, "a"), partition(0, a, 0, 1)}},
		{name: "an aborted transaction", log: []message{addTopic(a, "a"), partition(0, a, 0, 1, 2), kind(23, 0).tags(), change(0, a, 0, tag(2, message{}.ints(1))), kind(25, 0).tags()}, want: []int32{1, 2}},
		{name: "a newer version", log: []message{addTopic(a, "a"), partition(3, a, 0, 1)}, err: storage.ErrUnsupported},
		{name: "a newer frame", log: []message{{2, 2, 0}}, err: storage.ErrUnsupported},
		{name: "no topic", log: []message{partition(0, a, 0, 1)}, err: storage.ErrCorrupt},
		{name: "a change of nothing", log: []message{addTopic(a, "a"), change(0, a, 0)}, err: storage.ErrCorrupt},
		{name: "cut short", log: []message{addTopic(a, "a")[:8]}, err: storage.ErrCorrupt},
		{name: "too long", log: []message{append(addTopic(a, "a"), 0)}, err: storage.ErrCorrupt},
		{name: "a number without an end", log: []message{{1, 2, 0x80}}, err: storage.ErrCorrupt},
		{name: "many replicas announced", log: []message{addTopic(a, "a"), append(kind(3, 0).i32(0).id(a), 0xff, 0xff, 0xff, 0x7f)}, err: storage.ErrCorrupt},
		{name: "nothing", log: []message{{}}, err: storage.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s kraft.State
			var err error
			for _, b := range log(t, 0, tt.log...) {
				if err = s.Batch(b); err != nil {
					break
				}
			}
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			p, ok := s.Partition(a, 0)
			if err == nil && (ok != (tt.want != nil) || !slices.Equal(p.Replicas, tt.want) || p.Sole(1) != tt.sole) {
				t.Errorf("got %+v, %t, want %v, sole %t", p, ok, tt.want, tt.sole)
			}
		})
	}
}

func TestSnapshotAndLog(t *testing.T) {
	a := kraft.ID{1}
	var s kraft.State
	for _, b := range log(t, 0, addTopic(a, "a"), partition(0, a, 0, 1)) {
		if err := s.Snapshot(b, 50); err != nil {
			t.Fatal(err)
		}
	}
	all := log(t, 48, partition(0, a, 0, 7), partition(0, a, 0, 7), partition(0, a, 0, 1, 2), partition(0, a, 0, 3))
	for _, b := range all[:3] {
		if err := s.Batch(b); err != nil {
			t.Fatal(err)
		}
	}
	if p, _ := s.Partition(a, 0); !slices.Equal(p.Replicas, []int32{1, 2}) || s.Next() != 51 {
		t.Errorf("got %v up to %d, want [1 2] up to 51", p.Replicas, s.Next())
	}
	if err := s.Batch(log(t, 52, partition(0, a, 0, 3))[0]); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("behind a gap: got %v", err)
	}
	all[3][len(all[3])-1]++
	if err := s.Batch(all[3]); err == nil {
		t.Error("a batch with a wrong checksum was taken")
	}
	var fresh kraft.State
	if err := fresh.Batch(log(t, 9, addTopic(a, "a"))[0]); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("a log without its start: got %v", err)
	}
}

func FuzzRecord(f *testing.F) {
	a := kraft.ID{1}
	for _, m := range []message{addTopic(a, "a"), partition(2, a, 0, 1, 2), change(2, a, 0, tag(2, message{}.ints(3)), tag(4, message{}.ints())), kind(9, 0).id(a).tags(), kind(23, 0).tags()} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var s kraft.State
		for _, b := range log(t, 0, addTopic(a, "a"), partition(0, a, 0, 1)) {
			if err := s.Batch(b); err != nil {
				t.Fatal(err)
			}
		}
		batch := log(t, 2, value)[0]
		err := s.Batch(batch)
		p, ok := s.Partition(a, 0)
		if err != nil && (!ok || !p.Sole(1)) {
			t.Fatalf("a record that was refused (%v) changed the partition: %+v, %t", err, p, ok)
		}
		if len(p.Replicas)*4 > len(value)+4 {
			t.Fatalf("%d replicas out of %d bytes", len(p.Replicas), len(value))
		}
	})
}
