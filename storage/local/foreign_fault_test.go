package local

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// foreignRun appends to a broker's log and closes. It returns the end that was acknowledged, the start that was set, and what failed first.
func foreignRun(t *testing.T, o Options) (end, start storage.Offset, err error) {
	t.Helper()
	ctx := t.Context()
	e, err := Open(ctx, o)
	if err != nil {
		return 0, 0, err
	}
	p, err := e.Partition(ctx, storage.TopicPartition{Topic: "compacted"})
	for i := 0; err == nil && i < 3; i++ {
		var a storage.Appended
		a, err = p.Append(ctx, []storage.Record{{Timestamp: 4e12 + int64(i)*1e9, Value: fmt.Appendf(nil, "new %d", i)}}, 100)
		end = max(end, a.Next)
	}
	if err == nil {
		if err = p.SetStart(ctx, 1203); err == nil {
			start = 1203
		}
	}
	e.maintainTick(ctx)
	e.checkpointTick(ctx)
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	return end, start, err
}

// TestForeignEveryFailure makes each call fail in turn: what the broker wrote is there afterwards, what was acknowledged too, and the marker only if all is well.
func TestForeignEveryFailure(t *testing.T) {
	const topic = "compacted-0"
	disk := brokerDir(t, "clean", topic)
	orig := treeOf(t, disk, "/data")
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0; ; i += step {
		f := faultfs.New(cloneDisk(disk))
		f.FailAt(i, syscall.EIO)
		end, start, err := foreignRun(t, foreignOptions(f))
		inner := f.Inner().(*memfs.FS)
		files := treeOf(t, inner, "/data")
		what := fmt.Sprintf("call %d (%v)", i, err)
		if _, marked := files[markerPath]; marked && files[markerPath] != orig[markerPath] {
			t.Errorf("%s: marker %q", what, files[markerPath])
		} else if !marked && err == nil {
			t.Errorf("%s: the marker is gone", what)
		}
		for name, b := range orig {
			if !strings.HasSuffix(name, ".log") || start > 0 && strings.Contains(name, "00000000000000000000") {
				continue
			}
			if got, there := files[name]; there && !strings.HasPrefix(got, b) || !there && start == 0 && end == 0 {
				t.Errorf("%s: %s lost something of what the broker wrote", what, name)
			}
		}
		checkForeign(t, what, inner, end, start)
		if f.Calls() <= i {
			if err != nil {
				t.Errorf("without a failure: %v", err)
			}
			break
		}
	}
}

// checkForeign reads the log as the next mount does.
func checkForeign(t *testing.T, what string, fsys *memfs.FS, end, start storage.Offset) {
	t.Helper()
	o := testOptions(fsys)
	o.ReadOnly = true
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer mustClose(t, e)
	p := mustPartition(t, e, "compacted", 0)
	s, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if s.End() < max(end, 1205) {
		t.Errorf("%s: the log ends at %d, want %d at least", what, s.End(), max(end, 1205))
	}
	if s.Start() < start {
		t.Errorf("%s: the log starts at %d, want %d at least", what, s.Start(), start)
	}
	c := s.Records(max(s.Start(), 1203))
	defer c.Close()
	for {
		r, err := c.Next(t.Context())
		if err != nil {
			if c.Offset() != s.End() {
				t.Errorf("%s: reading stopped at %d of %d: %v", what, c.Offset(), s.End(), err)
			}
			return
		}
		if r.Offset >= 1205 && string(r.Value) != fmt.Sprintf("new %d", r.Offset-1205) {
			t.Errorf("%s: record %d is %q", what, r.Offset, r.Value)
		}
	}
}

func TestForeignFullDisk(t *testing.T) {
	fsys := brokerDir(t, "clean", "codec-none-0")
	e := mustOpen(t, foreignOptions(fsys))
	p := mustPartition(t, e, "codec-none", 0)
	mustAppend(t, p, "a")
	fsys.SetCapacity(fsys.Used() + 10)
	if _, err := p.Append(t.Context(), []storage.Record{{Value: make([]byte, 1000)}}, 100); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want %v", err, syscall.ENOSPC)
	}
	fsys.SetCapacity(0)
	mustAppend(t, p, "b")
	mustClose(t, e)
	if fileText(t, fsys, markerPath) == "none" {
		t.Error("the marker is gone")
	}
	if s, err := readEnd(t, fsys, "codec-none"); err != nil || s != 249 {
		t.Errorf("got end %d, %v, want 249", s, err)
	}
}

func readEnd(t *testing.T, fsys *memfs.FS, topic string) (storage.Offset, error) {
	t.Helper()
	o := testOptions(fsys)
	o.ReadOnly = true
	e := mustOpen(t, o)
	defer mustClose(t, e)
	s, err := mustPartition(t, e, topic, 0).Snapshot(t.Context())
	if err != nil {
		return 0, err
	}
	return s.End(), nil
}
