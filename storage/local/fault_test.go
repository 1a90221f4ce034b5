package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// promise is what has been acknowledged in a run, and what may or may not have happened.
type promise struct {
	there, maybe map[string]int32 // topics and their least number of partitions
	synced       map[string]int64 // records of t that must be there
	start        storage.Offset   // of t
	appended     map[string]int64 // records of t that may be there
}

// scenario makes, fills, shortens and deletes topics and closes the engine. It goes on after failures, as users do.
func scenario(o Options, done *promise) error {
	ctx := context.Background()
	e, err := Open(ctx, o)
	if err != nil {
		return err
	}
	ok := func(name string, err error) bool {
		if err == nil {
			done.there[name] = max(done.there[name], 1)
		} else if _, known := done.there[name]; !known {
			done.maybe[name] = 1
		}
		return err == nil
	}
	var first error
	keep := func(err error) error {
		if first == nil {
			first = err
		}
		return err
	}
	spec := func(name string, n int32) storage.TopicSpec {
		return storage.TopicSpec{Name: name, Partitions: n, Config: map[string]string{"segment.bytes": "200"}}
	}
	ok("t", keep(e.CreateTopic(ctx, spec("t", 1))))
	ok("u", keep(e.CreateTopic(ctx, spec("u", 2))))
	p, err := e.Partition(ctx, storage.TopicPartition{Topic: "t"})
	if keep(err) == nil {
		for i := range 8 {
			a, err := p.Append(ctx, []storage.Record{{Timestamp: 1, Value: fmt.Appendf(nil, "value %d", i)}}, 100)
			if keep(err) == nil {
				done.appended["t"] = int64(a.Next)
			}
			if i == 4 && keep(p.Sync(ctx)) == nil {
				done.synced["t"] = done.appended["t"]
			}
		}
		if keep(p.SetStart(ctx, 4)) == nil {
			done.start = 4
		}
	}
	e.maintainTick(ctx)
	e.checkpointTick(ctx)
	if keep(e.AddPartition(ctx, "t", 1)) == nil {
		done.there["t"] = 2
	}
	if _, made := done.there["u"]; made {
		delete(done.there, "u")
		if err := keep(e.DeleteTopic(ctx, "u", false)); err != nil && e.refusal() == nil && e.doubt == nil {
			done.there["u"] = 2 // a refused deletion leaves the topic
		} else if err != nil {
			done.maybe["u"] = 1
		}
	}
	err = e.Close()
	if keep(err) == nil {
		done.synced["t"] = done.appended["t"]
	}
	return first
}

// verify opens what is left and looks for everything that was promised.
func verify(t *testing.T, what string, fsys vfs.FS, done *promise) {
	t.Helper()
	ctx := t.Context()
	e, err := Open(ctx, testOptions(fsys))
	if err != nil {
		t.Errorf("%s: open: %v", what, err)
		return
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Errorf("%s: close: %v", what, err)
		}
	}()
	all, err := e.Topics(ctx)
	if err != nil {
		t.Errorf("%s: topics: %v", what, err)
	}
	seen := map[string]int32{}
	for _, info := range all {
		seen[info.Name] = int32(len(info.Partitions))
		_, maybe := done.maybe[info.Name]
		if _, there := done.there[info.Name]; !there && !maybe || !info.Writable {
			t.Errorf("%s: topic %s, writable %t, should not be there", what, info.Name, info.Writable)
		}
		for _, n := range info.Partitions {
			p, err := e.Partition(ctx, storage.TopicPartition{Topic: info.Name, Partition: n})
			if err == nil {
				err = p.Writable(context.Background())
			}
			if err != nil {
				t.Errorf("%s: partition %s-%d: %v", what, info.Name, n, err)
				return
			}
		}
	}
	for name, n := range done.there {
		if seen[name] < n {
			t.Errorf("%s: topic %s: got %d partitions, want at least %d", what, name, seen[name], n)
		}
	}
	if _, there := seen["t"]; !there {
		return
	}
	s, err := mustPartition(t, e, "t", 0).Snapshot(ctx)
	if err != nil {
		t.Errorf("%s: snapshot: %v", what, err)
		return
	}
	if int64(s.End()) < done.synced["t"] || s.Start() < done.start || s.Start() > 4 {
		t.Errorf("%s: got %d to %d, want %d to at least %d", what, s.Start(), s.End(), done.start, done.synced["t"])
	}
	c := s.Records(s.Start())
	defer c.Close()
	for o := s.Start(); o < s.End(); o++ {
		r, err := c.Next(ctx)
		if err != nil || r.Offset != o {
			t.Errorf("%s: record %d of %d to %d: got %v, %v", what, o, s.Start(), s.End(), r, err)
			return
		}
	}
	entries, err := fsys.ReadDir("/data")
	if err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, en := range entries {
		names[en.Name] = true
	}
	if _, there := seen["u"]; !there && (names["u-0"] || names["u-1"] || slices.ContainsFunc(entries, func(en vfs.DirEntry) bool { return len(en.Name) > 40 })) {
		t.Errorf("%s: directories of a deleted topic are left: %v", what, names)
	}
}

// TestFaults fails each call of the file system once, then opens what is left: as it is, and after a power failure.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		arm  func(f *faultfs.FS, i int)
	}{
		{"one call", func(f *faultfs.FS, i int) { f.FailAt(i, syscall.EIO) }},
		{"all calls from", func(f *faultfs.FS, i int) { f.FailFrom(i, syscall.EIO) }},
		{"no room", func(f *faultfs.FS, i int) { f.FailAt(i, syscall.ENOSPC) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			step := 1
			if testing.Short() {
				step = 7
			}
			for i := 0; !t.Failed(); i += step {
				mem := memfs.New()
				disk := faultfs.New(mem)
				c.arm(disk, i)
				done := &promise{there: map[string]int32{}, maybe: map[string]int32{}, synced: map[string]int64{}, appended: map[string]int64{}}
				err := scenario(testOptions(disk), done)
				if err != nil && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, storage.ErrTopicNotFound) &&
					!errors.Is(err, storage.ErrPoisoned) && !errors.Is(err, storage.ErrReadOnly) {
					t.Errorf("call %d: %v", i, err)
				}
				random := rand.New(rand.NewSource(int64(i)))
				what := fmt.Sprintf("call %d (%v)", i, err)
				verify(t, what+", power failure", mem.Crash(random, memfs.CrashOptions{}), done)
				verify(t, what+", half a power failure", mem.Crash(random, memfs.CrashOptions{Unsynced: 0.5}), done)
				verify(t, what+", process failure", mem.Crash(random, memfs.CrashOptions{Unsynced: 1}), done)
				if i >= disk.Calls() {
					return
				}
			}
		})
	}
}
