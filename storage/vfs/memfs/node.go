package memfs

import (
	"io/fs"

	"github.com/logmount/logmount/storage/vfs"
)

// meta is what an inode has beside its contents.
type meta struct {
	mode     fs.FileMode
	uid, gid uint32
	modified int64
}

// node is an inode.
type node struct {
	ino   uint64
	links int // names that it has now: 1, or 0 once removed
	opens int // descriptors and locks

	meta, durableMeta meta

	// Of a file.
	now, durable content
	pending      []op // what has been done to now since it was the same as durable, oldest first

	// Of a directory.
	names, durableNames map[string]*node
}

// op is an unsynced write, or, with data nil, a truncate to pos.
type op struct {
	pos  int64
	data []byte
}

func (m *FS) newNode(mode fs.FileMode) *node {
	m.inos++
	n := &node{ino: m.inos, meta: meta{mode: mode, modified: m.now()}}
	n.durableMeta = n.meta
	if n.isDir() {
		n.names, n.durableNames = make(map[string]*node), make(map[string]*node)
	}
	return n
}

func (n *node) isDir() bool { return n.meta.mode.IsDir() }

func (n *node) info() vfs.FileInfo {
	return vfs.FileInfo{
		Size: n.now.size, Mode: n.meta.mode, Modified: n.meta.modified,
		Ino: n.ino, Dev: 1, UID: n.meta.uid, GID: n.meta.gid,
	}
}

func (n *node) syncMeta() { n.durableMeta = n.meta }

// sync makes the contents of a file durable. Only what was touched is looked at, so that a sync costs as much as what was written since the last.
func (n *node) sync() {
	for _, o := range n.pending {
		if o.data == nil {
			n.durable.resize(o.pos)
			continue
		}
		end := o.pos + int64(len(o.data))
		n.durable.resize(max(n.durable.size, end))
		for i := o.pos / blockSize; i*blockSize < end; i++ {
			if i < int64(len(n.now.blocks)) {
				n.durable.set(i, n.now.blocks[i])
			}
		}
	}
	n.durable.resize(n.now.size)
	n.pending = nil
	n.syncMeta()
}

// release frees the space of a file that has neither a name nor a descriptor any more.
func (m *FS) release(n *node) {
	if n.links == 0 && n.opens == 0 && !n.isDir() {
		m.used -= n.now.used()
	}
}
