package storagetest_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
)

func TestMemoryKnobs(t *testing.T) {
	ctx := context.Background()
	m := storagetest.NewMemory()
	if err := m.CreateTopic(ctx, storage.TopicSpec{Name: "t", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	tp := storage.TopicPartition{Topic: "t"}
	p, err := m.Partition(ctx, tp)
	if err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	m.Fail("append", mine)
	records := []storage.Record{{Value: []byte("a")}, {Value: []byte("b")}}
	if _, err := p.Append(ctx, records, 1<<14); !errors.Is(err, mine) {
		t.Fatalf("append: got %v, want %v", err, mine)
	}
	if got, err := p.Append(ctx, records, 1); err != nil || got.Next != 2 {
		t.Fatalf("append: got %v, %v", got, err)
	}
	m.Gap(tp, 3)
	m.Corrupt(tp, 0)
	s, err := p.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.End(), storage.Offset(5); got != want {
		t.Errorf("end: got %d, want %d", got, want)
	}
	c := s.Records(0)
	if _, err := c.Next(ctx); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("damaged batch: got %v, want ErrCorrupt", err)
	}
	r, err := c.Next(ctx)
	if err != nil || string(r.Value) != "b" {
		t.Fatalf("behind it: got %v, %v", r, err)
	}
	kept := r.Value
	if _, err := c.Next(ctx); !errors.Is(err, io.EOF) || c.Offset() != 5 {
		t.Errorf("end: got %v at %d, want EOF at 5", err, c.Offset())
	}
	if string(kept) == "b" {
		t.Error("a kept slice was not overwritten")
	}
	m.DropBelowStart(true)
	if err := p.SetStart(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Records(1).Next(ctx); !errors.Is(err, storage.ErrOffsetGone) {
		t.Errorf("dropped: got %v, want ErrOffsetGone", err)
	}
	release := m.Hold("extent")
	held, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Extent(held, &storage.Measure{PerRecord: 1}, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("held: got %v", err)
	}
	release()
	m.ReadOnly("a test")
	if err := p.Writable(context.Background()); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("read-only: got %v", err)
	}
}

func TestMemoryConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Engine { return storagetest.NewMemory() }, storagetest.Options{Batches: true})
}
