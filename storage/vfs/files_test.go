package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

const create = os.O_RDWR | os.O_CREATE

func pin(t *testing.T, c *vfs.Files, name string, flag int) *vfs.Handle {
	t.Helper()
	h, err := c.Open(name, flag, 0o644)
	must(t, err)
	return h
}

func write(t *testing.T, h *vfs.Handle, data string) {
	t.Helper()
	_, err := h.WriteAt([]byte(data), 0)
	must(t, err)
}

// counted is a cache on a disk whose calls of some kinds are counted.
func counted(t *testing.T, limit int, ops ...faultfs.Op) (*vfs.Files, *faultfs.FS, *memfs.FS) {
	t.Helper()
	m := newMem(t)
	f := faultfs.New(m)
	f.Only(ops...)
	return vfs.NewFiles(f, limit), f, m
}

func TestFilesKeepDescriptors(t *testing.T) {
	c, f, m := counted(t, 2, faultfs.OpOpen)
	for range 3 {
		for _, name := range []string{"/d/a", "/d/b"} {
			h := pin(t, c, name, create)
			write(t, h, name)
			must(t, h.Close())
		}
	}
	if got := f.Calls(); got != 2 || c.Len() != 2 {
		t.Errorf("got %d opens and %d open, want 2 and 2", got, c.Len())
	}
	// a is the older one and goes.
	must(t, pin(t, c, "/d/c", create).Close())
	if got, want := m.OpenFiles(), []string{"/d/b", "/d/c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	must(t, c.Close())
	if _, err := c.Open("/d/a", create, 0o644); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("open after close: got %v, want %v", err, fs.ErrClosed)
	}
	must(t, c.Close())
}

func TestFilesPinnedStay(t *testing.T) {
	c, _, _ := counted(t, 1)
	var pinned []*vfs.Handle
	for i := range 4 {
		pinned = append(pinned, pin(t, c, fmt.Sprint("/d/", i), create))
	}
	if c.Len() != 4 {
		t.Errorf("got %d open, want 4", c.Len())
	}
	for _, h := range pinned {
		write(t, h, h.Name())
		must(t, h.Close())
	}
	if c.Len() != 1 {
		t.Errorf("given back: got %d open, want 1", c.Len())
	}
	if err := pinned[0].Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed once too often: got %v, want %v", err, fs.ErrClosed)
	}
	must(t, c.Close())
}

func TestFilesSyncBeforeEviction(t *testing.T) {
	c, f, m := counted(t, 1, faultfs.OpSync)
	h := pin(t, c, "/d/a", create)
	write(t, h, "data")
	must(t, h.Close())
	must(t, m.SyncDir("/d"))
	must(t, m.SyncDir("/"))
	must(t, pin(t, c, "/d/b", create).Close())
	must(t, pin(t, c, "/d/c", create).Close()) // b has nothing to sync
	if f.Calls() != 1 {
		t.Errorf("got %q, want one sync", f.Log())
	}
	after := m.Crash(rand.New(rand.NewSource(1)), memfs.CrashOptions{})
	if got := get(t, after, "/d/a"); got != "data" {
		t.Errorf("after a crash: got %q, want data", got)
	}
	must(t, c.Close())
}

func TestFilesPreferClean(t *testing.T) {
	c, f, m := counted(t, 2, faultfs.OpSync)
	h := pin(t, c, "/d/dirty", create)
	write(t, h, "data")
	must(t, h.Close())
	must(t, pin(t, c, "/d/clean", create).Close())
	must(t, pin(t, c, "/d/new", create).Close())
	if got, want := m.OpenFiles(), []string{"/d/dirty", "/d/new"}; f.Calls() != 0 || !slices.Equal(got, want) {
		t.Errorf("got %q open after %q, want %q and no sync", got, f.Log(), want)
	}
	must(t, c.Close())
	if f.Calls() != 1 {
		t.Errorf("closed: got %q, want one sync", f.Log())
	}
}

