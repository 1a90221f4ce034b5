package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// disks are the implementations that must not differ. open returns one and what makes names in an empty directory of it.
var disks = []struct {
	name string
	open func(t *testing.T) (fsys vfs.FS, path func(base string) string)
}{
	{"os", openOS},
	{"memfs", openMem},
	{"faultfs", openFault},
}

func openOS(t *testing.T) (vfs.FS, func(string) string) {
	t.Helper()
	return vfs.OS(), in(t.TempDir())
}

func openMem(t *testing.T) (vfs.FS, func(string) string) {
	t.Helper()
	return newMem(t), in("/d")
}

func openFault(t *testing.T) (vfs.FS, func(string) string) {
	t.Helper()
	return faultfs.New(newMem(t)), in("/d")
}

func in(dir string) func(base string) string {
	return func(base string) string { return filepath.Join(dir, base) }
}

func newMem(t *testing.T) *memfs.FS {
	t.Helper()
	m := memfs.New()
	if err := m.Mkdir("/d", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if open := m.OpenFiles(); len(open) > 0 {
			t.Errorf("left open: %q", open)
		}
	})
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, fsys vfs.FS, name, data string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	must(t, err)
	_, err = f.WriteAt([]byte(data), 0)
	must(t, err)
	must(t, f.Close())
}

func get(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<20)
	must(t, err)
	return string(b)
}

func openFile(t *testing.T, fsys vfs.FS, name string, flag int) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, flag, 0o644)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() }) // the test may have done so
	return f
}

// TestErrors asks for what cannot be had: the error must be the same everywhere.
func TestErrors(t *testing.T) {
	open := func(base string, flag int) func(vfs.FS, func(string) string) error {
		return func(fsys vfs.FS, path func(string) string) error {
			f, err := fsys.OpenFile(path(base), flag, 0o644)
			if err == nil {
				_ = f.Close()
			}
			return err
		}
	}
	with := func(base string, flag int, do func(vfs.File) error) func(vfs.FS, func(string) string) error {
		return func(fsys vfs.FS, path func(string) string) error {
			f, err := fsys.OpenFile(path(base), flag, 0o644)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			return do(f)
		}
	}
	write := func(f vfs.File) error { _, err := f.WriteAt([]byte("x"), 0); return err }
	read := func(f vfs.File) error { _, err := f.ReadAt(make([]byte, 1), 0); return err }
	tests := []struct {
		name string
		do   func(vfs.FS, func(string) string) error
		want error
	}{
		{"open missing", open("none", os.O_RDONLY), fs.ErrNotExist},
		{"open in missing directory", open("none/file", os.O_RDWR|os.O_CREATE), syscall.ENOENT},
		{"open below a file", open("file/x", os.O_RDWR|os.O_CREATE), syscall.ENOTDIR},
		{"create exclusively what is there", open("file", os.O_RDWR|os.O_CREATE|os.O_EXCL), fs.ErrExist},
		{"create exclusively a directory", open("full", os.O_RDWR|os.O_CREATE|os.O_EXCL), fs.ErrExist},
		{"open a directory for writing", open("full", os.O_RDWR), syscall.EISDIR},
		{"open a directory", open("full", os.O_RDONLY), nil},
		{"read a directory", with("full", os.O_RDONLY, read), syscall.EISDIR},
		{"sync a directory", with("full", os.O_RDONLY, vfs.File.Sync), nil},
		{"read an empty file", with("empty", os.O_RDONLY, read), io.EOF},
		{"write a descriptor for reading", with("file", os.O_RDONLY, write), syscall.EBADF},
		{"truncate a descriptor for reading", with("file", os.O_RDONLY, func(f vfs.File) error { return f.Truncate(0) }), syscall.EINVAL},
		{"truncate to a negative size", with("file", os.O_RDWR, func(f vfs.File) error { return f.Truncate(-1) }), syscall.EINVAL},
		{"write a closed file", with("file", os.O_RDWR, func(f vfs.File) error { return errors.Join(f.Close(), write(f)) }), fs.ErrClosed},
		{"sync a closed file", with("file", os.O_RDWR, func(f vfs.File) error { return errors.Join(f.Close(), f.Sync()) }), fs.ErrClosed},
		{"close twice", with("file", os.O_RDWR, func(f vfs.File) error { return errors.Join(f.Close(), f.Close()) }), fs.ErrClosed},
		{"remove missing", func(f vfs.FS, p func(string) string) error { return f.Remove(p("none")) }, fs.ErrNotExist},
		{"remove a full directory", func(f vfs.FS, p func(string) string) error { return f.Remove(p("full")) }, syscall.ENOTEMPTY},
		{"mkdir what is there", func(f vfs.FS, p func(string) string) error { return f.Mkdir(p("full"), 0o755) }, fs.ErrExist},
		{"mkdir over a file", func(f vfs.FS, p func(string) string) error { return f.Mkdir(p("file"), 0o755) }, fs.ErrExist},
		{"mkdir in missing directory", func(f vfs.FS, p func(string) string) error { return f.Mkdir(p("none/x"), 0o755) }, fs.ErrNotExist},
		{"rename missing", func(f vfs.FS, p func(string) string) error { return f.Rename(p("none"), p("x")) }, fs.ErrNotExist},
		{"rename over a directory", func(f vfs.FS, p func(string) string) error { return f.Rename(p("file"), p("dir")) }, syscall.EEXIST},
		{"rename a directory over a file", func(f vfs.FS, p func(string) string) error { return f.Rename(p("dir"), p("file")) }, syscall.ENOTDIR},
		{"rename a directory into itself", func(f vfs.FS, p func(string) string) error { return f.Rename(p("dir"), p("dir/x")) }, syscall.EINVAL},
		{"rename to itself", func(f vfs.FS, p func(string) string) error { return f.Rename(p("file"), p("file")) }, nil},
		{"rename into missing directory", func(f vfs.FS, p func(string) string) error { return f.Rename(p("file"), p("none/x")) }, fs.ErrNotExist},
		{"list missing", func(f vfs.FS, p func(string) string) error { _, err := f.ReadDir(p("none")); return err }, fs.ErrNotExist},
		{"list a file", func(f vfs.FS, p func(string) string) error { _, err := f.ReadDir(p("file")); return err }, syscall.ENOTDIR},
		{"stat missing", func(f vfs.FS, p func(string) string) error { _, err := f.Stat(p("none")); return err }, fs.ErrNotExist},
		{"stat below a file", func(f vfs.FS, p func(string) string) error { _, err := f.Stat(p("file/x")); return err }, syscall.ENOTDIR},
		{"sync missing directory", func(f vfs.FS, p func(string) string) error { return f.SyncDir(p("none")) }, fs.ErrNotExist},
		{"sync a file as a directory", func(f vfs.FS, p func(string) string) error { return f.SyncDir(p("file")) }, syscall.ENOTDIR},
		{"chmod missing", func(f vfs.FS, p func(string) string) error { return f.Chmod(p("none"), 0o600) }, fs.ErrNotExist},
		{"chown missing", func(f vfs.FS, p func(string) string) error { return f.Chown(p("none"), 0, 0) }, fs.ErrNotExist},
		{"usage of missing", func(f vfs.FS, p func(string) string) error { _, err := f.Usage(p("none")); return err }, fs.ErrNotExist},
		{"lock in missing directory", func(f vfs.FS, p func(string) string) error { _, err := f.Lock(p("none/l"), 0o644); return err }, fs.ErrNotExist},
		{"lock a directory", func(f vfs.FS, p func(string) string) error { _, err := f.Lock(p("dir"), 0o644); return err }, syscall.EISDIR},
	}
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			put(t, fsys, path("file"), "abc")
			put(t, fsys, path("empty"), "")
			must(t, fsys.Mkdir(path("dir"), 0o755))
			must(t, fsys.Mkdir(path("full"), 0o755))
			put(t, fsys, path("full/x"), "")
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					if err := tt.do(fsys, path); !errors.Is(err, tt.want) {
						t.Errorf("got %v, want %v", err, tt.want)
					}
				})
			}
		})
	}
}

