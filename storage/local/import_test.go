package local

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// copyOf is a broker's directory without what makes it one.
func copyOf(t *testing.T) *memfs.FS {
	t.Helper()
	fsys := brokerDir(t, "clean", "transactions-0", "mixed.with_dots-and-9-0", "mixed.with_dots-and-9-1", "codec-none-0", "__transaction_state-0")
	remove(t, fsys, "/data/__cluster_metadata-0")
	remove(t, fsys, "/data/"+state.MetaPropertiesFile)
	syncTree(t, fsys, "/data")
	return fsys
}

func TestImport(t *testing.T) {
	const first = "/data/codec-none-0/"
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, fsys vfs.FS)
		topics  []string
		want    []string
		err     error
		why     string
	}{
		{name: "one", topics: []string{"codec-none"}, want: []string{"codec-none"}},
		{name: "all", want: []string{"codec-none", "mixed.with_dots-and-9", "transactions"}},
		{name: "not closed", prepare: func(t *testing.T, fsys vfs.FS) { t.Helper(); remove(t, fsys, markerPath) }, topics: []string{"codec-none"}, want: []string{"codec-none"}},
		{name: "without an id", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			remove(t, fsys, "/data/mixed.with_dots-and-9-1/partition.metadata")
			remove(t, fsys, first+"partition.metadata")
		}, topics: []string{"codec-none", "mixed.with_dots-and-9"}, want: []string{"codec-none", "mixed.with_dots-and-9"}},
		{name: "no such topic", topics: []string{"codec-none", "nosuch"}, err: storage.ErrTopicNotFound, why: "nosuch"},
		{name: "internal", topics: []string{"__transaction_state"}, err: storage.ErrNotPermitted},
		{name: "a hole", prepare: func(t *testing.T, fsys vfs.FS) { t.Helper(); remove(t, fsys, "/data/mixed.with_dots-and-9-0") }, err: storage.ErrNotPermitted, why: "partition 0 is missing"},
		{name: "different ids", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			writeBytes(t, fsys, "/data/mixed.with_dots-and-9-1/partition.metadata", fileText(t, fsys, first+"partition.metadata"))
		}, err: storage.ErrCorrupt, why: "topic id"},
		{name: "an id that cannot be read", prepare: func(t *testing.T, fsys vfs.FS) { t.Helper(); writeBytes(t, fsys, first+"partition.metadata", "?") }, err: storage.ErrCorrupt},
		{name: "torn", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, first+"00000000000000000000.log", func(s string) string { return s[:len(s)-1] })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "damaged", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, first+"00000000000000000000.log", func(s string) string { return s[:90] + "\xfe" + s[91:] })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "a broker's", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			writeBytes(t, fsys, "/data/meta.properties", "node.id=1\n")
		}, err: storage.ErrReadOnly, why: "broker"},
		{name: "locked", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			if _, err := fsys.Lock("/data/.lock", 0o644); err != nil {
				t.Fatal(err)
			}
		}, err: storage.ErrLocked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := copyOf(t)
			if tt.prepare != nil {
				tt.prepare(t, fsys)
			}
			before := treeOf(t, fsys, "/data")
			got, err := Import(t.Context(), testOptions(fsys), tt.topics...)
			after := treeOf(t, fsys, "/data")
			if !errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Fatalf("got %v, want %v because of %q", err, tt.err, tt.why)
			}
			if err != nil {
				if c := changes(before, after); len(c) > 0 {
					t.Errorf("changed: %q", c)
				}
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for _, c := range changes(before, after) {
				if c != "/data/"+state.TopicsFile && !strings.HasSuffix(c, "partition.metadata") {
					t.Errorf("%s changed", c)
				}
			}
			checkImported(t, fsys, tt.want)
		})
	}
}

// checkImported writes to topics that were imported, and reads what was there.
func checkImported(t *testing.T, fsys *memfs.FS, topics []string) {
	t.Helper()
	e := mustOpen(t, testOptions(fsys))
	all, err := e.Topics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		if want := slices.Contains(topics, info.Name); info.Writable != want {
			t.Errorf("topic %s: writable %t (%s), want %t", info.Name, info.Writable, info.Reason, want)
		}
	}
	for _, name := range topics {
		p := mustPartition(t, e, name, 0)
		s, err := p.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.End() == 0 {
			t.Errorf("topic %s is empty", name)
		}
		mustAppend(t, p, "mine")
		if name == "transactions" { // a broker that gets it back must know its producers
			defer func() {
				st, err := state.DecodeSnapshot([]byte(fileText(t, fsys, "/data/transactions-0/00000000000000000066.snapshot")))
				if err != nil || len(st) != 3 {
					t.Errorf("producers: got %d, %v, want 3", len(st), err)
				}
			}()
		}
	}
	mustClose(t, e)
	if _, err := Import(t.Context(), testOptions(fsys), topics[0]); !errors.Is(err, storage.ErrTopicExists) {
		t.Errorf("again: got %v, want %v", err, storage.ErrTopicExists)
	}
}

func TestImportEveryFailure(t *testing.T) {
	disk := copyOf(t)
	before := treeOf(t, disk, "/data")
	for i := 0; ; i++ {
		f := faultfs.New(cloneDisk(disk))
		f.FailAt(i, syscall.EIO)
		_, err := Import(t.Context(), testOptions(f), "codec-none", "mixed.with_dots-and-9")
		inner := f.Inner()
		for name, b := range before {
			if got := fileText(t, inner, name); got != b && name != markerPath {
				t.Errorf("call %d (%v): %s changed", i, err, name)
			}
		}
		if marker := fileText(t, inner, markerPath); marker != before[markerPath] && (marker != "none" || err == nil) {
			t.Errorf("call %d (%v): marker %q", i, err, marker)
		}
		if c, cerr := readCatalog(inner, "/data"); cerr != nil || c != nil && len(c.Topics) != 2 || c == nil && err == nil {
			t.Errorf("call %d (%v): catalogue %+v, %v", i, err, c, cerr)
		}
		if f.Calls() <= i {
			if err != nil {
				t.Errorf("without a failure: %v", err)
			}
			return
		}
	}
}

func TestImportIntoOurs(t *testing.T) {
	fsys := memfs.New()
	e := mustOpen(t, testOptions(fsys))
	mustAppend(t, mustCreate(t, e, "own"), "a")
	mustClose(t, e)
	disk := copyOf(t)
	if err := fsys.Mkdir("/data/codec-none-0", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range treeOf(t, disk, "/data/codec-none-0") {
		writeBytes(t, fsys, name, b)
	}
	if got, err := Import(t.Context(), testOptions(fsys)); err != nil || !slices.Equal(got, []string{"codec-none"}) {
		t.Fatalf("got %q, %v", got, err)
	}
	checkImported(t, fsys, []string{"codec-none", "own"})
	if _, err := fsys.OpenFile(markerPath, os.O_RDONLY, 0); err != nil {
		t.Error(err)
	}
}
