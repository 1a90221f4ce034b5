package local

import (
	"context"
	"errors"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// collector gathers reports.
type collector struct {
	mu  sync.Mutex
	all []storage.Report
}

func (c *collector) add(r storage.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
}

func (c *collector) reasons() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, r := range c.all {
		out = append(out, r.Path+": "+r.Reason)
	}
	return out
}

// testOptions open /data with the background loops off.
func testOptions(fsys vfs.FS) Options {
	return Options{FS: fsys, Dir: "/data", Create: true, MaxFiles: 8, Now: time.Now, Rand: rand.New(rand.NewSource(1)), noLoops: true}
}

func mustOpen(t *testing.T, o Options) *Engine {
	t.Helper()
	e, err := Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return e
}

func mustClose(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func mustCreate(t *testing.T, e *Engine, name string) storage.Partition {
	t.Helper()
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: name, Partitions: 1}); err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return mustPartition(t, e, name, 0)
}

func mustPartition(t *testing.T, e *Engine, name string, n int32) storage.Partition {
	t.Helper()
	p, err := e.Partition(t.Context(), storage.TopicPartition{Topic: name, Partition: n})
	if err != nil {
		t.Fatalf("partition %s-%d: %v", name, n, err)
	}
	return p
}

func mustAppend(t *testing.T, p storage.Partition, values ...string) {
	t.Helper()
	var rs []storage.Record
	for _, v := range values {
		rs = append(rs, storage.Record{Timestamp: 1, Value: []byte(v)})
	}
	if _, err := p.Append(t.Context(), rs, 1<<14); err != nil {
		t.Fatalf("append: %v", err)
	}
}

// conformance runs the suite on engines that newFS makes the disks of.
func conformance(t *testing.T, newOptions func(t *testing.T) Options, crash bool) {
	t.Helper()
	var mu sync.Mutex
	options := map[storage.Engine]Options{}
	open := func(t *testing.T, o Options) storage.Engine {
		t.Helper()
		e := mustOpen(t, o)
		mu.Lock()
		defer mu.Unlock()
		options[e] = o
		return e
	}
	of := func(e storage.Engine) Options {
		mu.Lock()
		defer mu.Unlock()
		return options[e]
	}
	o := storagetest.Options{
		Batches: true,
		Files:   true,
		Reopen: func(t *testing.T, e storage.Engine) storage.Engine {
			t.Helper()
			if err := e.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			return open(t, of(e))
		},
	}
	if crash {
		o.Crash = func(t *testing.T, e storage.Engine, random *rand.Rand) storage.Engine {
			t.Helper()
			o := of(e)
			o.FS = o.FS.(*memfs.FS).Crash(random, memfs.CrashOptions{Unsynced: random.Float64()})
			return open(t, o)
		}
	}
	storagetest.Run(t, func(t *testing.T) storage.Engine { t.Helper(); return open(t, newOptions(t)) }, o)
}

func TestConformanceMemory(t *testing.T) {
	conformance(t, func(*testing.T) Options { return testOptions(memfs.New()) }, true)
}

func TestConformanceDisk(t *testing.T) {
	conformance(t, func(t *testing.T) Options {
		t.Helper()
		o := testOptions(vfs.OS())
		o.Dir, o.noLoops = t.TempDir()+"/data", false
		return o
	}, false)
}

// A mount has a directory of its own of that name: a topic would be hidden by it.
func TestNoTopicHasTheNameOfTheControlDirectory(t *testing.T) {
	fsys := memfs.New()
	e := mustOpen(t, testOptions(fsys))
	defer mustClose(t, e)
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: storage.ControlName, Partitions: 1}); !errors.Is(err, storage.ErrInvalidName) {
		t.Errorf("got %v", err)
	}
}
