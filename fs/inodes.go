package fs

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// namesKept is how many dynamic names the kernel may remember before it is told to forget the one that was looked up longest ago.
const namesKept = 10000

// staleQueue is how many names may wait for the notifier.
const staleQueue = 1024

// inode is one object under the number by which the kernel knows it. A growing view has one for each lookup, so that no two opens share the kernel's
// inode lock; what cannot change keeps its own.
type inode struct {
	id      uint64
	ino     uint64 // st_ino, the same for all inodes of a path
	parent  *inode // nil for the root
	name    string
	node    node
	same    string
	dynamic bool

	lookups uint64 // guarded by inodeTable.mu
}

// path returns the path below the mount point.
func (in *inode) path() string {
	if in == nil || in.parent == nil {
		return "/"
	}
	var names []string
	for i := in; i.parent != nil; i = i.parent {
		names = append(names, i.name)
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(names[i])
	}
	return b.String()
}

// found is the answer to a lookup.
type found struct {
	node node
	ino  uint64
	// same names what was found: a lookup that finds the same under the same name gets the same inode, with what the kernel has cached of it. With ""
	// every lookup gets a new one.
	same string
	// keep is how long the kernel may believe the name without asking.
	keep time.Duration
	// dynamic is set for a name of which there are endlessly many.
	dynamic bool
}

// staleName is a name that the kernel should forget.
type staleName struct {
	parent uint64
	name   string
}

type inodeKey struct {
	parent     uint64
	name, same string
}

// inodeTable knows the inodes that the kernel knows, and which dynamic names were used last.
type inodeTable struct {
	stale chan staleName

	mu    sync.Mutex // guards what follows; a leaf
	byID  map[uint64]*inode
	byKey map[inodeKey]*inode
	next  uint64
	names map[staleName]*list.Element
	order *list.List // of usedName, the latest first
	limit int
}

type usedName struct {
	staleName
	latest uint64 // the inode that its last lookup gave
}

func newInodeTable(root node) *inodeTable {
	t := &inodeTable{
		stale: make(chan staleName, staleQueue),
		byID:  make(map[uint64]*inode),
		byKey: make(map[inodeKey]*inode),
		next:  2,
		names: make(map[staleName]*list.Element),
		order: list.New(),
		limit: namesKept,
	}
	t.byID[1] = &inode{id: 1, ino: 1, node: root, lookups: 1}
	return t
}

// get returns an inode by its number, nil if the kernel has forgotten it.
func (t *inodeTable) get(id uint64) *inode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// add counts a lookup of name in parent that found f, and returns its inode.
func (t *inodeTable) add(parent *inode, name string, f *found) *inode {
	t.mu.Lock()
	defer t.mu.Unlock()
	var in *inode
	key := inodeKey{parent.id, name, f.same}
	if f.same != "" {
		in = t.byKey[key]
	}
	if in == nil {
		in = &inode{id: t.next, ino: f.ino, parent: parent, name: name, node: f.node, same: f.same, dynamic: f.dynamic}
		t.next++
		t.byID[in.id] = in
		if f.same != "" {
			t.byKey[key] = in
		}
	}
	in.lookups++
	if in.dynamic {
		t.use(staleName{parent.id, name}, in.id)
	}
	return in
}

// use moves a dynamic name to the front and hands what is too much to the notifier. A full queue leaves it for the next time. mu is held.
func (t *inodeTable) use(n staleName, id uint64) {
	if e := t.names[n]; e != nil {
		e.Value.(*usedName).latest = id
		t.order.MoveToFront(e)
	} else {
		t.names[n] = t.order.PushFront(&usedName{n, id})
	}
	for t.order.Len() > t.limit {
		e := t.order.Back()
		old := e.Value.(*usedName).staleName
		select {
		case t.stale <- old:
			t.order.Remove(e)
			delete(t.names, old)
		default:
			return
		}
	}
}

// forget takes back n lookups.
func (t *inodeTable) forget(id, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := t.byID[id]
	if in == nil || in.parent == nil {
		return
	}
	if in.lookups > n {
		in.lookups -= n
		return
	}
	delete(t.byID, id)
	t.unshare(in)
	if name := (staleName{in.parent.id, in.name}); in.dynamic {
		if e := t.names[name]; e != nil && e.Value.(*usedName).latest == id {
			t.order.Remove(e)
			delete(t.names, name)
		}
	}
}

// removed makes the next lookup of a directory that was removed give a new inode: the kernel marks the old one as dead.
func (t *inodeTable) removed(parent *inode, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, in := range t.byKey {
		if key.parent == parent.id && key.name == name {
			t.unshare(in)
		}
	}
}

func (t *inodeTable) unshare(in *inode) {
	if in.same == "" || in.parent == nil {
		return
	}
	if key := (inodeKey{in.parent.id, in.name, in.same}); t.byKey[key] == in {
		delete(t.byKey, key)
	}
}

// counts returns how many inodes the kernel knows and how many of the names are dynamic.
func (t *inodeTable) counts() (inodes, names int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), t.order.Len()
}
