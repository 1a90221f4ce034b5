package storagetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
)

func (t *test) topics() {
	ctx, e := t.Context(), t.start()
	if got, err := e.Topics(ctx); err != nil || len(got) != 0 {
		t.Fatalf("topics of an empty engine: got %v, %v", got, err)
	}
	if info := e.Info(); !info.Writable || info.Reason != "" {
		t.Errorf("info: got %+v, want a writable engine", info)
	}
	config := map[string]string{"segment.bytes": "1000000"}
	for _, name := range []string{"b", "a", "A.b_c-9"} {
		if err := e.CreateTopic(ctx, storage.TopicSpec{Name: name, Partitions: 2, Config: config}); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
	}
	all, err := e.Topics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ids := map[string]bool{}
	for _, info := range all {
		names = append(names, info.Name)
		ids[info.ID] = true
		if len(info.ID) != 22 || !info.Writable || info.Reason != "" || info.Created.IsZero() {
			t.Errorf("info of %s: got %+v", info.Name, info)
		}
		if got := info.Partitions; !slices.Equal(got, []int32{0, 1}) {
			t.Errorf("partitions of %s: got %v", info.Name, got)
		}
		if got := info.Config; len(got) != 1 || got["segment.bytes"] != "1000000" {
			t.Errorf("config of %s: got %v", info.Name, got)
		}
	}
	if got, want := strings.Join(names, " "), "A.b_c-9 a b"; got != want {
		t.Errorf("names: got %q, want %q", got, want)
	}
	if len(ids) != 3 {
		t.Errorf("ids are not distinct: %v", ids)
	}
	if err := e.AddPartition(ctx, "a", 2); err != nil {
		t.Fatalf("add partition: %v", err)
	}
	one, err := e.Topic(ctx, "a")
	if err != nil || !slices.Equal(one.Partitions, []int32{0, 1, 2}) {
		t.Fatalf("topic: got %+v, %v", one, err)
	}
	for n := range int32(3) {
		p := partition(ctx, t, e, "a", n)
		if err := p.Writable(ctx); err != nil {
			t.Errorf("partition %d: %v", n, err)
		}
		snap := snapshot(ctx, t, p)
		if snap.Start() != 0 || snap.End() != 0 || snap.Final() || snap.Modified() <= 0 {
			t.Errorf("partition %d: got start %d, end %d, final %t, modified %d", n, snap.Start(), snap.End(), snap.Final(), snap.Modified())
		}
	}
	if st := e.Status(); st.Topics != 3 || st.Partitions != 7 {
		t.Errorf("status: got %d topics, %d partitions, want 3, 7", st.Topics, st.Partitions)
	}
}

func (t *test) topicErrors() {
	ctx, e := t.Context(), t.start()
	create(ctx, t, e, "there", nil)
	long := strings.Repeat("x", 249)
	if err := e.CreateTopic(ctx, storage.TopicSpec{Name: long, Partitions: 1}); err != nil {
		t.Errorf("a name of 249 characters: %v", err)
	}
	for _, c := range []struct {
		name string
		spec storage.TopicSpec
		want error
	}{
		{"exists", storage.TopicSpec{Name: "there", Partitions: 1}, storage.ErrTopicExists},
		{"empty", storage.TopicSpec{Partitions: 1}, storage.ErrInvalidName},
		{"dot", storage.TopicSpec{Name: ".", Partitions: 1}, storage.ErrInvalidName},
		{"dots", storage.TopicSpec{Name: "..", Partitions: 1}, storage.ErrInvalidName},
		{"slash", storage.TopicSpec{Name: "a/b", Partitions: 1}, storage.ErrInvalidName},
		{"blank", storage.TopicSpec{Name: "a b", Partitions: 1}, storage.ErrInvalidName},
		{"umlaut", storage.TopicSpec{Name: "ä", Partitions: 1}, storage.ErrInvalidName},
		{"long", storage.TopicSpec{Name: long + "x", Partitions: 1}, storage.ErrInvalidName},
		{"no partition", storage.TopicSpec{Name: "n"}, storage.ErrInvalidName},
		{"unknown setting", storage.TopicSpec{Name: "n", Partitions: 1, Config: map[string]string{"segment.byte": "1"}}, storage.ErrInvalidConfig},
		{"bad setting", storage.TopicSpec{Name: "n", Partitions: 1, Config: map[string]string{"segment.bytes": "1k"}}, storage.ErrInvalidConfig},
		{"setting out of range", storage.TopicSpec{Name: "n", Partitions: 1, Config: map[string]string{"segment.bytes": "13"}}, storage.ErrInvalidConfig},
	} {
		wantErr(t, c.name, e.CreateTopic(ctx, c.spec), c.want)
	}
	if _, err := e.Topic(ctx, "n"); !errors.Is(err, storage.ErrTopicNotFound) {
		t.Errorf("a refused topic: got %v, want ErrTopicNotFound", err)
	}
	wantErr(t, "add to no topic", e.AddPartition(ctx, "no", 0), storage.ErrTopicNotFound)
	wantErr(t, "add what is there", e.AddPartition(ctx, "there", 0), storage.ErrTopicExists)
	wantErr(t, "add with a hole", e.AddPartition(ctx, "there", 2), storage.ErrInvalidName)
	wantErr(t, "add a negative number", e.AddPartition(ctx, "there", -1), storage.ErrInvalidName)
	_, err := e.Partition(ctx, storage.TopicPartition{Topic: "no"})
	wantErr(t, "partition of no topic", err, storage.ErrTopicNotFound)
	for _, n := range []int32{1, -1} {
		_, err = e.Partition(ctx, storage.TopicPartition{Topic: "there", Partition: n})
		wantErr(t, "no such partition", err, storage.ErrPartitionNotFound)
	}
	wantErr(t, "delete no topic", e.DeleteTopic(ctx, "no", true), storage.ErrTopicNotFound)
}

func (t *test) deleteTopic() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", nil)
	add(ctx, t, p, 1000, value(1, "a"), value(2, "b"))
	wantErr(t, "delete with records", e.DeleteTopic(ctx, "t", false), storage.ErrNotEmpty)
	if got := len(read(ctx, t, snapshot(ctx, t, p), 0)); got != 2 {
		t.Fatalf("after a refused deletion: got %d records, want 2", got)
	}
	old, err := e.Topic(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetStart(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if err := e.DeleteTopic(ctx, "t", false); err != nil {
		t.Fatalf("delete without records: %v", err)
	}
	if _, err := e.Topic(ctx, "t"); !errors.Is(err, storage.ErrTopicNotFound) {
		t.Errorf("deleted topic: got %v, want ErrTopicNotFound", err)
	}
	if _, err := p.Append(ctx, []storage.Record{value(1, "x")}, 1000); err == nil {
		t.Error("append to a deleted topic: no error")
	}
	p = create(ctx, t, e, "t", nil)
	if info, err := e.Topic(ctx, "t"); err != nil || info.ID == old.ID {
		t.Errorf("a topic made anew: got id %s, %v, want another one than before", info.ID, err)
	}
	if snap := snapshot(ctx, t, p); snap.Start() != 0 || snap.End() != 0 {
		t.Errorf("a topic made anew: got %d to %d, want it empty", snap.Start(), snap.End())
	}
	add(ctx, t, p, 1000, value(3, "c"))
	if err := e.DeleteTopic(ctx, "t", true); err != nil {
		t.Errorf("forced deletion: %v", err)
	}
	if got, err := e.Topics(ctx); err != nil || len(got) != 0 {
		t.Errorf("topics: got %v, %v, want none", got, err)
	}
}
