package fs

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
)

// Each open of a growing view is an inode of its own to the kernel, and yet a lock holds for all of them.
func TestLocksOnAMount(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: no python3")
	}
	m := mountMemory(t, nil)
	script := `
import fcntl, os, signal, struct, subprocess, sys
path = sys.argv[1] + '/t/0/tail'
os.mkdir(sys.argv[1] + '/t')
def lockw(kind, fd, typ, start, length):
    return fcntl.fcntl(fd, kind, struct.pack('hhqqi4x', typ, 0, start, length, 0))
def tries(how):
    "whether another process gets a lock; how is one of flock, posix"
    code = {'flock': 'fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)',
            'posix': 'fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)'}[how]
    return subprocess.run([sys.executable, '-c', 'import fcntl, os, sys\nfd = os.open(sys.argv[1], os.O_RDWR)\ntry: ' + code + '\nexcept BlockingIOError: sys.exit(7)', path]).returncode
a, b = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)

fcntl.flock(a, fcntl.LOCK_EX)
assert tries('flock') == 7
assert tries('posix') == 0, 'flock and fcntl do not see each other'
try:
    fcntl.flock(b, fcntl.LOCK_SH | fcntl.LOCK_NB)
    assert False, 'two opens of one program are two owners'
except BlockingIOError: pass
d = os.dup(a); os.close(a)
assert tries('flock') == 7, 'a duplicate is still open'
os.close(d)
assert tries('flock') == 0

a = os.open(path, os.O_RDWR)
fcntl.lockf(a, fcntl.LOCK_EX, 10, 0)
assert tries('posix') == 7
assert tries('flock') == 0
os.close(b)  # POSIX: closing any descriptor of the file drops the locks of the process
assert tries('posix') == 0

F_OFD_SETLK = 37
b = os.open(path, os.O_RDWR)
lockw(F_OFD_SETLK, b, fcntl.F_WRLCK, 0, 0)
assert tries('posix') == 7
os.close(os.open(path, os.O_RDWR))
assert tries('posix') == 7, 'such a lock belongs to the open file'
os.close(b)
assert tries('posix') == 0, 'and ends with it'

fcntl.lockf(a, fcntl.LOCK_EX)
class Alarm(Exception): pass
def ring(*_): raise Alarm
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.2)
    try: fcntl.lockf(a, fcntl.LOCK_EX)
    except Alarm: os._exit(0)
    os._exit(1)
assert os.waitpid(pid, 0)[1] == 0, 'a wait ends with a signal'
pid = os.fork()
if pid == 0:
    fcntl.lockf(a, fcntl.LOCK_EX); os._exit(0)
fcntl.lockf(a, fcntl.LOCK_UN)
assert os.waitpid(pid, 0)[1] == 0, 'a wait ends with the lock'
`
	if out, err := exec.Command(python, "-c", script, m.Mountpoint()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	waitFor(t, "all locks to be gone", func() bool { return m.tree.locks.held() == 0 })
}

// waitFor gives what arrives after a program's end (RELEASE) the time to do so.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited for %s", what)
}

// The kernel may drop a queued RELEASE when the mount goes: the unfinished line must become a record all the same.
func TestUnfinishedLineAndUnmountAtOnce(t *testing.T) {
	for range 20 {
		e := storagetest.NewMemory()
		if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: "t", Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		m, err := Mount(t.Context(), e, MountOptions{Mountpoint: t.TempDir(), Tree: Options{Now: time.Now}})
		if err != nil {
			skipOrFail(t, err)
		}
		out, err := exec.Command("sh", "-c", `printf hi > "$1/t/0/tail"; umount "$1"`, "sh", m.Mountpoint()).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "busy") {
			t.Fatalf("%v: %s", err, out)
		}
		if err := m.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.Wait()
		p, err := e.Partition(t.Context(), storage.TopicPartition{Topic: "t"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.End(); got != 1 {
			t.Fatalf("got %d records, want 1", got)
		}
	}
}