func TestReadWrite(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			f := openFile(t, fsys, path("f"), os.O_RDWR|os.O_CREATE)
			_, err := f.WriteAt([]byte("world"), 5000)
			must(t, err)
			_, err = f.WriteAt([]byte("hello"), 4094)
			must(t, err)
			want := strings.Repeat("\x00", 4094) + "hello" + strings.Repeat("\x00", 901) + "world"
			if got := get(t, fsys, path("f")); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			p := make([]byte, 10)
			if n, err := f.ReadAt(p, 5001); n != 4 || !errors.Is(err, io.EOF) || string(p[:n]) != "orld" {
				t.Errorf("read across the end: got %q, %v, want orld and the end of file", p[:n], err)
			}
			if n, err := f.ReadAt(p[:5], 5000); n != 5 || err != nil {
				t.Errorf("read to the end: got %d, %v, want 5 bytes and no error", n, err)
			}
			if n, err := f.ReadAt(p[:0], 9000); n != 0 || err != nil {
				t.Errorf("read nothing: got %d, %v", n, err)
			}
			if _, err := f.ReadAt(p, -1); err == nil {
				t.Error("read at a negative position: got no error")
			}
			if _, err := f.WriteAt(p, -1); err == nil {
				t.Error("write at a negative position: got no error")
			}
			// What was cut off must not come back.
			must(t, f.Truncate(4096))
			must(t, f.Truncate(4100))
			if got, want := get(t, fsys, path("f")), strings.Repeat("\x00", 4094)+"he\x00\x00\x00\x00"; got != want {
				t.Errorf("truncated: got %q, want %q", got, want)
			}
			must(t, f.Truncate(10<<20))
			i, err := f.Stat()
			must(t, err)
			if i.Size != 10<<20 || i.Mode != 0o644 {
				t.Errorf("got size %d mode %v", i.Size, i.Mode)
			}
			must(t, f.Sync())
		})
	}
}