func TestFilesUpgrade(t *testing.T) {
	c, _, m := counted(t, 10)
	put(t, m, "/d/a", "old")
	r := pin(t, c, "/d/a", os.O_RDONLY)
	if _, err := r.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("write through a reader's: got %v, want %v", err, syscall.EBADF)
	}
	w := pin(t, c, "/d/a", os.O_RDWR)
	write(t, w, "new")
	p := make([]byte, 3)
	if _, err := r.ReadAt(p, 0); err != nil || string(p) != "new" {
		t.Errorf("the reader's: got %q, %v, want new", p, err)
	}
	if again := pin(t, c, "/d/a", os.O_RDONLY); again != w {
		t.Error("a later reader got a descriptor of its own")
	} else {
		must(t, again.Close())
	}
	must(t, r.Close())
	if c.Len() != 1 {
		t.Errorf("got %d open, want 1", c.Len())
	}
	must(t, w.Close())
	must(t, c.Close())
}

func TestFilesUpgradeRefused(t *testing.T) {
	c, f, m := counted(t, 10)
	put(t, m, "/d/a", "old")
	r := pin(t, c, "/d/a", os.O_RDONLY)
	f.FailFrom(f.Calls(), syscall.EROFS)
	if _, err := c.Open("/d/a", os.O_RDWR, 0); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v, want %v", err, syscall.EROFS)
	}
	if again := pin(t, c, "/d/a", os.O_RDONLY); again != r {
		t.Error("the reader's descriptor was lost")
	} else {
		must(t, again.Close())
	}
	f.Reset()
	must(t, r.Close())
	must(t, c.Close())
}

func TestFilesFlags(t *testing.T) {
	c, _, m := counted(t, 10)
	h := pin(t, c, "/d/a", create)
	write(t, h, "data")
	must(t, h.Close())
	if _, err := c.Open("/d/a", create|os.O_EXCL, 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("exclusive: got %v, want %v", err, fs.ErrExist)
	}
	must(t, pin(t, c, "/d/a", create|os.O_TRUNC).Close())
	if got := get(t, m, "/d/a"); got != "" {
		t.Errorf("truncated: got %q", got)
	}
	// A file that was removed behind the cache's back: the new one must not be written through the old descriptor.
	must(t, m.Remove("/d/a"))
	h = pin(t, c, "/d/a", create|os.O_EXCL)
	write(t, h, "new")
	must(t, h.Close())
	if got := get(t, m, "/d/a"); got != "new" || c.Len() != 1 {
		t.Errorf("got %q and %d open, want new and 1", got, c.Len())
	}
	if _, err := c.Open("/d/none", os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) || c.Len() != 1 {
		t.Errorf("missing: got %v and %d open, want %v and 1", err, c.Len(), fs.ErrNotExist)
	}
	must(t, c.Close())
}

func TestFilesFailedSyncSticks(t *testing.T) {
	lost := errors.New("lost")
	failOnce := func(f *faultfs.FS) {
		var failed atomic.Bool
		f.Hook(func(op faultfs.Op, name string) error {
			if op == faultfs.OpSync && name == "/d/a" && failed.CompareAndSwap(false, true) {
				return lost
			}
			return nil
		})
	}
	tests := []struct {
		name string
		fail func(t *testing.T, c *vfs.Files)
	}{
		{"by a caller", syncOf(lost)},
		{"by eviction", evictAll},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f, _ := counted(t, 1)
			h := pin(t, c, "/d/a", create)
			write(t, h, "data")
			must(t, h.Close())
			failOnce(f)
			tt.fail(t, c)
			for range 2 {
				h := pin(t, c, "/d/a", os.O_RDWR)
				if err := h.Sync(); !errors.Is(err, lost) {
					t.Errorf("later: got %v, want %v", err, lost)
				}
				must(t, h.Close())
				must(t, pin(t, c, "/d/b", create).Close()) // evicts a
			}
			c.Forget("/d/a")
			h = pin(t, c, "/d/a", os.O_RDWR)
			if err := h.Sync(); err != nil {
				t.Errorf("forgotten: got %v, want nil", err)
			}
			must(t, h.Close())
			must(t, c.Close())
		})
	}
}

