package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
)

// TestMain lets the test binary serve a mount in a process of its own, as a daemon does: to be killed, and to be mounted by somebody who is not root.
func TestMain(m *testing.M) {
	if mnt := os.Getenv("FS_TEST_SERVE"); mnt != "" {
		os.Exit(serveForTest(mnt))
	}
	os.Exit(m.Run())
}

// serveForTest mounts at mnt, prints a line, and serves until it is unmounted or its standard input ends.
func serveForTest(mnt string) int {
	e := storagetest.NewMemory()
	m, err := Mount(context.Background(), e, MountOptions{Mountpoint: mnt, FSName: "/data/of the,test", Tree: Options{Now: time.Now, Version: "test"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		if err := m.Shutdown(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	fmt.Println("mounted")
	m.Wait()
	if err := e.Close(); err != nil {
		return 1
	}
	return 0
}

// mountMemory mounts an empty engine at a new directory and unmounts it at the end of the test. The test looks at it through other processes only.
func mountMemory(t *testing.T, change func(*MountOptions)) *Mounted {
	t.Helper()
	e := storagetest.NewMemory()
	o := MountOptions{Mountpoint: t.TempDir(), FSName: "/data/of the,test", Tree: Options{Now: time.Now, Version: "test"}}
	if change != nil {
		change(&o)
	}
	m, err := Mount(t.Context(), e, o)
	if err != nil {
		skipOrFail(t, err)
	}
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// sh runs a shell command and returns what it printed.
func sh(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// holder starts a program that keeps something open until the test ends or stop is called.
func holder(t *testing.T, script string) (stop func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+"; echo; read x")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func entryAt(t *testing.T, mountpoint string) (entry MountEntry, there bool) {
	t.Helper()
	entries, err := Mounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Mountpoint == mountpoint {
			entry, there = e, true
		}
	}
	return entry, there
}

func TestMountAnswersAndEnds(t *testing.T) {
	m := mountMemory(t, nil)
	if got := sh(t, "cat "+m.Mountpoint()+"/.logmount/version"); got != "test\n" {
		t.Errorf("version: got %q", got)
	}
	entry, there := entryAt(t, m.Mountpoint())
	if !there || entry.Source != "/data/of the,test" || entry.ReadOnly {
		t.Errorf("in the mount table: got %+v, %v", entry, there)
	}
	infos, _ := readMountInfo()
	top := topMount(infos, m.Mountpoint())
	if top == nil || !hasOption(top.super, "default_permissions") || !hasOption(top.super, "max_read=524288") || !hasOption(top.options, "nosuid") {
		t.Errorf("got %+v", top)
	}
	if err := m.Unmount(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Wait()
	if err := m.Unmount(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, there := entryAt(t, m.Mountpoint()); there {
		t.Error("still mounted")
	}
}

func TestMountReadOnlyAndFlags(t *testing.T) {
	m := mountMemory(t, func(o *MountOptions) { o.Tree.ReadOnly, o.Flags = true, []string{"noexec", "dev", "noatime"} })
	entry, _ := entryAt(t, m.Mountpoint())
	if !entry.ReadOnly {
		t.Errorf("got %+v", entry)
	}
	infos, _ := readMountInfo()
	if top := topMount(infos, m.Mountpoint()); !hasOption(top.options, "noexec") || hasOption(top.options, "nodev") || !hasOption(top.options, "noatime") {
		t.Errorf("got %s", top.options)
	}
	if out, err := exec.Command("mkdir", m.Mountpoint()+"/t").CombinedOutput(); err == nil || !strings.Contains(string(out), "Read-only file system") {
		t.Errorf("mkdir: got %v, %s", err, out)
	}
}

func TestMountEndsFromOutside(t *testing.T) {
	helper, err := findFusermount()
	if err != nil {
		skipOrFail(t, err)
	}
	m := mountMemory(t, nil)
	sh(t, helper+" -u "+m.Mountpoint())
	m.Wait()
	<-m.Done()
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMountRefusals(t *testing.T) {
	dir := t.TempDir()
	file, full, data := filepath.Join(dir, "file"), filepath.Join(dir, "full"), filepath.Join(dir, "data")
	for _, d := range []string{full, data, filepath.Join(data, "t-0"), filepath.Join(dir, "loop")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{file, full + "/a", full + "/b", full + "/c", full + "/d"} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"dangling": "nowhere", "l1": "l2", "l2": "l1"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, mountpoint, want string }{
		{"none", "", "no mount point given"},
		{"missing", dir + "/no", "does not exist: mkdir it first"},
		{"missing parent", dir + "/no/no", "does not exist: mkdir it first"},
		{"dangling link", dir + "/dangling", "does not exist: mkdir it first"},
		{"links in a circle", dir + "/l1", "too many levels of symbolic links"},
		{"file", file, "is not a directory"},
		{"not empty", full, "is not empty ("},
		{"the log directory", data, "would hide the log directory"},
		{"above the log directory", dir, "would hide the log directory"},
		{"in the log directory", data + "/t-0", "lies in the log directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := prepareMountpoint(t.Context(), tt.mountpoint, []string{"/elsewhere", data})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("through a link", func(t *testing.T) {
		link := filepath.Join(dir, "link")
		if err := os.Symlink("loop", link); err != nil {
			t.Fatal(err)
		}
		if got, err := prepareMountpoint(t.Context(), link+"/.", []string{data}); err != nil || got != filepath.Join(dir, "loop") {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("already mounted", func(t *testing.T) {
		m := mountMemory(t, nil)
		_, err := Mount(t.Context(), storagetest.NewMemory(), MountOptions{Mountpoint: m.Mountpoint(), Tree: Options{Now: time.Now}})
		if want := "is already mounted at"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
	t.Run("an option that the kernel does not know", func(t *testing.T) {
		mnt := t.TempDir()
		_, err := Mount(t.Context(), storagetest.NewMemory(), MountOptions{Mountpoint: mnt, Flags: []string{"nonsense"}, Tree: Options{Now: time.Now}})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
		if _, there := entryAt(t, mnt); there {
			t.Error("a mount is left behind")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		mnt := t.TempDir()
		if _, err := Mount(ctx, storagetest.NewMemory(), MountOptions{Mountpoint: mnt, Tree: Options{Now: time.Now}}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBusyMount(t *testing.T) {
	m := mountMemory(t, nil)
	stop := holder(t, "cd "+m.Mountpoint())
	err := m.Unmount(t.Context())
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "sh (pid ") {
		t.Errorf("got %v", err)
	}
	if _, there := entryAt(t, m.Mountpoint()); !there {
		t.Fatal("unmounted although busy")
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, there := entryAt(t, m.Mountpoint()); there {
		t.Error("still there after Shutdown")
	}
	select {
	case <-m.Done():
		t.Error("the holder was cut off")
	default:
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	stop()
	m.Wait()
}

// What is mounted later at the same place is none of a detached mount's business.
func TestShutdownTakesOnlyItsOwnMount(t *testing.T) {
	first := mountMemory(t, nil)
	holder(t, "cd "+first.Mountpoint())
	if err := Unmount(t.Context(), first.Mountpoint(), true); err != nil {
		t.Fatal(err)
	}
	second := mountMemory(t, func(o *MountOptions) { o.Mountpoint = first.Mountpoint() })
	if err := first.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := sh(t, "cat "+second.Mountpoint()+"/.logmount/version"); got != "test\n" {
		t.Errorf("got %q", got)
	}
}

// daemon runs serveForTest in another process.
type daemon struct {
	*exec.Cmd
	said *bytes.Buffer
	done chan error
}

func startDaemon(t *testing.T, cmd *exec.Cmd, mnt string) *daemon {
	t.Helper()
	d := &daemon{Cmd: cmd, said: new(bytes.Buffer), done: make(chan error, 1)}
	cmd.Env = append(os.Environ(), "FS_TEST_SERVE="+mnt)
	cmd.Stderr = d.said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = stdin.Close()
		<-ended
		_ = exec.Command("umount", "-l", mnt).Run() // where the test has failed
	})
	line := make([]byte, 16)
	n, _ := stdout.Read(line)
	go func() {
		defer close(ended)
		d.done <- cmd.Wait()
	}()
	if string(line[:n]) != "mounted\n" {
		_ = stdin.Close()
		<-ended
		skipOrFail(t, errors.New(d.said.String()))
	}
	return d
}

func TestUnmountWaitsForTheDaemon(t *testing.T) {
	mnt := t.TempDir()
	d := startDaemon(t, exec.Command(os.Args[0]), mnt)
	var status mountStatus
	if err := json.Unmarshal([]byte(sh(t, "cat "+mnt+"/.logmount/status")), &status); err != nil || status.PID != d.Process.Pid {
		t.Errorf("status: %v, pid %d, want %d", err, status.PID, d.Process.Pid)
	}
	stop := holder(t, "cd "+mnt)
	if err := Unmount(t.Context(), mnt, false); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "working directory "+mnt) {
		t.Errorf("in use: got %v", err)
	}
	stop()
	if err := Unmount(t.Context(), mnt, false); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(d.Process.Pid, 0); err == nil { // it is a zombie until cmd.Wait has seen it
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.Process.Pid))
		if len(stat) > 0 && !bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("the daemon still runs: %s", stat)
		}
	}
	if err := <-d.done; err != nil {
		t.Errorf("the daemon: %v\n%s", err, d.said)
	}
	if err := Unmount(t.Context(), mnt, false); err == nil || !strings.Contains(err.Error(), "nothing is mounted at") {
		t.Errorf("again: got %v", err)
	}
	if err := Unmount(t.Context(), "/proc", false); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("/proc: got %v", err)
	}
}

// A daemon that was killed leaves a mount on which every call fails. The next mount, and umount, clear it away.
func TestDeadMountIsCleared(t *testing.T) {
	mnt := t.TempDir()
	d := startDaemon(t, exec.Command(os.Args[0]), mnt)
	holder(t, "cd "+mnt)
	_ = d.Process.Kill()
	<-d.done
	if _, there := entryAt(t, mnt); !there {
		t.Fatal("nothing is left to be cleared away")
	}
	m := mountMemory(t, func(o *MountOptions) { o.Mountpoint = mnt })
	if got := sh(t, "cat "+mnt+"/.logmount/version"); got != "test\n" {
		t.Errorf("got %q", got)
	}
	infos, _ := readMountInfo()
	n := 0
	for _, i := range infos {
		if i.mountpoint == mnt {
			n++
		}
	}
	if n != 1 {
		t.Errorf("got %d mounts on top of each other, want 1", n)
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnmountOfADeadMount(t *testing.T) {
	mnt := t.TempDir()
	d := startDaemon(t, exec.Command(os.Args[0]), mnt)
	_ = d.Process.Kill()
	<-d.done
	if err := Unmount(t.Context(), mnt, false); err != nil {
		t.Error(err)
	}
	if _, there := entryAt(t, mnt); there {
		t.Error("still there")
	}
}

// Nobody waits for ever for a daemon that does not answer.
func TestSilentDaemon(t *testing.T) {
	mnt := t.TempDir()
	d := startDaemon(t, exec.Command(os.Args[0]), mnt)
	if err := d.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Process.Kill() })
	for !stopped(t, d.Process.Pid) { // the signal reaches one thread after the other
		runtime.Gosched()
	}
	if err := Unmount(t.Context(), mnt, false); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("umount: got %v", err)
	}
	if _, err := prepareMountpoint(t.Context(), mnt, []string{"/data"}); err == nil || !strings.Contains(err.Error(), "is already mounted at") {
		t.Errorf("mount: got %v", err)
	}
	if err := Unmount(t.Context(), mnt, true); err != nil {
		t.Error(err)
	}
	if _, there := entryAt(t, mnt); there {
		t.Error("still there")
	}
}

// stopped reports whether each thread of a process has been stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatalf("process %d: %v", pid, err)
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			return false
		}
		if _, state, _ := bytes.Cut(b, []byte(") ")); len(state) == 0 || state[0] != 'T' {
			return false
		}
	}
	return true
}

func TestUnprivilegedMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	if _, err := findFusermount(); err != nil {
		skipOrFail(t, err)
	}
	const uid = 65534
	dir, err := os.MkdirTemp("", "unprivileged") //nolint:usetesting // t.TempDir's parent is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	mnt, binary, device := filepath.Join(dir, "mnt"), filepath.Join(dir, "fs.test"), filepath.Join(dir, "fuse")
	if err := errors.Join(os.Mkdir(mnt, 0o755), os.Chmod(dir, 0o755), os.Chown(mnt, uid, uid)); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	// /dev/fuse may be for root only: in a name space of its own the test has one for everybody.
	script := `set -e
mount --make-rprivate /
mknod -m 0666 "$2" c 10 229
mount --bind "$2" /dev/fuse
as="setpriv --reuid 65534 --regid 65534 --clear-groups"
mkfifo -m 0666 "$1.stop" "$1.up"
$as "$3" <"$1.stop" >"$1.up" & pid=$!
exec 9>"$1.stop"
read up <"$1.up"; test "$up" = mounted
test "$($as cat "$1/.logmount/version")" = test
grep " $1 " /proc/self/mounts
if cat "$1/.logmount/version" 2>/dev/null; then echo root came in; fi
FS_TEST_SERVE= "$3" -test.run TestWhoServes -test.v | grep "served by $pid"
exec 9>&-
wait $pid
if grep -q " $1 " /proc/self/mounts; then echo still mounted; exit 1; fi`
	cmd := exec.Command("unshare", "-m", "sh", "-c", script, "sh", mnt, device, binary)
	cmd.Env = append(os.Environ(), "FS_TEST_SERVE="+mnt, "FS_TEST_MOUNTED="+mnt)
	out, err := cmd.CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "unshare") || strings.Contains(string(out), "mknod") {
			skipOrFail(t, errors.New(oneLine(string(out))))
		}
		t.Fatalf("%v\n%s", err, out)
	}
	if got := string(out); !strings.Contains(got, `fuse.logmount`) || !strings.Contains(got, `/data/of\040the,test`) || !strings.Contains(got, "user_id=65534") ||
		strings.Contains(got, "root came in") {
		t.Errorf("got %s", got)
	}
}

// TestWhoServes is run by TestUnprivilegedMount, by root, who may not enter the mount.
func TestWhoServes(t *testing.T) {
	mnt := os.Getenv("FS_TEST_MOUNTED")
	if mnt == "" {
		t.SkipNow()
	}
	infos, err := readMountInfo()
	if err != nil {
		t.Fatal(err)
	}
	p, err := daemonOf(t.Context(), mnt, infos)
	if p == nil || err != nil {
		t.Fatalf("nobody, %v", err)
	}
	defer p.close()
	t.Logf("served by %d", p.pid)
}

func TestErrorsOfTheDevice(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{&deviceError{syscall.ENOENT}, "there is no /dev/fuse: modprobe fuse, or in a container start it with --device /dev/fuse --cap-add SYS_ADMIN"},
		{&deviceError{&os.PathError{Op: "open", Path: fuseDevice, Err: syscall.EPERM}}, "cannot open /dev/fuse: operation not permitted: modprobe fuse, or"},
		{&deviceError{syscall.EACCES}, "cannot open /dev/fuse: permission denied: it is there but may not be opened by everybody: as root, chmod 666 /dev/fuse"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		if !deviceTrouble(fmt.Errorf("x: %w", tt.err)) {
			t.Errorf("%v is not seen as trouble with the device", tt.err)
		}
	}
	if got := escapeOption(`a,b\c`); got != `a\,b\\c` {
		t.Errorf("got %s", got)
	}
	if _, err := Mount(t.Context(), storage.Engine(storagetest.NewMemory()), MountOptions{Tree: Options{Now: time.Now}}); err == nil {
		t.Error("mounted nowhere")
	}
}