func TestNames(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			must(t, fsys.Mkdir(path("dir"), 0o755))
			for _, base := range []string{"b", "a", "c"} {
				put(t, fsys, path(base), base)
			}
			must(t, fsys.Rename(path("b"), path("a")))
			must(t, fsys.Rename(path("c"), path("dir/c")))
			must(t, fsys.Rename(path("dir"), path("moved")))
			must(t, fsys.SyncDir(path("")))
			entries, err := fsys.ReadDir(path(""))
			must(t, err)
			if want := []vfs.DirEntry{{Name: "a"}, {Name: "moved", Mode: fs.ModeDir}}; !slices.Equal(entries, want) {
				t.Errorf("got %v, want %v", entries, want)
			}
			if got := get(t, fsys, path("a")) + get(t, fsys, path("moved/c")); got != "bc" {
				t.Errorf("got %q, want bc", got)
			}
			must(t, fsys.Remove(path("moved/c")))
			must(t, fsys.Remove(path("moved")))
			if ok, err := vfs.Exists(fsys, path("moved")); ok || err != nil {
				t.Errorf("removed: got %v, %v", ok, err)
			}
		})
	}
}

// TestDeletedWhileOpen: a segment that was removed stays readable until its reader leaves it.
func TestDeletedWhileOpen(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			put(t, fsys, path("f"), "old")
			f := openFile(t, fsys, path("f"), os.O_RDWR)
			before, err := f.Stat()
			must(t, err)
			must(t, fsys.Remove(path("f")))
			put(t, fsys, path("f"), "new")
			p := make([]byte, 3)
			_, err = f.ReadAt(p, 0)
			must(t, err)
			if string(p) != "old" {
				t.Errorf("got %q, want old", p)
			}
			_, err = f.WriteAt([]byte("x"), 0)
			must(t, err)
			must(t, f.Sync())
			if got := get(t, fsys, path("f")); got != "new" {
				t.Errorf("got %q, want new", got)
			}
			after, err := fsys.Stat(path("f"))
			must(t, err)
			if before.Ino == after.Ino {
				t.Errorf("both files have inode number %d while the first is open", before.Ino)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			put(t, fsys, path("f"), "abc")
			must(t, fsys.Chmod(path("f"), 0o600))
			uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
			if uid == 0 {
				uid, gid = 12, 34
			}
			must(t, fsys.Chown(path("f"), uid, gid))
			i, err := fsys.Stat(path("f"))
			must(t, err)
			if i.Size != 3 || i.Mode != 0o600 || i.UID != uid || i.GID != gid || i.Ino == 0 || i.Modified == 0 || i.IsDir() {
				t.Errorf("got %+v", i)
			}
			if d, err := fsys.Stat(path("")); err != nil || !d.IsDir() || d.Dev != i.Dev {
				t.Errorf("directory: got %+v, %v", d, err)
			}
			if u, err := fsys.Usage(path("")); err != nil || u.Total <= 0 || u.Free < u.Avail || u.Avail < 0 || u.Total < u.Free {
				t.Errorf("usage: got %+v, %v", u, err)
			}
		})
	}
}

func TestLock(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			l, err := fsys.Lock(path(".lock"), 0o644)
			must(t, err)
			if !l.Ours() {
				t.Error("just taken: not ours")
			}
			if held, err := fsys.Locked(path(".lock")); !held || err != nil {
				t.Errorf("just taken: locked %v, %v", held, err)
			}
			if _, err := fsys.Lock(path(".lock"), 0o644); !errors.Is(err, storage.ErrLocked) {
				t.Errorf("second: got %v, want %v", err, storage.ErrLocked)
			}
			must(t, l.Release())
			if l.Ours() {
				t.Error("released: still ours")
			}
			if ok, err := vfs.Exists(fsys, path(".lock")); ok || err != nil {
				t.Errorf("released: file is there: %v, %v", ok, err)
			}
			if held, err := fsys.Locked(path(".lock")); held || err != nil {
				t.Errorf("gone: locked %v, %v", held, err)
			}
			put(t, fsys, path(".lock"), "")
			if held, err := fsys.Locked(path(".lock")); held || err != nil {
				t.Errorf("nobody's: locked %v, %v", held, err)
			}
			must(t, fsys.Remove(path(".lock")))
			must(t, l.Release())

			// Somebody unlinks it, somebody else makes a new one: that must stay.
			l, err = fsys.Lock(path(".lock"), 0o644)
			must(t, err)
			must(t, fsys.Remove(path(".lock")))
			if l.Ours() {
				t.Error("unlinked: still ours")
			}
			other, err := fsys.Lock(path(".lock"), 0o644)
			must(t, err)
			if l.Ours() || !other.Ours() {
				t.Errorf("replaced: got ours %v, other's %v", l.Ours(), other.Ours())
			}
			must(t, l.Release())
			if !other.Ours() {
				t.Error("release of the old lock took the new file away")
			}
			must(t, other.Release())
		})
	}
}
