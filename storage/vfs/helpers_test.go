package vfs_test

import (
	"errors"
	"io/fs"
	"math/rand"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func TestReadFile(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			for _, size := range []int{0, 1, 4095, 4096, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20} {
				data := strings.Repeat("0123456789abcdef", size/16+1)[:size]
				put(t, fsys, path("f"), data)
				got, err := vfs.ReadFile(fsys, path("f"), int64(size))
				if err != nil || string(got) != data {
					t.Errorf("%d bytes: got %d, %v", size, len(got), err)
				}
				if _, err := vfs.ReadFile(fsys, path("f"), int64(size)-1); !errors.Is(err, vfs.ErrTooBig) {
					t.Errorf("%d bytes, one less allowed: got %v, want %v", size, err, vfs.ErrTooBig)
				}
			}
			if _, err := vfs.ReadFile(fsys, path("none"), 10); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("missing: got %v, want %v", err, fs.ErrNotExist)
			}
		})
	}
}

func TestWriteFile(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			owner := &vfs.Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Mode: 0o750}
			if owner.UID == 0 {
				owner.UID, owner.GID = 12, 34
			}
			put(t, fsys, path("f.tmp"), "left by a crash, and longer than the new one")
			for _, data := range []string{"first", "", "third"} {
				must(t, vfs.WriteFile(fsys, path("f"), []byte(data), 0o644, owner))
				if got := get(t, fsys, path("f")); got != data {
					t.Errorf("got %q, want %q", got, data)
				}
			}
			i, err := fsys.Stat(path("f"))
			must(t, err)
			if i.UID != owner.UID || i.GID != owner.GID || i.Mode != 0o640 {
				t.Errorf("got %+v, want that of %+v", i, owner)
			}
			must(t, vfs.WriteFile(fsys, path("g"), []byte("x"), 0o600, nil))
			if i, err := fsys.Stat(path("g")); err != nil || i.Mode != 0o600 {
				t.Errorf("got %+v, %v, want mode 0600", i, err)
			}
			if entries, err := fsys.ReadDir(path("")); err != nil || len(entries) != 2 {
				t.Errorf("got %v, %v, want two files", entries, err)
			}
		})
	}
}

// TestWriteFileFaults fails every call in turn, and cuts the power after it: there is the old file or the new one, and no other.
func TestWriteFileFaults(t *testing.T) {
	owner := &vfs.Owner{UID: 12, GID: 34, Mode: 0o700}
	for i := 0; ; i++ {
		m := memfs.New()
		must(t, m.Mkdir("/d", 0o755))
		must(t, m.SyncDir("/"))
		must(t, vfs.WriteFile(m, "/d/f", []byte("old"), 0o644, nil))
		f := faultfs.New(m)
		if f.FailAt(i, syscall.EIO); i%2 == 1 {
			f.ShortAt(i)
		}
		err := vfs.WriteFile(f, "/d/f", []byte("new"), 0o644, owner)
		if err == nil && f.Calls() > i {
			t.Errorf("call %d failed without an error: %q", i, f.Log())
		}
		if len(m.OpenFiles()) > 0 {
			t.Errorf("call %d: left open %q", i, m.OpenFiles())
		}
		if entries, _ := m.ReadDir("/d"); len(entries) != 1 {
			t.Errorf("call %d: got %v, want one file", i, entries)
		}
		for p := 0.0; p <= 1; p += 0.25 {
			left := m.Crash(rand.New(rand.NewSource(int64(i))), memfs.CrashOptions{Unsynced: p})
			got := get(t, left, "/d/f")
			if got != "new" && (err == nil || got != "old") {
				t.Errorf("call %d failed with %v, crash with %v: got %q", i, err, p, got)
			}
		}
		if err == nil {
			if f.Calls() > i {
				continue
			}
			if i < 8 {
				t.Errorf("only %d calls: %q", i, f.Log())
			}
			return
		}
	}
}

func TestMkdirAll(t *testing.T) {
	for _, d := range disks {
		t.Run(d.name, func(t *testing.T) {
			fsys, path := d.open(t)
			for range 2 {
				must(t, vfs.MkdirAll(fsys, path("a/b/c"), 0o700))
			}
			if i, err := fsys.Stat(path("a/b/c")); err != nil || i.Mode != fs.ModeDir|0o700 {
				t.Errorf("got %+v, %v", i, err)
			}
			put(t, fsys, path("f"), "")
			if err := vfs.MkdirAll(fsys, path("f"), 0o700); !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("over a file: got %v, want %v", err, syscall.ENOTDIR)
			}
			if err := vfs.MkdirAll(fsys, path("f/x"), 0o700); !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("below a file: got %v, want %v", err, syscall.ENOTDIR)
			}
		})
	}
	m := memfs.New()
	must(t, vfs.MkdirAll(m, "/a/b", 0o755))
	left := m.Crash(rand.New(rand.NewSource(1)), memfs.CrashOptions{})
	if ok, err := vfs.Exists(left, "/a/b"); !ok || err != nil {
		t.Errorf("after a crash: got %v, %v, want it to be there", ok, err)
	}
}

// TestOwnerChangesOnlyWhatDiffers: a user who is not root may not even repeat what is.
func TestOwnerChangesOnlyWhatDiffers(t *testing.T) {
	m := newMem(t)
	put(t, m, "/d/f", "")
	f := faultfs.New(m)
	i, err := m.Stat("/d")
	must(t, err)
	o := vfs.OwnerOf(i)
	f.Only(faultfs.OpChown, faultfs.OpChmod)
	must(t, o.Apply(f, "/d/f"))
	must(t, o.Apply(f, "/d"))
	if f.Calls() != 0 {
		t.Errorf("got %q, want nothing to be changed", f.Log())
	}
}
