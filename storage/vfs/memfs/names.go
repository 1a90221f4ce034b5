package memfs

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// key is one name in one directory.
type key struct {
	dir  *node
	base string
}

// change is a change of names that is not durable yet. It becomes so as a whole.
type change struct {
	set     map[key]*node // nil: the name is removed
	removed *node         // a directory whose name is removed: it was empty by then
}

// dependency finds out which changes need which: it holds the keys of some changes, and the directories that these are in or remove.
type dependency struct {
	keys    map[key]struct{}
	dirs    map[*node]struct{}
	removed map[*node]struct{}
}

func newDependency() *dependency {
	return &dependency{keys: make(map[key]struct{}), dirs: make(map[*node]struct{}), removed: make(map[*node]struct{})}
}

func (d *dependency) add(c *change) {
	for k := range c.set {
		d.keys[k] = struct{}{}
		d.dirs[k.dir] = struct{}{}
	}
	if c.removed != nil {
		d.removed[c.removed] = struct{}{}
	}
}

// shares reports whether c changes a name that one of the added changes does too.
func (d *dependency) shares(c *change) bool {
	for k := range c.set {
		if _, ok := d.keys[k]; ok {
			return true
		}
	}
	return false
}

// before reports whether one of the added changes cannot have happened without c, which is earlier than all of them.
func (d *dependency) before(c *change) bool {
	for k := range c.set {
		if _, ok := d.removed[k.dir]; ok {
			return true
		}
	}
	return d.shares(c)
}

// after reports whether c cannot have happened without one of the added changes, all of which are earlier.
func (d *dependency) after(c *change) bool {
	_, ok := d.dirs[c.removed]
	return ok || d.shares(c)
}

// record does a change now and remembers that it is not durable.
func (m *FS) record(c *change) {
	now := m.now()
	for k, n := range c.set {
		if n == nil {
			delete(k.dir.names, k.base)
		} else {
			k.dir.names[k.base] = n
		}
		k.dir.meta.modified = now
	}
	m.changes = append(m.changes, c)
}

// create makes a file under a name that does not exist.
func (m *FS) create(name string, perm fs.FileMode) (*node, error) {
	dir, base, err := m.parent(name)
	if err != nil {
		return nil, err
	}
	n := m.newNode(perm)
	n.links = 1
	m.record(&change{set: map[key]*node{{dir, base}: n}})
	return n, nil
}

// Mkdir implements vfs.FS.
func (m *FS) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err == nil && (base == "" || dir.names[base] != nil) {
		err = syscall.EEXIST
	}
	if err != nil {
		return pathError("mkdir", name, err)
	}
	n := m.newNode(fs.ModeDir | perm.Perm())
	n.links = 1
	m.record(&change{set: map[key]*node{{dir, base}: n}})
	return nil
}

// Remove implements vfs.FS.
func (m *FS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return pathError("remove", name, m.remove(name))
}

func (m *FS) remove(name string) error {
	dir, base, err := m.parent(name)
	if err != nil {
		return err
	}
	n := dir.names[base]
	switch {
	case base == "":
		return syscall.EBUSY
	case n == nil:
		return syscall.ENOENT
	case n.isDir() && len(n.names) > 0:
		return syscall.ENOTEMPTY
	}
	c := &change{set: map[key]*node{{dir, base}: nil}}
	if n.isDir() {
		c.removed = n
	}
	m.record(c)
	m.unlink(n)
	return nil
}

func (m *FS) unlink(n *node) {
	n.links--
	m.release(n)
}

// Rename implements vfs.FS. Like vfs.OS it never replaces a directory.
func (m *FS) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return pathError("rename", oldname, m.rename(oldname, newname))
}

func (m *FS) rename(oldname, newname string) error {
	from, oldbase, err := m.parent(oldname)
	if err != nil {
		return err
	}
	n := from.names[oldbase]
	if n == nil {
		return syscall.ENOENT
	}
	to, newbase, err := m.parent(newname)
	if err != nil {
		return err
	}
	there := to.names[newbase]
	switch {
	case newbase == "" || there != nil && there.isDir():
		return syscall.EEXIST
	case n.isDir() && strings.HasPrefix(clean(newname), clean(oldname)+string(filepath.Separator)):
		return syscall.EINVAL
	case there == n:
		return nil
	case there != nil && n.isDir():
		return syscall.ENOTDIR
	}
	m.record(&change{set: map[key]*node{{from, oldbase}: nil, {to, newbase}: n}})
	if there != nil {
		m.unlink(there)
	}
	return nil
}

// SyncDir implements vfs.FS.
func (m *FS) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && !n.isDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("sync", name, err)
	}
	m.syncDir(n)
	return nil
}

// syncDir makes the changes durable that touch dir, and those before them without which they could not have happened.
func (m *FS) syncDir(dir *node) {
	d := newDependency()
	must := make([]bool, len(m.changes))
	for i, c := range slices.Backward(m.changes) {
		must[i] = c.touches(dir) || d.before(c)
		if must[i] {
			d.add(c)
		}
	}
	var rest []*change
	for i, c := range m.changes {
		if must[i] {
			c.apply()
		} else {
			rest = append(rest, c)
		}
	}
	m.changes = rest
	dir.syncMeta()
}

func (c *change) touches(dir *node) bool {
	for k := range c.set {
		if k.dir == dir {
			return true
		}
	}
	return false
}

// apply makes a change durable.
func (c *change) apply() {
	for k, n := range c.set {
		if n == nil {
			delete(k.dir.durableNames, k.base)
		} else {
			k.dir.durableNames[k.base] = n
		}
	}
}
