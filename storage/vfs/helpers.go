package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrTooBig is what ReadFile returns for a file that is larger than its limit.
var ErrTooBig = errors.New("file is too big")

// ErrNotDurable is what WriteFile returns where the new file has its name but may lose it in a crash. With any other error the old file is as it was.
var ErrNotDurable = errors.New("in place, but may not last")

// TempSuffix is what WriteFile appends to a name while the file is not complete. After a crash such a file may be left and can be removed.
const TempSuffix = ".tmp"

// Owner is who new files and directories belong to and the permission bits of the directory that they were copied from.
type Owner struct {
	UID, GID uint32
	Mode     fs.FileMode // bits of a directory; files get them without the execute bits; 0 leaves the bits alone
}

// OwnerOf returns the owner that things made inside or beside what i describes should have.
func OwnerOf(i FileInfo) Owner { return Owner{UID: i.UID, GID: i.GID, Mode: i.Mode.Perm()} }

// Apply gives name, a file or directory, to o. It changes only what differs: a user who is not root may not even repeat a change.
func (o *Owner) Apply(fsys FS, name string) error {
	i, err := fsys.Stat(name)
	if err != nil {
		return fmt.Errorf("set owner: %w", err)
	}
	if i.UID != o.UID || i.GID != o.GID {
		if err := fsys.Chown(name, o.UID, o.GID); err != nil {
			return fmt.Errorf("set owner: %w", err)
		}
	}
	want := o.Mode.Perm()
	if !i.IsDir() {
		want &^= 0o111
	}
	if o.Mode.Perm() != 0 && i.Mode.Perm() != want {
		if err := fsys.Chmod(name, want); err != nil {
			return fmt.Errorf("set mode: %w", err)
		}
	}
	return nil
}

// Exists reports whether there is something under name. An error other than fs.ErrNotExist (a directory that may not be searched) is returned.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Stat(name)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, err
}

// ReadFile returns a whole file, or ErrTooBig where it has more than limit bytes; it allocates by what it could read, not by what Stat says.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	i, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if i.Size > limit {
		return nil, fmt.Errorf("read %s: %w: %d bytes, at most %d", name, ErrTooBig, i.Size, limit)
	}
	buf := make([]byte, 0, min(max(i.Size, 0)+1, 1<<20))
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.ReadAt(buf[len(buf):cap(buf)], int64(len(buf)))
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, fmt.Errorf("read %s: %w: more than %d bytes", name, ErrTooBig, limit)
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// WriteFile puts data under name so that a crash leaves either the old file or the whole new one: it writes and syncs a sibling, renames it and syncs
// the directory. Where that fails the sibling is removed and the old file is still there; only if the last step fails (ErrNotDurable), the new one
// is, but may not last. With an owner the file is given to it before it gets its name.
func WriteFile(fsys FS, name string, data []byte, perm fs.FileMode, owner *Owner) error {
	if err := writeFile(fsys, name, data, perm, owner); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func writeFile(fsys FS, name string, data []byte, perm fs.FileMode, owner *Owner) error {
	temp := name + TempSuffix
	f, err := createNew(fsys, temp, perm)
	if err != nil {
		return err
	}
	if err := fill(fsys, f, temp, data, owner); err != nil {
		_ = fsys.Remove(temp) // the first error is the one to tell
		return err
	}
	if err := fsys.Rename(temp, name); err != nil {
		_ = fsys.Remove(temp)
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	return nil
}

// createNew makes a file that was not there. What an earlier crash left under the name is removed rather than opened, as it might be a link.
func createNew(fsys FS, name string, perm fs.FileMode) (File, error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := fsys.Remove(name); err != nil {
		return nil, err
	}
	return fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
}

// fill writes and syncs data and closes f in any case.
func fill(fsys FS, f File, name string, data []byte, owner *Owner) error {
	_, err := f.WriteAt(data, 0)
	if err == nil && owner != nil {
		err = owner.Apply(fsys, name)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// MkdirAll makes a directory and the missing ones above it and makes their names durable. It is no error if it is there already.
func MkdirAll(fsys FS, name string, perm fs.FileMode) error {
	i, err := fsys.Stat(name)
	if err == nil {
		if !i.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(name)
	if parent == name {
		return err
	}
	if err := MkdirAll(fsys, parent, perm); err != nil {
		return err
	}
	// Somebody else may have made it in the meantime.
	if err := fsys.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}