// syncOf syncs a file, which must fail with want.
func syncOf(want error) func(t *testing.T, c *vfs.Files) {
	return func(t *testing.T, c *vfs.Files) {
		t.Helper()
		h := pin(t, c, "/d/a", os.O_RDWR)
		if err := h.Sync(); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		must(t, h.Close())
	}
}

// evictAll fills a small cache with other dirty files.
func evictAll(t *testing.T, c *vfs.Files) {
	t.Helper()
	for _, name := range []string{"/d/b", "/d/c", "/d/d"} {
		h := pin(t, c, name, create)
		write(t, h, name)
		must(t, h.Close())
	}
}

func TestFilesCloseTellsOfLostEviction(t *testing.T) {
	c, f, _ := counted(t, 1, faultfs.OpSync)
	h := pin(t, c, "/d/a", create)
	write(t, h, "data")
	must(t, h.Close())
	f.FailAt(0, syscall.EIO)
	must(t, pin(t, c, "/d/b", create).Close())
	if err := c.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want %v", err, syscall.EIO)
	}
}

func TestFilesForget(t *testing.T) {
	c, f, m := counted(t, 10, faultfs.OpSync)
	must(t, m.Mkdir("/d/p", 0o755))
	a, b := pin(t, c, "/d/p/a", create), pin(t, c, "/d/p/b", create)
	other := pin(t, c, "/d/px", create)
	write(t, a, "data")
	write(t, b, "data")
	must(t, b.Close())
	must(t, m.Rename("/d/p", "/d/gone"))
	c.ForgetUnder("/d/p")
	if c.Len() != 2 || f.Calls() != 0 {
		t.Errorf("got %d open after %q, want 2 and no sync", c.Len(), f.Log())
	}
	p := make([]byte, 4)
	if _, err := a.ReadAt(p, 0); err != nil || string(p) != "data" {
		t.Errorf("still pinned: got %q, %v", p, err)
	}
	must(t, a.Close())
	must(t, other.Close())
	if got, want := m.OpenFiles(), []string{"/d/px"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	must(t, c.Close())
}

// TestFilesOutOfDescriptors: the process has fewer than the cache was told.
func TestFilesOutOfDescriptors(t *testing.T) {
	c, f, m := counted(t, 10)
	f.Hook(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpOpen && len(m.OpenFiles()) >= 4 {
			return syscall.EMFILE
		}
		return nil
	})
	var pinned []*vfs.Handle
	for i := range 8 {
		h := pin(t, c, fmt.Sprint("/d/", i), create)
		write(t, h, "x")
		must(t, h.Close())
	}
	for i := range 4 {
		pinned = append(pinned, pin(t, c, fmt.Sprint("/d/", i), create))
	}
	if _, err := c.Open("/d/7", create, 0o644); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("all pinned: got %v, want %v", err, syscall.EMFILE)
	}
	for _, h := range pinned {
		must(t, h.Close())
	}
	must(t, c.Close())
}

