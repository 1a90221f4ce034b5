package memfs_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// tree is all of a disk: path to contents; of a directory "/".
type tree map[string]string

type fatal interface {
	Helper()
	Fatal(args ...any)
}

func must(t fatal, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t fatal, m *memfs.FS) tree {
	t.Helper()
	all := tree{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := m.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name)
			if e.Mode.IsDir() {
				all[name] = "/"
				walk(name)
				continue
			}
			b, err := vfs.ReadFile(m, name, 1<<30)
			must(t, err)
			all[name] = string(b)
		}
	}
	walk("/")
	return all
}

func crash(m *memfs.FS, seed int64, unsynced float64) *memfs.FS {
	return m.Crash(rand.New(rand.NewSource(seed)), memfs.CrashOptions{Unsynced: unsynced})
}

const block = 4096

// fileModel is the naive model of one file: its contents, all that a byte may be after a crash, and what is certain.
type fileModel struct {
	now, durable []byte
	may          []map[byte]bool // per byte, beside 0
	minSize      int             // of all sizes that it may have
}

func (f *fileModel) write(p []byte, pos int) {
	if grown := pos + len(p); grown > len(f.now) {
		f.now = append(f.now, make([]byte, grown-len(f.now))...)
	}
	copy(f.now[pos:], p)
	f.allow()
}

func (f *fileModel) truncate(size int) {
	if size <= len(f.now) {
		f.now = f.now[:size:size]
	} else {
		f.now = append(f.now, make([]byte, size-len(f.now))...)
	}
	f.allow()
	f.minSize = min(f.minSize, size)
}

func (f *fileModel) allow() {
	for len(f.may) < len(f.now) {
		f.may = append(f.may, map[byte]bool{})
	}
	for i, b := range f.now {
		f.may[i][b] = true
	}
}

func (f *fileModel) sync() {
	f.durable = slices.Clone(f.now)
	f.may = nil
	f.minSize = len(f.now)
	f.allow()
}

// check looks at what is left of the file.
func (f *fileModel) check(t fatal, name string, got []byte) {
	t.Helper()
	if len(got) < f.minSize || len(got) > len(f.may) {
		t.Fatal(fmt.Sprintf("%s: got %d bytes, want %d to %d", name, len(got), f.minSize, len(f.may)))
	}
	for i, b := range got {
		hole := b == 0 && (i >= len(f.durable) || i >= f.minSize)
		if !hole && !f.may[i][b] {
			t.Fatal(fmt.Sprintf("%s: byte %d is %d, which it never was", name, i, b))
		}
	}
}

// TestCrashedFile writes, truncates and syncs one file and crashes after every step.
func TestCrashedFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := memfs.New()
		f, err := m.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
		must(t, err)
		must(t, m.SyncDir("/"))
		model := &fileModel{}
		fill := byte(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"write", "write", "append", "truncate", "sync"}).Draw(t, "op") {
			case "write", "append":
				pos := len(model.now)
				if rapid.Bool().Draw(t, "anywhere") {
					pos = rapid.IntRange(0, 3*block).Draw(t, "pos")
				}
				fill++
				p := bytes.Repeat([]byte{fill}, rapid.IntRange(1, 2*block).Draw(t, "n"))
				_, err := f.WriteAt(p, int64(pos))
				must(t, err)
				model.write(p, pos)
			case "truncate":
				size := rapid.IntRange(0, 4*block).Draw(t, "size")
				must(t, f.Truncate(int64(size)))
				model.truncate(size)
			case "sync":
				must(t, f.Sync())
				model.sync()
			}
			seed := rapid.Int64().Draw(t, "seed")
			if got := read(t, m)["/f"]; got != string(model.now) {
				t.Fatal("the file is not what was written")
			}
			if got := read(t, crash(m, seed, 0))["/f"]; got != string(model.durable) {
				t.Fatal("nothing survives: not the synced state")
			}
			if got := read(t, crash(m, seed, 1))["/f"]; got != string(model.now) {
				t.Fatal("all survives: not the present state")
			}
			left := crash(m, seed, 0.5)
			model.check(t, "/f", []byte(read(t, left)["/f"]))
			if used, size := left.Used(), int64(len(read(t, left)["/f"])); used > size || used < 0 {
				t.Fatal(fmt.Sprintf("%d bytes used by a file of %d", used, size))
			}
			if again := crash(left, seed, 0); !maps.Equal(read(t, again), read(t, left)) {
				t.Fatal("what a crash left was not durable")
			}
		}
	})
}

