package memfs

import (
	"maps"
	"math/rand"
	"slices"
	"syscall"
)

// CrashOptions says what a crash leaves.
type CrashOptions struct {
	// Unsynced is the probability that an unsynced thing survives: with 0 none does, with 1 all do.
	Unsynced float64
}

// Crash returns the disk as it may be found after the power failed now. It depends on nothing but the history of calls, r and opts.
// Nothing in it is open or locked, and all of it is durable. Clock and capacity are kept.
func (m *FS) Crash(r *rand.Rand, opts CrashOptions) *FS {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := crash{r: r, p: opts.Unsynced, names: make(map[*node]map[string]*node)}
	c.loseChanges(m.changes)

	left := New()
	left.inos, left.ticks, left.clock, left.capacity = m.inos, m.ticks, m.clock, m.capacity
	c.copyInto(left, left.root, m.root)
	return left
}

type crash struct {
	r     *rand.Rand
	p     float64
	names map[*node]map[string]*node // of directories that are not as they durably were
}

func (c *crash) survives() bool { return c.r.Float64() < c.p }

// loseChanges decides which changes of names have reached the disk.
func (c *crash) loseChanges(changes []*change) {
	lost := newDependency()
	for _, ch := range changes {
		if !c.survives() || lost.after(ch) {
			lost.add(ch)
			continue
		}
		for k, n := range ch.set {
			names := c.namesOf(k.dir)
			if n == nil {
				delete(names, k.base)
			} else {
				names[k.base] = n
			}
		}
	}
}

func (c *crash) namesOf(dir *node) map[string]*node {
	names, ok := c.names[dir]
	if !ok {
		names = maps.Clone(dir.durableNames)
		c.names[dir] = names
	}
	return names
}

// copyInto makes n of m what is left of the node old.
func (c *crash) copyInto(m *FS, n, old *node) {
	n.ino, n.links = old.ino, 1
	n.meta = old.durableMeta
	if old.meta != old.durableMeta && c.survives() {
		n.meta = old.meta
	}
	n.durableMeta = n.meta
	if !old.isDir() {
		n.now = c.contents(old)
		n.durable = n.now.clone()
		m.used += n.now.used()
		return
	}
	names := c.namesOf(old)
	for _, base := range slices.Sorted(maps.Keys(names)) { // r must be asked in the same order every time
		child := &node{}
		if names[base].isDir() {
			child.names, child.durableNames = make(map[string]*node), make(map[string]*node)
		}
		n.names[base], n.durableNames[base] = child, child
		c.copyInto(m, child, names[base])
	}
}

// contents returns what is left of a file.
func (c *crash) contents(n *node) content {
	left := n.durable.clone()
	size := left.size // as it would be if everything had landed
	for _, o := range n.pending {
		if o.data == nil {
			if c.survives() {
				left.resize(o.pos)
			}
			size = o.pos
			continue
		}
		pieces(o.data, o.pos, func(p []byte, pos int64) bool {
			if c.survives() {
				left.writeAt(p, pos)
			}
			return true
		})
		if end := o.pos + int64(len(o.data)); end > size {
			size = end
			if c.survives() {
				left.resize(max(left.size, end))
			}
		}
	}
	return left
}

// LoseUnsynced makes the disk forget the unsynced bytes of a file while they can still be read, as a kernel does after a failed write-back: a later Sync succeeds
// and does not bring them back. Call it where a Sync is made to fail.
func (m *FS) LoseUnsynced(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && n.isDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		return pathError("lose", name, err)
	}
	n.pending = nil
	return nil
}
