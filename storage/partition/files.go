package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// Files implements storage.Partition.
func (l *Log) Files(_ context.Context) ([]storage.FileInfo, error) {
	entries, err := l.env.FS.ReadDir(l.o.Dir)
	if err != nil {
		return nil, err
	}
	var out []storage.FileInfo
	for _, e := range entries {
		st, err := l.env.FS.Stat(l.path(e.Name))
		if err == nil && st.Mode.IsRegular() { // a link to nowhere is not a reason to show nothing
			out = append(out, l.fileInfo(e.Name, st))
		}
	}
	return out, nil
}

func (l *Log) fileInfo(name string, st vfs.FileInfo) storage.FileInfo {
	return storage.FileInfo{Name: name, Size: st.Size, Modified: st.Time(), Final: l.o.Final || l.sealed(name)}
}

// sealed reports whether a file belongs to a segment that will not be written to again.
func (l *Log) sealed(name string) bool {
	base, ext, suffix, ok := state.ParseFileName(name)
	if !ok || suffix != "" || ext == state.ExtSizeIndex {
		return false
	}
	s := l.snap.Load()
	i := s.find(base)
	return i < len(s.closed) && s.closed[i].Base == base && s.closed[i].Live == nil
}

// rawFile is an open file of the log. It implements storage.RawFile.
type rawFile struct {
	*vfs.Handle
	log  *Log
	name string
}

// Stat implements storage.RawFile.
func (f *rawFile) Stat() (storage.FileInfo, error) {
	st, err := f.Handle.Stat()
	if err != nil {
		return storage.FileInfo{}, err
	}
	return f.log.fileInfo(f.name, st), nil
}

// File implements storage.Partition.
func (l *Log) File(_ context.Context, name string) (storage.FileInfo, error) {
	if err := plain(name); err != nil {
		return storage.FileInfo{}, err
	}
	st, err := l.env.FS.Stat(l.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode.IsRegular():
		return storage.FileInfo{}, fmt.Errorf("%s: %w", l.path(name), storage.ErrOffsetGone)
	case err != nil:
		return storage.FileInfo{}, err
	}
	return l.fileInfo(name, st), nil
}

// plain refuses what is not the name of something in a directory.
func plain(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: %q", storage.ErrInvalidName, name)
	}
	return nil
}

// OpenFile implements storage.Partition.
func (l *Log) OpenFile(_ context.Context, name string) (storage.RawFile, error) {
	if err := plain(name); err != nil {
		return nil, err
	}
	h, st, err := l.openNamed(l.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", l.path(name), storage.ErrOffsetGone)
	}
	if err != nil {
		return nil, err
	}
	if !st.Mode.IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file", storage.ErrInvalidName, l.path(name))
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return &rawFile{Handle: h, log: l, name: name}, nil
}

// openNamed opens the file that has the name now. Files are replaced under their names, by their owner or by us, and the cache may have the one from before.
func (l *Log) openNamed(path string) (h *vfs.Handle, st vfs.FileInfo, err error) {
	for again := true; ; again = false {
		if h, err = l.env.Files.Open(path, os.O_RDONLY, 0); err != nil {
			return nil, st, err
		}
		st, err = h.Stat()
		var now vfs.FileInfo
		if err == nil {
			now, err = l.env.FS.Stat(path)
		}
		if err == nil && (now.Ino == st.Ino && now.Dev == st.Dev || !again) {
			return h, st, nil
		}
		h.Unpin()
		if err != nil {
			return nil, st, err
		}
		l.env.Files.Forget(path)
	}
}
