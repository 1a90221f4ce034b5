package vfs_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

// TestMain turns the test binary into a process that holds a lock until its input ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[1], "hold-") {
		if err := hold(os.Args[1], os.Args[2]); err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hold(how, name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	cmd := unix.F_OFD_SETLK
	if how == "hold-posix" { // as a Java broker does
		cmd = unix.F_SETLK
	}
	if err := unix.FcntlFlock(f.Fd(), cmd, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

func TestLockOfAnotherProcess(t *testing.T) {
	for _, how := range []string{"hold-posix", "hold-ofd"} {
		t.Run(how, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), ".lock")
			cmd := exec.CommandContext(t.Context(), os.Args[0], how, name)
			in, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
				t.Fatalf("holder said %q, %v", line, err)
			}
			if held, err := vfs.OS().Locked(name); !held || err != nil {
				t.Errorf("locked %v, %v", held, err)
			}
			_, err = vfs.OS().Lock(name, 0o644)
			var locked *vfs.LockedError
			if !errors.Is(err, storage.ErrLocked) || !errors.As(err, &locked) {
				t.Fatalf("got %v, want %v", err, storage.ErrLocked)
			}
			if locked.PID != cmd.Process.Pid || locked.Path != name {
				t.Errorf("got %+v, want process %d", locked, cmd.Process.Pid)
			}
			must(t, in.Close())
			must(t, cmd.Wait())
			if held, err := vfs.OS().Locked(name); held || err != nil {
				t.Errorf("left: locked %v, %v", held, err)
			}
			l, err := vfs.OS().Lock(name, 0o644)
			must(t, err)
			must(t, l.Release())
		})
	}
}

// TestLockExcludesPOSIX: a broker that starts while we hold the lock must see it.
func TestLockExcludesPOSIX(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	l, err := vfs.OS().Lock(name, 0o644)
	must(t, err)
	out, err := exec.CommandContext(t.Context(), os.Args[0], "hold-posix", name).Output()
	if err == nil || string(out) == "held\n" {
		t.Errorf("somebody else got the lock as well: %q, %v", out, err)
	}
	must(t, l.Release())
}

// TestLockSurvivesOtherDescriptors: a POSIX lock would be lost as soon as any descriptor of the file is closed.
func TestLockSurvivesOtherDescriptors(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	l, err := vfs.OS().Lock(name, 0o644)
	must(t, err)
	_ = get(t, vfs.OS(), name)
	if _, err := vfs.OS().Lock(name, 0o644); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("got %v, want %v", err, storage.ErrLocked)
	}
	must(t, l.Release())
}

// TestOpenDoesNotWaitForFIFO: what lies in a stranger's directory may have any type.
func TestOpenDoesNotWaitForFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "0.log")
	must(t, unix.Mkfifo(name, 0o644))
	f := openFile(t, vfs.OS(), name, os.O_RDONLY)
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, syscall.ESPIPE) {
		t.Errorf("got %v, want %v", err, syscall.ESPIPE)
	}
}

// TestOwnerDoesNotFollowLinks: else whoever owns the directory could have root give away any file.
func TestOwnerDoesNotFollowLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	put(t, vfs.OS(), target, "")
	must(t, os.Symlink(target, link))
	if err := vfs.OS().Chmod(link, 0o777); err == nil {
		t.Error("chmod of a link: got no error")
	}
	if os.Getuid() == 0 {
		must(t, vfs.OS().Chown(link, 12, 34))
	}
	i, err := vfs.OS().Stat(link)
	must(t, err)
	if i.Mode != 0o644 || i.UID != uint32(os.Getuid()) {
		t.Errorf("the target was changed: %+v", i)
	}
}

func TestDescriptorsAreNotInherited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a file for nobody else")
	put(t, vfs.OS(), name, "")
	openFile(t, vfs.OS(), name, os.O_RDONLY)
	l, err := vfs.OS().Lock(name+".lock", 0o644)
	must(t, err)
	out, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").Output()
	must(t, err)
	if strings.Contains(string(out), "nobody else") {
		t.Errorf("a child has\n%s", out)
	}
	must(t, l.Release())
}
