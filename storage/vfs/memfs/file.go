package memfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/logmount/logmount/storage/vfs"
)

// OpenFile implements vfs.FS.
func (m *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.openNode(name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	n.opens++
	f := &file{m: m, n: n, name: name, write: flag&(os.O_RDWR|os.O_WRONLY) != 0}
	m.open[f] = struct{}{}
	return f, nil
}

func (m *FS) openNode(name string, flag int, perm fs.FileMode) (*node, error) {
	n, err := m.find(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		return m.create(name, perm.Perm())
	case err != nil:
		return nil, err
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, syscall.EEXIST
	case n.isDir() && flag&(os.O_RDWR|os.O_WRONLY|os.O_CREATE|os.O_TRUNC) != 0:
		return nil, syscall.EISDIR
	}
	if flag&os.O_TRUNC != 0 {
		m.truncate(n, 0)
	}
	return n, nil
}

// file is a descriptor.
type file struct {
	m      *FS
	n      *node
	name   string
	write  bool
	closed bool // guarded by m.mu
}

// check needs m.mu.
func (f *file) check(op string, write bool) error {
	switch {
	case f.closed:
		return pathError(op, f.name, fs.ErrClosed)
	case write && !f.write:
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	if err := f.check("read", false); err != nil {
		return 0, err
	}
	switch {
	case pos < 0:
		return 0, pathError("readat", f.name, errors.New("negative offset"))
	case len(p) == 0:
		return 0, nil
	case f.n.isDir():
		return 0, pathError("read", f.name, syscall.EISDIR)
	}
	n := f.n.now.readAt(p, pos)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, pos int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("write", true); err != nil {
		return 0, err
	}
	switch {
	case pos < 0:
		return 0, pathError("writeat", f.name, errors.New("negative offset"))
	case len(p) == 0:
		return 0, nil
	case pos > maxSize-int64(len(p)):
		return 0, pathError("write", f.name, syscall.EFBIG)
	}
	n := f.m.writeNode(f.n, p, pos)
	if n < len(p) {
		return n, pathError("write", f.name, syscall.ENOSPC)
	}
	return n, nil
}

// writeNode writes as much of p as there is room for.
func (m *FS) writeNode(n *node, p []byte, pos int64) int {
	written := 0
	before := n.now.used()
	pieces(p, pos, func(piece []byte, pos int64) bool {
		fit := int64(len(piece))
		if m.capacity > 0 {
			fit = n.now.fits(pos, fit, m.capacity-m.used-(n.now.used()-before))
		}
		n.now.writeAt(piece[:fit], pos)
		written += int(fit)
		return fit == int64(len(piece))
	})
	if written > 0 {
		m.used += n.now.used() - before
		n.pending = append(n.pending, op{pos: pos, data: slices.Clone(p[:written])})
		n.meta.modified = m.now()
	}
	return written
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("truncate", false); err != nil {
		return err
	}
	switch {
	case !f.write, size < 0:
		return pathError("truncate", f.name, syscall.EINVAL)
	case size > maxSize:
		return pathError("truncate", f.name, syscall.EFBIG)
	}
	f.m.truncate(f.n, size)
	return nil
}

// maxSize is the largest size of a file: a mistaken one must not become a list of blocks that does not fit into memory.
const maxSize = 1 << 36

func (m *FS) truncate(n *node, size int64) {
	before := n.now.used()
	n.now.resize(size)
	m.used += n.now.used() - before
	n.pending = append(n.pending, op{pos: size})
	n.meta.modified = m.now()
}

// Sync implements vfs.File.
func (f *file) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("sync", false); err != nil {
		return err
	}
	if f.n.isDir() {
		f.m.syncDir(f.n)
		return nil
	}
	f.n.sync()
	return nil
}

// Stat implements vfs.File.
func (f *file) Stat() (vfs.FileInfo, error) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	if err := f.check("stat", false); err != nil {
		return vfs.FileInfo{}, err
	}
	return f.n.info(), nil
}

// Close implements vfs.File.
func (f *file) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("close", false); err != nil {
		return err
	}
	f.closed = true
	delete(f.m.open, f)
	f.n.opens--
	f.m.release(f.n)
	return nil
}
