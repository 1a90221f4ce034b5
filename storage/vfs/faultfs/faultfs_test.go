package faultfs_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// everything makes each counted call once, in the order of the constants, and returns what each returned.
func everything(f *faultfs.FS, file vfs.File, lock vfs.Lock) []error {
	drop := func(_ any, err error) error { return err }
	return []error{
		drop(f.OpenFile("/f", os.O_RDWR, 0)),
		f.Remove("/removed"),
		f.Rename("/old", "/new"),
		f.Mkdir("/dir", 0o755),
		drop(f.ReadDir("/")),
		drop(f.Stat("/f")),
		f.SyncDir("/"),
		f.Chown("/f", 1, 2),
		f.Chmod("/f", 0o600),
		drop(f.Lock("/lock", 0o600)),
		drop(f.Usage("/")),
		drop(file.ReadAt(make([]byte, 2), 0)),
		drop(file.WriteAt([]byte("abcd"), 0)),
		file.Sync(),
		file.Truncate(3),
		drop(file.Stat()),
		lock.Release(),
	}
}

func setup(t *testing.T) (*faultfs.FS, vfs.File, vfs.Lock) {
	t.Helper()
	f := faultfs.New(memfs.New())
	var file vfs.File
	for _, name := range []string{"/removed", "/old", "/f"} {
		var err error
		if file, err = f.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := file.WriteAt([]byte("1234"), 0); err != nil {
		t.Fatal(err)
	}
	lock, err := f.Lock("/held", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Reset()
	return f, file, lock
}

func TestFailAt(t *testing.T) {
	for i := 0; ; i++ {
		f, file, lock := setup(t)
		f.FailAt(i, syscall.EDQUOT)
		errs := everything(f, file, lock)
		for j, err := range errs {
			if want := i == j; errors.Is(err, syscall.EDQUOT) != want || err != nil != want {
				t.Errorf("fail at %d: call %d: got %v", i, j, err)
			}
		}
		if f.Calls() != len(errs) || len(f.Log()) != len(errs) {
			t.Fatalf("got %d calls and %q, want %d", f.Calls(), f.Log(), len(errs))
		}
		if f.Calls() <= i {
			return
		}
		if got, want := strings.Fields(f.Log()[i])[1], faultfs.Op(i).String(); got != want || !strings.HasSuffix(f.Log()[i], syscall.EDQUOT.Error()) {
			t.Errorf("got %q in the log, want %s and its error", f.Log()[i], want)
		}
	}
}

func TestFailFrom(t *testing.T) {
	f, file, lock := setup(t)
	f.FailFrom(5, nil)
	f.FailAt(7, syscall.EIO)
	for i, err := range everything(f, file, lock) {
		want := error(nil)
		switch {
		case i == 7:
			want = syscall.EIO
		case i >= 5:
			want = faultfs.ErrInjected
		}
		if !errors.Is(err, want) {
			t.Errorf("call %d: got %v, want %v", i, err, want)
		}
	}
	f.Reset()
	if _, err := f.Stat("/f"); err != nil || f.Calls() != 1 {
		t.Errorf("reset: got %v and %d calls", err, f.Calls())
	}
}

func TestShortAt(t *testing.T) {
	f, file, _ := setup(t)
	f.ShortAt(1)
	f.ShortAt(2)
	if _, err := file.Stat(); err != nil {
		t.Error(err)
	}
	if n, err := file.WriteAt([]byte("abcd"), 0); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %d, %v, want 2 and %v", n, err, syscall.ENOSPC)
	}
	if err := file.Sync(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("not a write: got %v, want %v", err, syscall.ENOSPC)
	}
	if got, err := vfs.ReadFile(f.Inner(), "/f", 100); string(got) != "ab34" || err != nil {
		t.Errorf("got %q, %v, want ab34", got, err)
	}
}

func TestOnly(t *testing.T) {
	f, file, lock := setup(t)
	f.Only(faultfs.OpSync, faultfs.OpSyncDir)
	f.FailAt(1, syscall.EIO)
	errs := everything(f, file, lock)
	if want := []string{"0 syncdir /", "1 sync /f: " + syscall.EIO.Error()}; !slices.Equal(f.Log(), want) {
		t.Errorf("got %q, want %q", f.Log(), want)
	}
	if !errors.Is(errs[faultfs.OpSync], syscall.EIO) {
		t.Errorf("got %v, want %v", errs[faultfs.OpSync], syscall.EIO)
	}
}

func TestHook(t *testing.T) {
	f, file, lock := setup(t)
	f.Only(faultfs.OpOpen) // the hook sees all calls nevertheless
	var seen []faultfs.Op
	f.Hook(func(op faultfs.Op, name string) error {
		seen = append(seen, op)
		if op == faultfs.OpRename && name == "/old" || op == faultfs.OpSync && name == "/f" {
			return syscall.EROFS
		}
		return nil
	})
	errs := everything(f, file, lock)
	for i, err := range errs {
		op := faultfs.Op(i)
		if want := op == faultfs.OpRename || op == faultfs.OpSync; errors.Is(err, syscall.EROFS) != want {
			t.Errorf("%v: got %v", op, err)
		}
		if i < len(seen) && seen[i] != op {
			t.Errorf("call %d: hook saw %v, want %v", i, seen[i], op)
		}
	}
	if len(seen) != len(errs) {
		t.Errorf("hook saw %d calls, want %d", len(seen), len(errs))
	}
	f.Hook(nil)
	if err := file.Sync(); err != nil {
		t.Errorf("hook taken away: got %v", err)
	}
}
