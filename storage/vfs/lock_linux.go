package vfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/logmount/logmount/storage"
)

// LockedError says who holds a lock that Lock could not take. errors.Is(err, storage.ErrLocked) holds for it.
type LockedError struct {
	Path string
	PID  int // 0 where unknown
}

// Error implements error.
func (e *LockedError) Error() string {
	if e.PID > 0 {
		return fmt.Sprintf("%s: %v (process %d)", e.Path, storage.ErrLocked, e.PID)
	}
	return fmt.Sprintf("%s: %v", e.Path, storage.ErrLocked)
}

// Unwrap implements errors.Unwrap.
func (e *LockedError) Unwrap() error { return storage.ErrLocked }

type osLock struct {
	name string

	mu sync.Mutex // guards f
	f  *os.File   // nil once released
}

// Ours implements Lock.
func (l *osLock) Ours() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f != nil && l.oursOpen()
}

// oursOpen compares what is locked with what the path names. It needs mu, or a lock that nobody else knows yet.
func (l *osLock) oursOpen() bool {
	held, err := l.f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(l.name)
	return err == nil && os.SameFile(held, named)
}

// Release implements Lock. A second call does nothing.
func (l *osLock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	var err error
	if l.oursOpen() {
		err = os.Remove(l.name)
	}
	cerr := l.f.Close()
	l.f = nil
	if err != nil {
		return err
	}
	return cerr
}

// lockHolder finds the process that keeps f from being locked, or 0. The kernel names the holder of a POSIX lock (a broker); that of an open file
// description is found by looking through the descriptors of the processes that we may look at.
func lockHolder(f *os.File, name string) int {
	lk, err := getLock(f)
	if err != nil || lk.Type == unix.F_UNLCK {
		return 0
	}
	if lk.Pid > 0 {
		return int(lk.Pid)
	}
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	// A lock line of fdinfo ends in "device:inode start end".
	inode := fmt.Sprintf(":%d ", infoOf(fi).Ino)
	found := make(chan int, 1)
	go func() { found <- ofdHolder(filepath.Base(name), inode) }()
	select {
	case pid := <-found:
		return pid
	case <-time.After(holderTime): // a process that hangs may make whoever looks at it hang too
		return 0
	}
}

// holderTime is how long the search for the holder of a lock may take.
const holderTime = 3 * time.Second

// ofdHolder finds the process that has an open-file-description lock on a file of that base name and inode, or 0.
func ofdHolder(base, inode string) int {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if holds(filepath.Join("/proc", p.Name()), base, inode) {
			return pid
		}
	}
	return 0
}

// holds reports whether the process under dir has an open-file-description lock on a file of that base name and inode.
func holds(dir, base, inode string) bool {
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return false // gone, or not ours to look at
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
		if err != nil || filepath.Base(target) != base {
			continue
		}
		info, err := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name()))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(info)) {
			if strings.HasPrefix(line, "lock:") && strings.Contains(line, "OFDLCK") && strings.Contains(line, inode) {
				return true
			}
		}
	}
	return false
}
