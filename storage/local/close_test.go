package local

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

const markerPath = "/data/" + state.CleanMarkerFile

func fileText(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<20)
	if err != nil {
		return "none"
	}
	return string(b)
}

func TestCleanMarker(t *testing.T) {
	const theirs = `{"version":0,"brokerEpoch":77}`
	for _, c := range []struct {
		name   string
		marker string
		during func(t *testing.T, e *Engine)
		want   string
	}{
		{name: "put back", marker: theirs, want: theirs},
		{name: "put back after appends", marker: theirs, want: theirs, during: func(t *testing.T, e *Engine) {
			t.Helper()
			mustAppend(t, mustPartition(t, e, "t", 0), "x")
		}},
		{name: "put back empty", marker: "", want: ""},
		{name: "a log was not recovered", marker: "none", want: "none"},
		{name: "all logs were recovered", marker: "none", want: `{"version":0,"brokerEpoch":-1}`, during: func(t *testing.T, e *Engine) {
			t.Helper()
			mustPartition(t, e, "t", 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			e := mustOpen(t, testOptions(fsys))
			mustAppend(t, mustCreate(t, e, "t"), "a")
			mustClose(t, e)
			if got, want := fileText(t, fsys, markerPath), `{"version":0,"brokerEpoch":-1}`; got != want {
				t.Fatalf("first marker: got %s, want %s", got, want)
			}
			var err error
			if c.marker == "none" {
				err = fsys.Remove(markerPath)
			} else {
				err = vfs.WriteFile(fsys, markerPath, []byte(c.marker), 0o644, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			e = mustOpen(t, testOptions(fsys))
			if got := fileText(t, fsys, markerPath); got != "none" {
				t.Errorf("marker while open: got %s", got)
			}
			if got, want := e.Status().Clean, c.marker != "none"; got != want {
				t.Errorf("clean: got %t, want %t", got, want)
			}
			if c.during != nil {
				c.during(t, e)
			}
			mustClose(t, e)
			if got := fileText(t, fsys, markerPath); got != c.want {
				t.Errorf("marker: got %s, want %s", got, c.want)
			}
			if open := fsys.OpenFiles(); len(open) != 0 {
				t.Errorf("left open: %v", open)
			}
		})
	}
}

// TestPoisonedIsNotClean: after a failed fsync the log is recovered at the next open, whatever went well later.
func TestPoisonedIsNotClean(t *testing.T) {
	mem := memfs.New()
	disk := faultfs.New(mem)
	e := mustOpen(t, testOptions(disk))
	p := mustCreate(t, e, "t")
	mustAppend(t, p, "a")
	if err := p.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, p, "b")
	fail := true
	disk.Hook(func(op faultfs.Op, name string) error {
		if fail && op == faultfs.OpSync && strings.HasSuffix(name, ".log") {
			fail = false
			return syscall.EIO
		}
		return nil
	})
	if err := p.Sync(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: got %v, want EIO", err)
	}
	if err := p.CheckAppend(t.Context(), &storage.Record{}); !errors.Is(err, storage.ErrPoisoned) {
		t.Errorf("check: got %v, want ErrPoisoned", err)
	}
	if err := e.Close(); err == nil {
		t.Error("close: no error")
	}
	if got := fileText(t, mem, markerPath); got != "none" {
		t.Errorf("marker: got %s", got)
	}
	if got, want := fileText(t, mem, "/data/"+state.RecoveryPointFile), "0\n1\nt 0 1\n"; got != want {
		t.Errorf("recovery point: got %q, want %q", got, want)
	}
}

func TestLock(t *testing.T) {
	fsys := memfs.New()
	e := mustOpen(t, testOptions(fsys))
	mustCreate(t, e, "t")
	if _, err := Open(t.Context(), testOptions(fsys)); !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("second open: got %v, want ErrLocked", err)
	}
	o := testOptions(fsys)
	o.LockWait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled wait: got %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		next, err := Open(t.Context(), o)
		if err != nil {
			t.Errorf("open that waits: %v", err)
			return
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	})
	mustClose(t, e)
	wg.Wait()

	e = mustOpen(t, testOptions(fsys))
	p := mustPartition(t, e, "t", 0)
	mustAppend(t, p, "a")
	if err := fsys.Remove("/data/" + state.LockFile); err != nil { // as a broker does that stops
		t.Fatal(err)
	}
	e.lockTick()
	if _, err := p.Append(t.Context(), []storage.Record{{}}, 1); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("append without the lock: got %v, want ErrReadOnly", err)
	}
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: "u", Partitions: 1}); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("create without the lock: got %v, want ErrReadOnly", err)
	}
	if info := e.Info(); info.Writable || info.Reason == "" {
		t.Errorf("info: got %+v", info)
	}
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if got := fileText(t, fsys, markerPath); got != "none" {
		t.Errorf("marker: got %s", got)
	}
}