// TestCrashedBlocks: a block lands as a whole or not at all.
func TestCrashedBlocks(t *testing.T) {
	m := memfs.New()
	f, err := m.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	must(t, m.SyncDir("/"))
	_, err = f.WriteAt(bytes.Repeat([]byte{'a'}, 64*block), 0)
	must(t, err)
	must(t, f.Sync())
	_, err = f.WriteAt(bytes.Repeat([]byte{'b'}, 64*block), 0)
	must(t, err)
	got := []byte(read(t, crash(m, 1, 0.5))["/f"])
	counts := map[byte]int{}
	for i := range 64 {
		b := got[i*block : (i+1)*block]
		if !bytes.Equal(b, bytes.Repeat(b[:1], block)) {
			t.Errorf("block %d is torn", i)
		}
		counts[b[0]]++
	}
	if counts['a'] < 16 || counts['b'] < 16 || len(counts) != 2 {
		t.Errorf("got %v, want about half of each", counts)
	}
}

// TestCrashedAppend: all outcomes of one unsynced append do happen.
func TestCrashedAppend(t *testing.T) {
	m := memfs.New()
	f, err := m.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	must(t, m.SyncDir("/"))
	_, err = f.WriteAt([]byte("old"), 0)
	must(t, err)
	must(t, f.Sync())
	_, err = f.WriteAt([]byte("new"), 3)
	must(t, err)
	seen := map[string]bool{}
	for seed := range int64(50) {
		seen[read(t, crash(m, seed, 0.5))["/f"]] = true
	}
	if want := map[string]bool{"old": true, "oldnew": true, "old\x00\x00\x00": true}; !maps.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

// TestCrashedNames makes, renames and removes names in two directories. A file has its first name as contents, so that it is known wherever it is.
func TestCrashedNames(t *testing.T) {
	dirs := []string{"/a", "/b"}
	names := []string{"/a/1", "/a/2", "/a/3", "/b/1", "/b/2"}
	rapid.Check(t, func(t *rapid.T) {
		m := memfs.New()
		for _, d := range dirs {
			must(t, m.Mkdir(d, 0o755))
		}
		must(t, m.SyncDir("/"))
		serial := 0
		removed := map[string]bool{}  // files that somebody has removed or replaced
		durable := map[string]bool{}  // files whose name has been synced once
		history := []tree{read(t, m)} // of the present state, since the last time that all was synced
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			now := read(t, m)
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch rapid.SampledFrom([]string{"create", "rename", "remove", "syncdir"}).Draw(t, "op") {
			case "create":
				if now[name] != "" {
					continue
				}
				serial++
				f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
				must(t, err)
				_, err = fmt.Fprintf(&writer{f}, "%d", serial)
				must(t, err)
				must(t, f.Sync())
				must(t, f.Close())
			case "rename":
				to := rapid.SampledFrom(names).Draw(t, "to")
				if now[name] == "" || name == to {
					continue
				}
				if now[to] != "" {
					removed[now[to]] = true
				}
				must(t, m.Rename(name, to))
			case "remove":
				if now[name] == "" {
					continue
				}
				removed[now[name]] = true
				must(t, m.Remove(name))
			case "syncdir":
				dir := path.Dir(name)
				must(t, m.SyncDir(dir))
				left := read(t, crash(m, 1, 0))
				for n, data := range now {
					if path.Dir(n) == dir {
						durable[data] = true
						if left[n] != data {
							t.Fatal(fmt.Sprintf("%s was synced: got %q, want %q", n, left[n], data))
						}
					}
				}
				for n := range left {
					if path.Dir(n) == dir && now[n] == "" {
						t.Fatal(n + " is back although its removal was synced")
					}
				}
			}
			history = append(history, read(t, m))
			seed := rapid.Int64().Draw(t, "seed")
			if !maps.Equal(read(t, crash(m, seed, 1)), read(t, m)) {
				t.Fatal("all survives: not the present state")
			}
			checkNames(t, read(t, crash(m, seed, 0.5)), history, durable, removed)
			checkNames(t, read(t, crash(m, seed, 0)), history, durable, removed)
		}
		for _, d := range dirs {
			must(t, m.SyncDir(d))
		}
		if !maps.Equal(read(t, crash(m, 1, 0)), read(t, m)) {
			t.Fatal("all synced: not the present state")
		}
	})
}

// checkNames: each name is as it was at some time; no file is there twice; none that was durable is lost unless somebody removed it.
func checkNames(t fatal, left tree, history []tree, durable, removed map[string]bool) {
	t.Helper()
	at := map[string]string{}
	for n, data := range left {
		if !slices.ContainsFunc(history, func(h tree) bool { return h[n] == data }) {
			t.Fatal(fmt.Sprintf("%s is %q, which it never was", n, data))
		}
		if data == "/" {
			continue
		}
		if at[data] != "" {
			t.Fatal(fmt.Sprintf("file %s is at %s and at %s", data, at[data], n))
		}
		at[data] = n
	}
	for data := range durable {
		if data != "/" && at[data] == "" && !removed[data] {
			t.Fatal(fmt.Sprintf("file %s is lost", data))
		}
	}
}

type writer struct{ f vfs.File }

func (w *writer) Write(p []byte) (int, error) { return w.f.WriteAt(p, 0) }
