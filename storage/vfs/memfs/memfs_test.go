package memfs_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func open(t fatal, m *memfs.FS, name string) vfs.File {
	t.Helper()
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	return f
}

func TestCapacity(t *testing.T) {
	m := memfs.New()
	f := open(t, m, "/f")
	must(t, f.Truncate(10<<20)) // a hole is free
	m.SetCapacity(6000)
	n, err := f.WriteAt(make([]byte, 10000), 0)
	if n != 4096+1904 && n != 4096 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %d, %v, want a part and %v", n, err, syscall.ENOSPC)
	}
	must(t, f.Truncate(0))
	n, err = f.WriteAt([]byte(strings.Repeat("x", 10000)), 0)
	if n != 6000 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %d, %v, want 6000 and %v", n, err, syscall.ENOSPC)
	}
	if u, err := m.Usage("/"); err != nil || u.Total != 6000 || u.Avail != 0 {
		t.Errorf("got %+v, %v, want nothing left of 6000", u, err)
	}
	if n, err := f.WriteAt([]byte("in its place"), 100); n != 12 || err != nil {
		t.Errorf("in its place: got %d, %v", n, err)
	}
	must(t, f.Truncate(5990))
	if n, err := f.WriteAt([]byte(strings.Repeat("y", 20)), 5990); n != 10 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("10 left: got %d, %v", n, err)
	}
	m.SetCapacity(0)
	if n, err := f.WriteAt([]byte("z"), 6000); n != 1 || err != nil {
		t.Errorf("limit lifted: got %d, %v", n, err)
	}
	// The room of a removed file is free once it is closed.
	must(t, m.Remove("/f"))
	if m.Used() != 6001 {
		t.Errorf("removed: got %d used, want 6001", m.Used())
	}
	must(t, f.Close())
	if m.Used() != 0 {
		t.Errorf("closed: got %d used, want 0", m.Used())
	}
}

// TestUsedAddsUp: whatever is done, the disk is never fuller than its capacity, and as full as its files say.
func TestUsedAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := memfs.New()
		capacity := rapid.Int64Range(1, 6*block).Draw(t, "capacity")
		m.SetCapacity(capacity)
		var sizes int64
		files := []vfs.File{open(t, m, "/a"), open(t, m, "/b")}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			f := rapid.SampledFrom(files).Draw(t, "file")
			pos := rapid.Int64Range(0, 5*block).Draw(t, "pos")
			if rapid.Bool().Draw(t, "truncate") {
				before, err := f.Stat()
				must(t, err)
				must(t, f.Truncate(min(pos, before.Size)))
			} else {
				p := make([]byte, rapid.IntRange(1, 3*block).Draw(t, "n"))
				n, err := f.WriteAt(p, pos)
				if (n < len(p)) != errors.Is(err, syscall.ENOSPC) {
					t.Fatal(n, err)
				}
			}
			sizes = 0
			for _, f := range files {
				i, err := f.Stat()
				must(t, err)
				sizes += i.Size
			}
			if u := m.Used(); u < 0 || u > capacity || u > sizes {
				t.Fatal("used", u, "capacity", capacity, "sizes", sizes)
			}
		}
		for _, f := range files {
			must(t, f.Truncate(0))
		}
		if m.Used() != 0 {
			t.Fatal("empty files use", m.Used())
		}
	})
}

func TestOpenFiles(t *testing.T) {
	m := memfs.New()
	b, a, a2 := open(t, m, "/b"), open(t, m, "/a"), open(t, m, "/a")
	l, err := m.Lock("/.lock", 0o644)
	must(t, err)
	if got, want := m.OpenFiles(), []string{"/.lock", "/a", "/a", "/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, f := range []vfs.File{a, b, a2} {
		must(t, f.Close())
	}
	must(t, l.Release())
	if got := m.OpenFiles(); len(got) > 0 {
		t.Errorf("all closed: got %q", got)
	}
}

