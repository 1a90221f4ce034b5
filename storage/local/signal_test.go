package local

import (
	"context"
	"errors"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// TestCancelledCallsThatDoNotWait: every signal cancels a request, that of a child that has ended too. What does not wait is done all the same, as on a disk.
func TestCancelledCallsThatDoNotWait(t *testing.T) {
	mem := memfs.New()
	e := mustOpen(t, testOptions(mem))
	mustAppend(t, mustCreate(t, e, "orders"), "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	look := func(e *Engine) {
		t.Helper()
		for range 20 { // what is left to chance shows in one of them
			_, perr := e.Partition(ctx, storage.TopicPartition{Topic: "orders"})
			_, terr := e.Topic(ctx, "orders")
			_, aerr := e.Topics(ctx)
			_, rerr := e.Room(ctx)
			if err := errors.Join(perr, terr, aerr, rerr); err != nil {
				t.Fatal(err)
			}
		}
	}
	look(e)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := e.CreateTopic(ctx, storage.TopicSpec{Name: name, Partitions: 1}); err != nil {
			t.Errorf("create: %v", err)
		}
		if err := e.AddPartition(ctx, name, 1); err != nil {
			t.Errorf("add: %v", err)
		}
	}
	mustClose(t, e)
	o := testOptions(mem)
	o.ReadOnly = true
	e = mustOpen(t, o)
	defer mustClose(t, e)
	mustPartition(t, e, "orders", 0) // opening it is something to wait for
	look(e)
}