func TestCheckpointsKeepOtherLines(t *testing.T) {
	fsys := memfs.New()
	put(t, fsys, map[string]string{
		state.TopicsFile: oneTopic, "other-3/": "",
		state.RecoveryPointFile: "0\n2\nother 3 17\nlost 1 5\n",
		state.LogStartFile:      "0\n1\nother 3 9\n",
	})
	e := mustOpen(t, testOptions(fsys))
	p := mustPartition(t, e, "mine", 0)
	mustAppend(t, p, "a", "b", "c")
	if err := p.SetStart(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got, want := fileText(t, fsys, "/data/"+state.LogStartFile), "0\n2\nother 3 9\nmine 0 2\n"; got != want {
		t.Errorf("log start after SetStart: got %q, want %q", got, want)
	}
	if err := p.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.checkpointTick(t.Context())
	if got, want := fileText(t, fsys, "/data/"+state.RecoveryPointFile), "0\n3\nother 3 17\nlost 1 5\nmine 0 3\n"; got != want {
		t.Errorf("recovery points: got %q, want %q", got, want)
	}
	if err := e.DeleteTopic(t.Context(), "mine", true); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	if got, want := fileText(t, fsys, "/data/"+state.LogStartFile), "0\n1\nother 3 9\n"; got != want {
		t.Errorf("log start at the end: got %q, want %q", got, want)
	}
}

func TestMalformedCheckpointIsReported(t *testing.T) {
	fsys := memfs.New()
	put(t, fsys, map[string]string{state.TopicsFile: oneTopic, state.RecoveryPointFile: "what?\n"})
	var c collector
	o := testOptions(fsys)
	o.Report = c.add
	e := mustOpen(t, o)
	defer mustClose(t, e)
	if got := strings.Join(c.reasons(), "\n"); !strings.Contains(got, state.RecoveryPointFile) {
		t.Errorf("reports: got %q", got)
	}
}

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig(map[string]string{
		"segment.bytes": "14", "segment.ms": "1", "segment.index.bytes": "4", "index.interval.bytes": "0", "max.message.bytes": "0",
	})
	if want := (storage.TopicConfig{SegmentBytes: 14, SegmentMs: 1, SegmentIndexBytes: 4}); err != nil || c != want {
		t.Errorf("smallest: got %+v, %v, want %+v", c, err, want)
	}
	if c, err := ParseConfig(nil); err != nil || c != storage.DefaultTopicConfig() {
		t.Errorf("defaults: got %+v, %v", c, err)
	}
	for name, bad := range map[string]string{
		"segment.bytes": "13", "segment.ms": "0", "segment.index.bytes": "3", "index.interval.bytes": "-1", "max.message.bytes": "2147483648", "x": "1",
	} {
		if _, err := ParseConfig(map[string]string{name: bad}); !errors.Is(err, storage.ErrInvalidConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v, want ErrInvalidConfig that names it", name, bad, err)
		}
	}
}
