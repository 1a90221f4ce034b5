package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Chmod implements FS. Like Chown it does not follow a symbolic link. Kernels before 6.6 cannot say so in one call.
func (osFS) Chmod(name string, perm fs.FileMode) error {
	err := unix.Fchmodat(unix.AT_FDCWD, name, uint32(perm.Perm()), unix.AT_SYMLINK_NOFOLLOW)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return pathError("chmod", name, err)
	}
	fi, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		return pathError("chmod", name, syscall.ELOOP)
	}
	return os.Chmod(name, perm.Perm())
}

// Usage implements FS.
func (osFS) Usage(name string) (Usage, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(name, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Usage{}, pathError("statfs", name, err)
		}
		break
	}
	unit := int64(st.Frsize) //nolint:unconvert // narrower on 32-bit machines
	if unit <= 0 {
		unit = int64(st.Bsize) //nolint:unconvert // as above
	}
	return usageOf(&st, unit, os.Geteuid() == 0), nil
}

// usageOf counts what a file system keeps for root as available to root: it is root's writes that succeed then.
func usageOf(st *unix.Statfs_t, unit int64, root bool) Usage {
	u := Usage{
		Total: int64(st.Blocks) * unit, Free: int64(st.Bfree) * unit, Avail: int64(st.Bavail) * unit,
		Files: int64(st.Files), FilesFree: int64(st.Ffree),
	}
	if root {
		u.Avail = u.Free
	}
	return u
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// lockTries bounds how often Lock starts again because the file was unlinked between its open and its lock: each time somebody else has just ended.
const lockTries = 16

// Lock implements FS.
func (o osFS) Lock(name string, perm fs.FileMode) (Lock, error) {
	for range lockTries {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, perm)
		if err != nil {
			return nil, err
		}
		l := &osLock{name: name, f: f}
		err = setLock(f)
		if err == nil && l.oursOpen() {
			return l, nil
		}
		holder := 0
		if isContention(err) {
			holder = lockHolder(f, name)
		}
		_ = f.Close() // nothing was written to it
		switch {
		case isContention(err):
			return nil, &LockedError{Path: name, PID: holder}
		case err != nil:
			return nil, pathError("lock", name, err)
		}
	}
	return nil, fmt.Errorf("lock %s: the file is replaced again and again: %w", name, &LockedError{Path: name})
}

// Locked implements FS. To ask takes no more than to read the file.
func (osFS) Locked(name string) (bool, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0) // a pipe of that name must not make it wait
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // nothing was written to it
	lk, err := getLock(f)
	if err != nil {
		return false, pathError("lock", name, err)
	}
	return lk.Type != unix.F_UNLCK, nil
}

// getLock returns a lock that keeps the whole file from being locked. Its type is F_UNLCK where there is none.
func getLock(f *os.File) (unix.Flock_t, error) {
	lk := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lk)
	return lk, err
}

func isContention(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES)
}

// setLock takes a write lock on the whole file for its open file description: unlike a POSIX lock it is not lost when another descriptor of the file
// is closed, and it excludes other engines of the same process.
func setLock(f *os.File) error {
	lk := unix.Flock_t{Type: unix.F_WRLCK}
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
