package local

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// brokerDir copies a broker's directory to /data of a disk in memory: the files at the top, the metadata log, and the partitions that are named.
func brokerDir(t *testing.T, archive string, partitions ...string) *memfs.FS {
	t.Helper()
	root := filepath.Join(fixture.Unpack(t, archive+"-4.4.0"), archive)
	m := memfs.New()
	copyDir(t, m, root, "/data", func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		if top == "__cluster_metadata-0" && strings.HasSuffix(name, "index") {
			return false // large, and nobody reads them
		}
		return !strings.Contains(name, "/") && !isDir(filepath.Join(root, name)) || slices.Contains(append(partitions, "__cluster_metadata-0"), top)
	})
	syncTree(t, m, "/data")
	if err := m.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return m
}

// cloneDisk returns a copy of a disk on which everything has been synced.
func cloneDisk(m *memfs.FS) *memfs.FS {
	return m.Crash(rand.New(rand.NewSource(1)), memfs.CrashOptions{})
}

func isDir(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}

func copyDir(t *testing.T, m *memfs.FS, from, to string, want func(name string) bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if name != "." && !want(name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return m.Mkdir(filepath.Join(to, name), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := m.OpenFile(filepath.Join(to, name), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 { // a preallocated file is a hole
			if _, err := f.WriteAt(b[:n], 0); err != nil {
				return err
			}
		}
		return errors.Join(f.Truncate(int64(len(b))), f.Sync(), f.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func syncTree(t *testing.T, m vfs.FS, dir string) {
	t.Helper()
	entries, err := m.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Mode.IsDir() {
			syncTree(t, m, filepath.Join(dir, e.Name))
		}
	}
	if err := m.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
}

// treeOf reads all files below a directory.
func treeOf(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name)
		if e.Mode.IsDir() {
			for k, v := range treeOf(t, fsys, name) {
				out[k] = v
			}
			continue
		}
		b, err := vfs.ReadFile(fsys, name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// changes lists the files that differ.
func changes(before, after map[string]string) []string {
	var out []string
	for name, b := range before {
		if a, there := after[name]; !there || a != b {
			out = append(out, name)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func foreignOptions(fsys vfs.FS) Options {
	o := testOptions(fsys)
	o.ReadWrite = true
	return o
}

// headersFrom returns the headers of the batches from position pos on.
func headersFrom(t *testing.T, log string, pos int) []record.Header {
	t.Helper()
	var out []record.Header
	for b := []byte(log)[pos:]; len(b) > 0; {
		h, err := record.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := record.CheckCRC(b[:h.Size()]); err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
		b = b[h.Size():]
	}
	return out
}

func writeBytes(t *testing.T, fsys vfs.FS, name, b string) {
	t.Helper()
	if err := vfs.WriteFile(fsys, name, []byte(b), 0o644, nil); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, fsys vfs.FS, name string, change func(string) string) {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	writeBytes(t, fsys, name, change(string(b)))
}

// remove takes away files or a directory of files.
func remove(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	for path := range treeOf(t, fsys, filepath.Dir(name)) {
		if path == name || strings.HasPrefix(path, name+"/") {
			if err := fsys.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = fsys.Remove(name)
}

// checkIndex compares the indexes of a segment with a rebuild.
func checkIndex(t *testing.T, files map[string]string, log string) {
	t.Helper()
	b := index.NewBuilder(0, 4096, 10<<20)
	var offsets, times []byte
	pos := 0
	for _, h := range headersFrom(t, files[log], 0) {
		addOffset, oe, addTime, te := b.Add(h.LastOffset(), h.MaxTimestamp, storage.Pos(pos), h.Size())
		if addOffset {
			offsets, _ = index.AppendOffsetEntry(offsets, 0, oe)
		}
		if addTime {
			times, _ = index.AppendTimeEntry(times, 0, te)
		}
		pos += int(h.Size())
	}
	if te, ok := b.Close(); ok {
		times, _ = index.AppendTimeEntry(times, 0, te)
	}
	stem := strings.TrimSuffix(log, ".log")
	if files[stem+".index"] != string(offsets) || files[stem+".timeindex"] != string(times) {
		t.Errorf("%s: indexes of %d and %d bytes are not those of a rebuild, %d and %d", stem, len(files[stem+".index"]), len(files[stem+".timeindex"]), len(offsets), len(times))
	}
}
