package local

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// TestDeletedTopicIsNotFound: what somebody still has of a deleted topic is not found, and who waits for it is woken.
func TestDeletedTopicIsNotFound(t *testing.T) {
	e := mustOpen(t, testOptions(memfs.New()))
	defer mustClose(t, e)
	p := mustCreate(t, e, "orders")
	wake := make(chan struct{}, 1)
	defer p.Watch(wake)()
	if err := e.DeleteTopic(t.Context(), "orders", false); err != nil {
		t.Fatal(err)
	}
	<-wake
	_, serr := p.Snapshot(t.Context())
	_, aerr := p.Append(t.Context(), []storage.Record{{Value: []byte("x")}}, 1000)
	for what, err := range map[string]error{"snapshot": serr, "append": aerr, "sync": p.Sync(t.Context()), "start": p.SetStart(t.Context(), 0)} {
		if !errors.Is(err, storage.ErrPartitionNotFound) && !errors.Is(err, storage.ErrTopicNotFound) {
			t.Errorf("%s: %v, want not found", what, err)
		}
	}
}

// TestVanishedLogIsNoticed: who waits for a log that another program removes is woken, although nobody looks at the directory.
func TestVanishedLogIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memfs.New()
		mem.SetClock(func() int64 { return time.Now().UnixNano() })
		w := mustOpen(t, testOptions(mem))
		mustAppend(t, mustCreate(t, w, "orders"), "a")
		mustCreate(t, w, "others")
		mustClose(t, w)

		o := testOptions(mem)
		o.ReadOnly, o.noLoops = true, false
		e := mustOpen(t, o)
		defer mustClose(t, e)
		p := mustPartition(t, e, "orders", 0)
		time.Sleep(time.Minute)
		wake := make(chan struct{}, 1)
		defer p.Watch(wake)()
		if err := w.removeTree("/data/orders-0"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-wake:
		case <-time.After(time.Minute):
			t.Error("not woken")
		}
		if _, err := p.Snapshot(t.Context()); !errors.Is(err, storage.ErrPartitionNotFound) {
			t.Errorf("snapshot: %v, want %v", err, storage.ErrPartitionNotFound)
		}
	})
}
