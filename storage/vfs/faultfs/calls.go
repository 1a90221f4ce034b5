package faultfs

import (
	"fmt"
	"io/fs"

	"github.com/logmount/logmount/storage/vfs"
)

// OpenFile implements vfs.FS.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if _, err := f.count(OpOpen, name, ""); err != nil {
		return nil, err
	}
	in, err := f.inner.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &file{f: f, in: in, name: name}, nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	if _, err := f.count(OpRemove, name, ""); err != nil {
		return err
	}
	return f.inner.Remove(name)
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	if _, err := f.count(OpRename, oldname, " to "+newname); err != nil {
		return err
	}
	return f.inner.Rename(oldname, newname)
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	if _, err := f.count(OpMkdir, name, ""); err != nil {
		return err
	}
	return f.inner.Mkdir(name, perm)
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) ([]vfs.DirEntry, error) {
	if _, err := f.count(OpReadDir, name, ""); err != nil {
		return nil, err
	}
	return f.inner.ReadDir(name)
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.FileInfo, error) {
	if _, err := f.count(OpStat, name, ""); err != nil {
		return vfs.FileInfo{}, err
	}
	return f.inner.Stat(name)
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(name string) error {
	if _, err := f.count(OpSyncDir, name, ""); err != nil {
		return err
	}
	return f.inner.SyncDir(name)
}

// Chown implements vfs.FS.
func (f *FS) Chown(name string, uid, gid uint32) error {
	if _, err := f.count(OpChown, name, ""); err != nil {
		return err
	}
	return f.inner.Chown(name, uid, gid)
}

// Chmod implements vfs.FS.
func (f *FS) Chmod(name string, perm fs.FileMode) error {
	if _, err := f.count(OpChmod, name, ""); err != nil {
		return err
	}
	return f.inner.Chmod(name, perm)
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string, perm fs.FileMode) (vfs.Lock, error) {
	if _, err := f.count(OpLock, name, ""); err != nil {
		return nil, err
	}
	in, err := f.inner.Lock(name, perm)
	if err != nil {
		return nil, err
	}
	return &lock{f: f, in: in, name: name}, nil
}

// Locked implements vfs.FS.
func (f *FS) Locked(name string) (bool, error) {
	if _, err := f.count(OpOpen, name, ""); err != nil {
		return false, err
	}
	return f.inner.Locked(name)
}

// Usage implements vfs.FS.
func (f *FS) Usage(name string) (vfs.Usage, error) {
	if _, err := f.count(OpUsage, name, ""); err != nil {
		return vfs.Usage{}, err
	}
	return f.inner.Usage(name)
}

type file struct {
	f    *FS
	in   vfs.File
	name string
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	if _, err := f.f.count(OpRead, f.name, fmt.Sprintf(" %d at %d", len(p), pos)); err != nil {
		return 0, err
	}
	return f.in.ReadAt(p, pos)
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, pos int64) (int, error) {
	short, err := f.f.count(OpWrite, f.name, fmt.Sprintf(" %d at %d", len(p), pos))
	switch {
	case short:
		n, ierr := f.in.WriteAt(p[:len(p)/2], pos)
		if ierr != nil {
			err = ierr
		}
		return n, err
	case err != nil:
		return 0, err
	}
	return f.in.WriteAt(p, pos)
}

// Sync implements vfs.File.
func (f *file) Sync() error {
	if _, err := f.f.count(OpSync, f.name, ""); err != nil {
		return err
	}
	return f.in.Sync()
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	if _, err := f.f.count(OpTruncate, f.name, fmt.Sprintf(" to %d", size)); err != nil {
		return err
	}
	return f.in.Truncate(size)
}

// Stat implements vfs.File.
func (f *file) Stat() (vfs.FileInfo, error) {
	if _, err := f.f.count(OpFstat, f.name, ""); err != nil {
		return vfs.FileInfo{}, err
	}
	return f.in.Stat()
}

// Close implements vfs.File.
func (f *file) Close() error { return f.in.Close() }

type lock struct {
	f    *FS
	in   vfs.Lock
	name string
}

// Ours implements vfs.Lock.
func (l *lock) Ours() bool { return l.in.Ours() }

// Release implements vfs.Lock. One that is made to fail keeps the lock.
func (l *lock) Release() error {
	if _, err := l.f.count(OpRelease, l.name, ""); err != nil {
		return err
	}
	return l.in.Release()
}
