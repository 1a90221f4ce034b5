package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// OS returns the real disk.
func OS() FS { return osFS{} }

type osFS struct{}

// OpenFile implements FS. O_NONBLOCK means nothing to a regular file; it keeps a FIFO that lies in a stranger's directory under a log's name from
// blocking the open for ever.
func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Remove implements FS.
func (osFS) Remove(name string) error { return os.Remove(name) }

// Rename implements FS. A directory is never replaced.
func (osFS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// Mkdir implements FS.
func (osFS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }

// ReadDir implements FS. An entry is looked at only where the directory does not tell its type.
func (osFS) ReadDir(name string) ([]DirEntry, error) {
	list, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	entries := make([]DirEntry, len(list))
	for i, e := range list {
		entries[i] = DirEntry{Name: e.Name(), Mode: e.Type()}
	}
	return entries, nil
}

// Stat implements FS.
func (osFS) Stat(name string) (FileInfo, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return FileInfo{}, err
	}
	return infoOf(fi), nil
}

// SyncDir implements FS. EINVAL is how a file system says that its directories cannot be synced by themselves: there is nothing more to be had there.
func (osFS) SyncDir(name string) error {
	d, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// Chown implements FS. It does not follow a symbolic link: as root in somebody else's directory that would give away any file.
func (osFS) Chown(name string, uid, gid uint32) error { return os.Lchown(name, int(uid), int(gid)) }

type osFile struct{ f *os.File }

// ReadAt implements File.
func (o osFile) ReadAt(p []byte, pos int64) (int, error) { return o.f.ReadAt(p, pos) }

// WriteAt implements File.
func (o osFile) WriteAt(p []byte, pos int64) (int, error) { return o.f.WriteAt(p, pos) }

// Close implements File.
func (o osFile) Close() error { return o.f.Close() }

// Sync implements File.
func (o osFile) Sync() error { return o.f.Sync() }

// Truncate implements File.
func (o osFile) Truncate(size int64) error { return o.f.Truncate(size) }

// Stat implements File.
func (o osFile) Stat() (FileInfo, error) {
	fi, err := o.f.Stat()
	if err != nil {
		return FileInfo{}, err
	}
	return infoOf(fi), nil
}

func infoOf(fi fs.FileInfo) FileInfo {
	i := FileInfo{Size: fi.Size(), Mode: fi.Mode(), Modified: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		i.Ino, i.Dev, i.UID, i.GID = st.Ino, st.Dev, st.Uid, st.Gid
	}
	return i
}
