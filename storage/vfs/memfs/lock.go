package memfs

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/logmount/logmount/storage/vfs"
)

// Lock implements vfs.FS.
func (m *FS) Lock(name string, perm fs.FileMode) (vfs.Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if errors.Is(err, fs.ErrNotExist) {
		n, err = m.create(name, perm.Perm())
	}
	if err == nil && n.isDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if m.locks[n] != nil {
		return nil, &vfs.LockedError{Path: name}
	}
	n.opens++
	l := &lock{m: m, n: n, name: name}
	m.locks[n] = l
	return l, nil
}

// Locked implements vfs.FS.
func (m *FS) Locked(name string) (bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, pathError("open", name, err)
	}
	return m.locks[n] != nil, nil
}

type lock struct {
	m    *FS
	n    *node
	name string
}

// Ours implements vfs.Lock.
func (l *lock) Ours() bool {
	l.m.mu.RLock()
	defer l.m.mu.RUnlock()
	return l.ours()
}

func (l *lock) ours() bool {
	n, err := l.m.find(l.name)
	return err == nil && n == l.n && l.m.locks[n] == l
}

// Release implements vfs.Lock. A second call does nothing.
func (l *lock) Release() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.locks[l.n] != l {
		return nil
	}
	var err error
	if l.ours() {
		err = pathError("remove", l.name, l.m.remove(l.name))
	}
	delete(l.m.locks, l.n)
	l.n.opens--
	l.m.release(l.n)
	return err
}