// TestFilesOpenOnce: many ask for a name at once, one opens it.
func TestFilesOpenOnce(t *testing.T) {
	c, f, _ := counted(t, 10, faultfs.OpOpen)
	go1, arrived := make(chan struct{}), make(chan struct{}, 1)
	f.Hook(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpOpen {
			arrived <- struct{}{}
			<-go1
		}
		return nil
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			h, err := c.Open("/d/a", create, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	close(go1)
	wg.Wait()
	if f.Calls() != 1 || c.Len() != 1 {
		t.Errorf("got %d opens and %d open, want 1 and 1", f.Calls(), c.Len())
	}
	must(t, c.Close())
}

// TestFilesForgottenWhileOpening: the one who opens gets a handle that works; the name is opened anew.
func TestFilesForgottenWhileOpening(t *testing.T) {
	for _, cached := range []bool{false, true} {
		for _, fail := range []error{nil, syscall.EACCES} {
			t.Run(fmt.Sprintf("cached %v, error %v", cached, fail), func(t *testing.T) {
				c, f, m := counted(t, 10)
				put(t, m, "/d/a", "data")
				if cached {
					must(t, pin(t, c, "/d/a", os.O_RDONLY).Close())
				}
				f.Hook(func(op faultfs.Op, _ string) error {
					if op == faultfs.OpOpen {
						c.Forget("/d/a")
						return fail
					}
					return nil
				})
				h, err := c.Open("/d/a", os.O_RDWR, 0)
				f.Reset()
				if !errors.Is(err, fail) {
					t.Fatalf("got %v, want %v", err, fail)
				}
				if err == nil {
					write(t, h, "x")
					again := pin(t, c, "/d/a", os.O_RDWR)
					if again == h {
						t.Error("forgotten, and yet given out again")
					}
					must(t, again.Close())
					must(t, h.Close())
				}
				if want := len(m.OpenFiles()); c.Len() != want {
					t.Errorf("got %d open, want %d", c.Len(), want)
				}
				must(t, c.Close())
			})
		}
	}
}

// TestFilesConcurrently: many writers of few names through fewer descriptors; in the end every byte is there and synced.
func TestFilesConcurrently(t *testing.T) {
	c, _, m := counted(t, 3)
	const names, workers, rounds = 8, 8, 300
	must(t, m.SyncDir("/"))
	for n := range names {
		must(t, pin(t, c, fmt.Sprint("/d/", n), create).Close())
	}
	must(t, m.SyncDir("/d"))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewSource(int64(w)))
			for i := range rounds {
				name := fmt.Sprint("/d/", r.Intn(names))
				if err := round(c, name, w, byte(i), r); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
	if c.Len() > 3 {
		t.Errorf("got %d open, want at most 3", c.Len())
	}
	must(t, c.Close())
	after := m.Crash(rand.New(rand.NewSource(1)), memfs.CrashOptions{})
	for n := range names {
		name := fmt.Sprint("/d/", n)
		if got, want := get(t, after, name), get(t, m, name); got != want {
			t.Errorf("%s: got %q after a crash, want %q", name, got, want)
		}
	}
}

// round does one thing to a file, of which each worker has one byte for itself.
func round(c *vfs.Files, name string, worker int, b byte, r *rand.Rand) error {
	flag := os.O_RDWR
	if r.Intn(4) == 0 {
		flag = os.O_RDONLY
	}
	h, err := c.Open(name, flag, 0)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	switch {
	case flag == os.O_RDONLY:
		_, err = h.Stat()
	case r.Intn(8) == 0:
		err = h.Sync()
	default:
		p := []byte{b}
		if _, err = h.WriteAt(p, int64(worker)); err == nil {
			_, err = h.ReadAt(p, int64(worker))
		}
		if err == nil && p[0] != b {
			err = fmt.Errorf("got %d back, want %d", p[0], b)
		}
	}
	return err
}

// TestSyncCoversWhatCameBefore: syncs may share one of the disk's, but only one that began after they were called.
func TestSyncCoversWhatCameBefore(t *testing.T) {
	c, f, _ := counted(t, 3, faultfs.OpSync)
	h := pin(t, c, "/d/a", create)
	var begun atomic.Int64
	f.Hook(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync {
			begun.Add(1)
		}
		return nil
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				before := begun.Load()
				if err := h.Sync(); err != nil {
					t.Error(err)
				}
				if begun.Load() == before {
					t.Error("returned without a sync that began after the call")
				}
			}
		})
	}
	wg.Wait()
	if n := f.Calls(); n > 8*200 {
		t.Errorf("got %d syncs for %d calls", n, 8*200)
	}
	must(t, h.Close())
	must(t, c.Close())
}

func TestPinDoesNotAllocate(t *testing.T) {
	c := vfs.NewFiles(memfs.New(), 10)
	must(t, pin(t, c, "/a", create).Close())
	n := testing.AllocsPerRun(100, func() {
		h, err := c.Open("/a", create, 0o644)
		if err == nil {
			err = h.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
	must(t, c.Close())
}

func BenchmarkPin(b *testing.B) {
	c := vfs.NewFiles(vfs.OS(), 100)
	dir := b.TempDir()
	var names []string
	for i := range 50 {
		names = append(names, filepath.Join(dir, fmt.Sprint(i)))
	}
	b.ReportAllocs()
	for i := range b.N {
		h, err := c.Open(names[i%len(names)], create, 0o644)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}
