// Package memfs is a disk in memory that knows what has been synced, and can be cut off from its power.
//
// It behaves as vfs.OS() does for root with umask 0 (one test suite runs over both), but has no links. Beyond that it keeps, beside the present state, the state that is
// certain to survive a crash: file contents as of the last File.Sync, names as of the last SyncDir of their directory. Crash returns what a
// disk may hold afterwards.
//
// Invariants:
//
//	M1  What was synced is found again after every crash.
//	M2  Of each unsynced write every 4 KiB block lands or does not by itself, and so does the growth of the file: bytes between may be zeros.
//	M3  A change of names happens wholly or not at all; a change is lost together with every later one to the same name. A renamed file is
//	    found under its old name or its new one.
//	M4  A Crash leaves the file system that it was taken of as it was, and shares nothing with it that could change.
//
// One lock guards everything: it is made for tests, not for speed.
package memfs

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/logmount/logmount/storage/vfs"
)

// FS implements vfs.FS. Names are taken from the root, which is all that a new one has.
type FS struct {
	mu       sync.RWMutex // guards everything below, and all nodes
	root     *node
	inos     uint64
	changes  []*change // of names, not yet durable, oldest first
	capacity int64     // 0: no limit
	used     int64     // bytes of all files that have a name or are open
	ticks    int64
	clock    func() int64
	open     map[*file]struct{}
	locks    map[*node]*lock
}

var _ vfs.FS = (*FS)(nil)

// New returns an empty disk.
func New() *FS {
	m := &FS{open: make(map[*file]struct{}), locks: make(map[*node]*lock)}
	m.root = m.newNode(fs.ModeDir | 0o755)
	m.root.links = 1
	m.root.syncMeta()
	return m
}

// SetClock sets where times of modification come from, in nanoseconds since the Unix epoch. Without one every change is a millisecond later
// than the one before.
func (m *FS) SetClock(now func() int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = now
}

// SetCapacity sets how many bytes all files may have together; 0 or less is no limit. Holes are free. A write beyond it is cut short and
// fails with ENOSPC.
func (m *FS) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = max(bytes, 0)
}

// Used returns how many bytes all files have together, as SetCapacity counts them.
func (m *FS) Used() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.used
}

// OpenFiles returns the names, as they were opened, of all files and locks that have not been closed, sorted.
func (m *FS) OpenFiles() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var names []string
	for f := range m.open {
		names = append(names, f.name)
	}
	for _, l := range m.locks {
		names = append(names, l.name)
	}
	slices.Sort(names)
	return names
}

// Stat implements vfs.FS.
func (m *FS) Stat(name string) (vfs.FileInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err != nil {
		return vfs.FileInfo{}, pathError("stat", name, err)
	}
	return n.info(), nil
}

// ReadDir implements vfs.FS.
func (m *FS) ReadDir(name string) ([]vfs.DirEntry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err == nil && !n.isDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	entries := make([]vfs.DirEntry, 0, len(n.names))
	for name, child := range n.names {
		entries = append(entries, vfs.DirEntry{Name: name, Mode: child.meta.mode.Type()})
	}
	slices.SortFunc(entries, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// Chown implements vfs.FS.
func (m *FS) Chown(name string, uid, gid uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return pathError("chown", name, err)
	}
	n.meta.uid, n.meta.gid = uid, gid
	return nil
}

// Chmod implements vfs.FS.
func (m *FS) Chmod(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return pathError("chmod", name, err)
	}
	n.meta.mode = n.meta.mode.Type() | perm.Perm()
	return nil
}

// unlimited is the size that a disk without a capacity claims to have.
const unlimited = 1 << 40

// Usage implements vfs.FS.
func (m *FS) Usage(name string) (vfs.Usage, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if _, err := m.find(name); err != nil {
		return vfs.Usage{}, pathError("statfs", name, err)
	}
	total := m.capacity
	if total == 0 {
		total = unlimited
	}
	free := max(total-m.used, 0)
	return vfs.Usage{Total: total, Free: free, Avail: free, Files: 1 << 20, FilesFree: max(1<<20-int64(m.inos), 0)}, nil
}

// find returns the node of a name. It needs mu, as everything here that is not exported.
func (m *FS) find(name string) (*node, error) {
	n := m.root
	for part := range strings.SplitSeq(clean(name), "/") {
		if part == "" {
			continue
		}
		if !n.isDir() {
			return nil, syscall.ENOTDIR
		}
		if n = n.names[part]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

// parent returns the directory that holds, or would hold, a name, and the last part of it; the empty part for the root.
func (m *FS) parent(name string) (dir *node, base string, err error) {
	name = clean(name)
	if name == "/" {
		return m.root, "", nil
	}
	dir, err = m.find(filepath.Dir(name))
	if err == nil && !dir.isDir() {
		err = syscall.ENOTDIR
	}
	return dir, filepath.Base(name), err
}

func clean(name string) string { return filepath.Clean("/" + name) }

func (m *FS) now() int64 {
	if m.clock != nil {
		return m.clock()
	}
	m.ticks++
	return 1_700_000_000_000_000_000 + m.ticks*1_000_000
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