func TestCrashLetsLocksGo(t *testing.T) {
	m := memfs.New()
	l, err := m.Lock("/.lock", 0o644)
	must(t, err)
	must(t, m.SyncDir("/"))
	left := crash(m, 1, 0)
	if _, err := left.Stat("/.lock"); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	after, err := left.Lock("/.lock", 0o644)
	must(t, err)
	if _, err := m.Lock("/.lock", 0o644); !errors.Is(err, storage.ErrLocked) || !l.Ours() {
		t.Errorf("the old disk: got %v, ours %v, want it to be locked", err, l.Ours())
	}
	must(t, after.Release())
	must(t, l.Release())
}

func TestClock(t *testing.T) {
	m := memfs.New()
	f := open(t, m, "/f")
	before, err := f.Stat()
	must(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	must(t, err)
	after, err := f.Stat()
	must(t, err)
	if after.Modified <= before.Modified {
		t.Errorf("got %d after %d, want it to be later", after.Modified, before.Modified)
	}
	m.SetClock(func() int64 { return 42 })
	must(t, f.Truncate(0))
	if i, err := f.Stat(); err != nil || i.Modified != 42 {
		t.Errorf("got %d, %v, want 42", i.Modified, err)
	}
}

// TestLoseUnsynced: bytes whose write-back failed can be read until the machine stops, and no later sync saves them.
func TestLoseUnsynced(t *testing.T) {
	m := memfs.New()
	f := open(t, m, "/f")
	must(t, m.SyncDir("/"))
	_, err := f.WriteAt([]byte("kept"), 0)
	must(t, err)
	must(t, f.Sync())
	_, err = f.WriteAt([]byte("lost"), 4)
	must(t, err)
	must(t, m.LoseUnsynced("/f"))
	must(t, f.Sync())
	if got := read(t, m)["/f"]; got != "keptlost" {
		t.Errorf("before the crash: got %q, want keptlost", got)
	}
	if got := read(t, crash(m, 1, 1))["/f"]; got != "kept\x00\x00\x00\x00" {
		t.Errorf("after the crash: got %q, want zeros in the place of what was lost", got)
	}
}

// TestUnreachable: a file that was synced is lost with its directory if that was not.
func TestUnreachable(t *testing.T) {
	m := memfs.New()
	must(t, m.Mkdir("/d", 0o755))
	f := open(t, m, "/d/f")
	must(t, f.Sync())
	must(t, m.SyncDir("/d"))
	if got := read(t, crash(m, 1, 0)); len(got) != 0 {
		t.Errorf("got %v, want an empty disk", got)
	}
	must(t, m.SyncDir("/"))
	if got := read(t, crash(m, 1, 0)); len(got) != 2 {
		t.Errorf("got %v, want the directory and the file", got)
	}
}

// TestRemovedDirectory: a directory can only be gone from the disk when what was moved out of it is somewhere else.
func TestRemovedDirectory(t *testing.T) {
	m := memfs.New()
	for _, d := range []string{"/from", "/to"} {
		must(t, m.Mkdir(d, 0o755))
	}
	f := open(t, m, "/from/f")
	_, err := f.WriteAt([]byte("data"), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, m.SyncDir("/from"))
	must(t, m.SyncDir("/"))
	must(t, m.Rename("/from/f", "/to/f"))
	must(t, m.Remove("/from"))
	for seed := range int64(50) {
		left := read(t, crash(m, seed, 0.5))
		if left["/from/f"]+left["/to/f"] != "data" {
			t.Fatalf("seed %d: got %v, want the file once", seed, left)
		}
	}
	must(t, m.SyncDir("/"))
	if left := read(t, crash(m, 1, 0)); left["/to/f"] != "data" {
		t.Errorf("synced: got %v, want the file at its new place", left)
	}
}

func BenchmarkAppendSync(b *testing.B) {
	m := memfs.New()
	f, err := m.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 100)
	for i := range b.N {
		if _, err := f.WriteAt(p, int64(i*100)); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
