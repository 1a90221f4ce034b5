package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mounted starts a daemon in another process, with a topic orders, and returns a function that makes paths in the mount. The daemon being another
// process, the test may use the mount like anybody.
func mounted(t *testing.T) func(string) string {
	t.Helper()
	mnt := t.TempDir()
	startDaemon(t, exec.Command(os.Args[0]), mnt)
	in := func(p string) string { return filepath.Join(mnt, p) }
	if err := os.Mkdir(in("orders"), 0o755); err != nil {
		t.Fatal(err)
	}
	return in
}

func mustWrite(t *testing.T, path, s string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(s); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: %v, got %.200q, want %.200q", filepath.Base(path), err, got, want)
	}
}

// TestCloseThenLook: close(2) returns before RELEASE has come, and still nobody looks too early.
func TestCloseThenLook(t *testing.T) {
	in := mounted(t)
	for i := range 200 {
		s := fmt.Sprintf("line %d", i)
		mustWrite(t, in("orders/0/tail"), s)
		wantFile(t, in(fmt.Sprintf("orders/0/record/%d", i)), s)
	}
	// A duplicate that is closed does not end the line.
	f, err := os.OpenFile(in("orders/0/tail"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	dup, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("one ")
	_ = unix.Close(dup)
	_, _ = f.WriteString("line")
	_ = f.Close()
	wantFile(t, in("orders/0/record/200"), "one line")
	wantFile(t, in("orders/0/end"), "201\n")
}

// TestGrowingFilesAreNeverTorn looks at the end of a log that two programs write: no zeros, no short reads, nothing older than what was acknowledged.
func TestGrowingFilesAreNeverTorn(t *testing.T) {
	in := mounted(t)
	tail := in("orders/0/tail")
	mustWrite(t, tail, strings.Repeat("0123456\n", 10))
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			f, err := os.OpenFile(tail, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = f.Close() }()
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for range 300 {
				if _, err := f.WriteString(strings.Repeat("0123456\n", 1+rng.IntN(5))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		readers.Go(func() {
			f, err := os.Open(tail)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = f.Close() }()
			buf := make([]byte, 64)
			for before := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				fi, err := f.Stat()
				if err != nil || fi.Size() < before || fi.Size()%8 != 0 {
					t.Errorf("size %d after %d, %v", fi.Size(), before, err)
					return
				}
				before = fi.Size()
				n, _ := f.ReadAt(buf, before-40)
				if n < 40 || string(buf[:40]) != strings.Repeat("0123456\n", 5) {
					t.Errorf("%q at %d of %d", buf[:n], before-40, before)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestMappings(t *testing.T) {
	in := mounted(t)
	want := strings.Repeat("some line\n", 1000)
	mustWrite(t, in("orders/0/tail"), want)
	for name, want := range map[string]string{"tail": want, "offset/10..20": strings.Repeat("some line\n", 10), "record/3": "some line"} {
		f, err := os.Open(in("orders/0/" + name))
		if err != nil {
			t.Fatal(err)
		}
		for _, flags := range []int{unix.MAP_PRIVATE, unix.MAP_SHARED} {
			b, err := unix.Mmap(int(f.Fd()), 0, len(want), unix.PROT_READ, flags)
			if err != nil {
				t.Errorf("%s: map: %v", name, err)
				continue
			}
			if !bytes.Equal(b, []byte(want)) {
				t.Errorf("%s: mapped %.100q", name, b)
			}
			_ = unix.Munmap(b)
		}
		_ = f.Close()
	}
}

// TestFsyncHoldsUpNobody: every open has an inode of its own, and yet the path one number.
func TestFsyncHoldsUpNobody(t *testing.T) {
	in := mounted(t)
	mustWrite(t, in("orders/0/tail"), "x\n")
	var ino uint64
	for i := range 3 {
		f, err := os.Open(in("orders/0/tail"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if err := f.Sync(); err != nil {
			t.Errorf("fsync of a descriptor for reading: %v", err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if i > 0 && st.Ino != ino {
			t.Errorf("st_ino %d, then %d", ino, st.Ino)
		}
		ino = st.Ino
	}
	for _, dir := range []string{"", "orders", "orders/0", "orders/0/offset"} {
		d, err := os.Open(in(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Sync(); err != nil {
			t.Errorf("fsync of %q: %v", dir, err)
		}
		_ = d.Close()
	}
}

func TestFollowThroughAMount(t *testing.T) {
	in := mounted(t)
	fd, err := unix.Open(in("orders/0/follow"), unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, 100)
	if _, err := unix.Read(fd, buf); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("O_NONBLOCK: %v, want EAGAIN", err)
	}
	mustWrite(t, in("orders/0/tail"), "a\n")
	if n, err := unix.Read(fd, buf); err != nil || string(buf[:n]) != "a\n" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); !errors.Is(err, unix.ESPIPE) {
		t.Errorf("seek: %v, want ESPIPE", err)
	}
	cmd := exec.Command("cat", in("orders/0/follow"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		b := make([]byte, 10)
		n, _ := out.Read(b)
		got <- string(b[:n])
	}()
	for waiting := true; waiting; { // until it has opened the file
		mustWrite(t, in("orders/0/tail"), "b\n")
		select {
		case s := <-got:
			if !strings.HasPrefix(s, "b\n") {
				t.Errorf("got %q", s)
			}
			waiting = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err == nil {
		t.Error("cat ended by itself")
	}
}

func TestKilledProgram(t *testing.T) {
	in := mounted(t)
	for _, tc := range []struct{ name, want string }{{"tail", "1\n"}, {"tail.whole", "1\n"}} {
		cmd := exec.Command("sh", "-c", `exec 3>"$1"; printf half >&3; echo written; exec sleep 100`, "sh", in("orders/0/"+tc.name))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = out.Read(make([]byte, 8))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		wantFile(t, in("orders/0/end"), tc.want)
	}
	b, err := os.ReadFile(in(".logmount/errors"))
	if err != nil || !strings.Contains(string(b), "its writer was killed") {
		t.Errorf("errors: %v, %s", err, b)
	}
}

// TestManyReaders reads logs of several topics at once, each with large reads and through the page cache, and gets from each what is in it.
func TestManyReaders(t *testing.T) {
	in := mounted(t)
	const topics, size = 6, 4 << 20
	want := make([][]byte, topics)
	for i := range want {
		for n := 0; len(want[i]) < size; n++ {
			want[i] = fmt.Appendf(want[i], "%d of topic %d %0999d\n", n, i, n)
		}
		if err := os.Mkdir(in(fmt.Sprintf("topic%d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, in(fmt.Sprintf("topic%d/0/tail", i)), string(want[i]))
	}
	var readers sync.WaitGroup
	for i := range 4 * topics {
		topic := i % topics
		readers.Go(func() {
			for range 8 {
				f, err := os.Open(in(fmt.Sprintf("topic%d/0/tail", topic)))
				if err != nil {
					t.Error(err)
					return
				}
				var got []byte
				if i%2 == 0 {
					got, err = readInPieces(f)
				} else {
					got, err = spliced(f)
				}
				if err != nil {
					t.Error(err)
				}
				if !bytes.Equal(got, want[topic]) {
					t.Errorf("topic %d: %d bytes, want %d, differ at %d", topic, len(got), len(want[topic]), commonPrefix(got, want[topic]))
				}
				_ = f.Close()
			}
		})
	}
	readers.Wait()
}

func readInPieces(f *os.File) ([]byte, error) {
	var got []byte
	buf := make([]byte, 2*aheadLeast)
	for {
		n, err := f.Read(buf)
		got = append(got, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

// spliced reads a file by splice(2), for which the kernel has several reads under way, in any order.
func spliced(f *os.File) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	done := make(chan error, 1)
	go func() {
		defer func() { _ = w.Close() }()
		for {
			n, err := unix.Splice(int(f.Fd()), nil, int(w.Fd()), nil, 1<<20, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n == 0 || err != nil {
				done <- err
				return
			}
		}
	}()
	got, err := io.ReadAll(r)
	return got, errors.Join(err, <-done)
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestCopyFileRange(t *testing.T) {
	in := mounted(t)
	mustWrite(t, in("orders/0/tail"), "a\nb\n")
	if err := os.Mkdir(in("copy"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"tail.batch": nil, "tail": unix.EINVAL} {
		from, err := os.Open(in("orders/0/" + name))
		if err != nil {
			t.Fatal(err)
		}
		to, err := os.OpenFile(in("copy/0/"+name), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.CopyFileRange(int(from.Fd()), nil, int(to.Fd()), nil, 1<<20, 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		_ = from.Close()
		if err := to.Close(); err != nil {
			t.Error(err)
		}
	}
	wantFile(t, in("copy/0/tail"), "a\nb\n")
}
