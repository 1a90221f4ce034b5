package local

import (
	"context"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// A checkpoint that is written while a start is being moved does not undo it.
func TestCheckpointDoesNotUndoStart(t *testing.T) {
	fsys := memfs.New()
	e := mustOpen(t, testOptions(fsys))
	p := mustCreate(t, e, "t")
	for range 9 {
		mustAppend(t, p, "x")
	}
	part, err := e.find(storage.TopicPartition{Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}
	part.opened().OnStart(func(o storage.Offset) error {
		if err := e.saveStart(part, o); err != nil {
			return err
		}
		return e.saveCheckpoints()
	})
	if err := p.SetStart(context.Background(), 5); err != nil {
		t.Fatal(err)
	}
	if _, start := e.points.of(part.tp); start != 5 {
		t.Errorf("the checkpoint says %d, want 5", start)
	}
	mustClose(t, e)
	e = mustOpen(t, testOptions(fsys))
	s, err := mustPartition(t, e, "t", 0).Snapshot(context.Background())
	if err != nil || s.Start() != 5 || s.End() != 9 {
		t.Errorf("%v: %d to %d", err, s.Start(), s.End())
	}
	mustClose(t, e)
}
