package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// put makes files and, for names that end in a slash, directories below /data.
func put(t *testing.T, fsys vfs.FS, files map[string]string) {
	t.Helper()
	if err := vfs.MkdirAll(fsys, "/data", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join("/data", name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := vfs.MkdirAll(fsys, dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir != path {
			if err := vfs.WriteFile(fsys, path, []byte(content), 0o644, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const oneTopic = `{"version":1,"topics":{"mine":{"id":"4WdnnuLgQ7OG9Bd2zp8EWg","partitions":1,"created":"2026-08-30T00:00:00Z"}}}`

func TestOpenClassifies(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    map[string]string
		readOnly bool
		writable bool
		topics   string
		err      error
		why      string
	}{
		{name: "missing", writable: true},
		{name: "missing, read-only", readOnly: true, err: fs.ErrNotExist},
		{name: "empty", files: map[string]string{}, writable: true},
		{name: "empty, read-only", files: map[string]string{}, readOnly: true},
		{name: "a new file system", files: map[string]string{"lost+found/": ""}, writable: true},
		{name: "left by a crash", files: map[string]string{".lock": "", state.TopicsFile + ".tmp": "{"}, writable: true},
		{name: "ours", files: map[string]string{state.TopicsFile: oneTopic, "notes.txt": "x"}, writable: true, topics: "mine"},
		{name: "ours and a broker's", files: map[string]string{state.TopicsFile: oneTopic, "meta.properties": "version=1\n"}},
		{name: "ours with another's topic", files: map[string]string{state.TopicsFile: oneTopic, "other-0/": ""}, writable: true, topics: "mine other!"},
		{name: "a broker's", files: map[string]string{"meta.properties": "version=1\n", "a-0/": "", "a-2/": "", "x.txt": ""}, topics: "a!"},
		{name: "a copy", files: map[string]string{"a-0/": "", "b-b-1/": "", "holiday.jpg": "x"}, topics: "a! b-b!"},
		{name: "on its way out", files: map[string]string{"a-0." + strings.Repeat("0", 32) + "-delete/": ""}},
		{name: "somebody's files", files: map[string]string{"holiday.jpg": "x", "src/": ""}, err: storage.ErrNotLogDirectory},
		{name: "names that end in a number", files: map[string]string{"dbus-1/system.conf": "x", "rc-2/": "", "hosts": ""}, topics: "dbus! rc!"},
		{name: "no logs in them", files: map[string]string{"dbus-1/system.conf": "x", "gtk-3/settings.ini": "x", "hosts": ""}, err: storage.ErrNotLogDirectory},
		{name: "no logs in them, and nothing else", files: map[string]string{"dbus-1/system.conf": "x"}, err: storage.ErrNotLogDirectory},
		{name: "one with a log", files: map[string]string{"a-0/00000000000000000000.log": "", "dbus-1/system.conf": "x"}, topics: "a! dbus!"},
		{name: "one with an id", files: map[string]string{"a-0/partition.metadata": ""}, topics: "a!"},
		{name: "a partition", files: map[string]string{"00000000000000000000.log": "", "leader-epoch-checkpoint": ""}, err: storage.ErrNotLogDirectory, why: "give the one that it lies in: /"},
		{name: "a catalogue of the future", files: map[string]string{state.TopicsFile: `{"version":2}`}, err: storage.ErrUnsupported},
		{name: "half a catalogue", files: map[string]string{state.TopicsFile: oneTopic[:40]}, err: storage.ErrCorrupt},
		{name: "a catalogue that leads out", files: map[string]string{state.TopicsFile: `{"version":1,"deleting":[{"dir":"../etc-0","as":"x"}]}`}, err: storage.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			if c.files != nil {
				put(t, fsys, c.files)
			}
			o := testOptions(fsys)
			o.ReadOnly = c.readOnly
			e, err := Open(t.Context(), o)
			if !errors.Is(err, c.err) {
				t.Fatalf("open: got %v, want %v", err, c.err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.why) {
					t.Errorf("open: got %v, want %q in it", err, c.why)
				}
				return
			}
			defer mustClose(t, e)
			if info := e.Info(); info.Writable != c.writable || (info.Reason == "") != c.writable || info.Data != "/data" {
				t.Errorf("info: got %+v, want writable %t", info, c.writable)
			}
			all, err := e.Topics(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, info := range all {
				name := info.Name
				if !info.Writable {
					name += "!"
				}
				if info.Writable != (info.Reason == "") {
					t.Errorf("topic %s: writable %t for the reason %q", info.Name, info.Writable, info.Reason)
				}
				got = append(got, name)
			}
			if got := strings.Join(got, " "); got != c.topics {
				t.Errorf("topics: got %q, want %q", got, c.topics)
			}
			err = e.CreateTopic(t.Context(), storage.TopicSpec{Name: "new", Partitions: 1})
			if want := map[bool]error{false: storage.ErrReadOnly}[c.writable]; !errors.Is(err, want) {
				t.Errorf("create: got %v, want %v", err, want)
			}
		})
	}
}

func TestOpenFile(t *testing.T) {
	fsys := memfs.New()
	if err := vfs.WriteFile(fsys, "/data", []byte("x"), 0o644, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), testOptions(fsys)); !errors.Is(err, storage.ErrNotLogDirectory) {
		t.Errorf("open of a file: got %v", err)
	}
}

func TestForeignTopicIsNotChanged(t *testing.T) {
	fsys := memfs.New()
	put(t, fsys, map[string]string{state.TopicsFile: oneTopic, "other-0/": "", "mine-1/": ""})
	e := mustOpen(t, testOptions(fsys))
	defer mustClose(t, e)
	ctx := t.Context()
	for what, err := range map[string]error{
		"delete":                    e.DeleteTopic(ctx, "other", true),
		"add":                       e.AddPartition(ctx, "other", 1),
		"delete with a strange one": e.DeleteTopic(ctx, "mine", true),
		"append":                    mustPartition(t, e, "other", 0).Writable(context.Background()),
	} {
		if !errors.Is(err, storage.ErrReadOnly) {
			t.Errorf("%s: got %v, want ErrReadOnly", what, err)
		}
	}
	if err := e.AddPartition(ctx, "mine", 1); !errors.Is(err, storage.ErrTopicExists) {
		t.Errorf("add where a directory is: got %v, want ErrTopicExists", err)
	}
	if err := e.CreateTopic(ctx, storage.TopicSpec{Name: "other", Partitions: 1}); !errors.Is(err, storage.ErrTopicExists) {
		t.Errorf("create where a directory is: got %v, want ErrTopicExists", err)
	}
}

// TestReadOnlyWritesNothing reads a broker's directory whole through a disk that refuses every change.
func TestReadOnlyWritesNothing(t *testing.T) {
	disk := faultfs.New(vfs.OS())
	harmless := []faultfs.Op{faultfs.OpOpen, faultfs.OpReadDir, faultfs.OpStat, faultfs.OpUsage, faultfs.OpRead, faultfs.OpFstat}
	disk.Hook(func(op faultfs.Op, name string) error {
		if !slices.Contains(harmless, op) {
			t.Errorf("%v %s", op, name)
			return os.ErrPermission
		}
		return nil
	})
	o := testOptions(disk)
	o.Dir, o.noLoops = filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean"), false
	before := tree(t, o.Dir)
	e := mustOpen(t, o)
	topics, err := e.Topics(t.Context())
	if err != nil || len(topics) == 0 {
		t.Fatalf("topics: got %d, %v", len(topics), err)
	}
	for _, info := range topics {
		if info.ID == "" && info.Name != "__cluster_metadata" || info.Writable {
			t.Errorf("topic %s: got %+v", info.Name, info)
		}
		for _, n := range info.Partitions {
			if _, err := mustPartition(t, e, info.Name, n).Snapshot(t.Context()); err != nil {
				t.Errorf("%s-%d: %v", info.Name, n, err)
			}
		}
	}
	if st := e.Status(); !st.Clean || st.Opened != st.Partitions {
		t.Errorf("status: got %+v", st)
	}
	mustClose(t, e)
	if after := tree(t, o.Dir); after != before {
		t.Errorf("the directory has changed: got\n%s\nwant\n%s", after, before)
	}
}

// tree lists all files with size and time.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out.WriteString(path + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestRefresh: an engine that only reads sees topics come and go.
func TestRefresh(t *testing.T) {
	fsys := memfs.New()
	w := mustOpen(t, testOptions(fsys))
	o := testOptions(fsys)
	o.ReadOnly = true
	r := mustOpen(t, o)
	defer mustClose(t, r)
	mustAppend(t, mustCreate(t, w, "t"), "a", "b")
	p := mustPartition(t, r, "t", 0)
	if s, err := p.Snapshot(t.Context()); err != nil || s.End() != 2 || s.Final() {
		t.Fatalf("snapshot: %v", err)
	}
	if err := w.DeleteTopic(t.Context(), "t", true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Topic(t.Context(), "t"); !errors.Is(err, storage.ErrTopicNotFound) {
		t.Errorf("after deletion: got %v", err)
	}
	mustAppend(t, mustCreate(t, w, "t"), "c")
	if s, err := mustPartition(t, r, "t", 0).Snapshot(t.Context()); err != nil || s.End() != 1 {
		t.Errorf("made anew: got %v, %v", s, err)
	}
	mustClose(t, w)
	if there, err := vfs.Exists(fsys, "/data/"+state.LockFile); there || err != nil {
		t.Errorf("the lock is still there: %v", err)
	}
}

func TestRoom(t *testing.T) {
	fsys := memfs.New()
	e := mustOpen(t, testOptions(fsys))
	u, err := fsys.Usage("/data")
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Room(t.Context())
	if want := (storage.Room{Total: u.Total, Free: u.Free, Avail: u.Avail}); err != nil || got != want || got.Total <= 0 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	mustClose(t, e)
	if _, err := e.Room(t.Context()); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("closed: got %v", err)
	}
}
