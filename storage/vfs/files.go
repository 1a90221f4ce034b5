package vfs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
)

// Files is a cache of descriptors: at most one per name, the least recently used closed when there are too many.
//
// Invariants:
//
//	F1  A descriptor that somebody has pinned is not closed.
//	F2  A descriptor with unsynced writes is synced before it is evicted: the kernel forgets a write-back error together with the inode.
//	F3  Once a sync of a name has failed, every later one fails with the same error, until Forget.
//
// No lock of the cache is held during a call of the file system, but for the one that makes the syncs of a name take turns.
type Files struct {
	fsys  FS
	limit int

	mu     sync.Mutex // guards what follows, and the fields of handles that say so; innermost
	byName map[string]*Handle
	status map[string]*status // of the names in byName, and of those whose sync has failed
	lru    handleList         // the handles of byName that nobody has pinned
	open   int                // descriptors, those being opened and those of orphans included
	closed bool
}

// NewFiles returns a cache on fsys that keeps limit descriptors open, or as many more as are pinned at once.
func NewFiles(fsys FS, limit int) *Files {
	c := &Files{fsys: fsys, limit: max(limit, 1), byName: make(map[string]*Handle), status: make(map[string]*status)}
	c.lru.init()
	return c
}

// Len returns how many descriptors are open now, the pinned ones of forgotten names included.
func (c *Files) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Forget drops the descriptor of name without syncing it, and the error of a sync that failed: the file has been deleted or replaced. Those who have
// it pinned keep it. Whoever removes, renames or replaces a file that may be cached calls it afterwards.
func (c *Files) Forget(name string) {
	if h := c.forget(name); h != nil {
		_ = h.f.Close() // its bytes do not matter any more
	}
}

// ForgetUnder forgets every name below a directory that has been renamed or deleted.
func (c *Files) ForgetUnder(dir string) {
	for _, name := range c.namesUnder(filepath.Clean(dir) + string(filepath.Separator)) {
		c.Forget(name)
	}
}

func (c *Files) namesUnder(prefix string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.status {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// forget returns the handle whose descriptor is to be closed now, if any.
func (c *Files) forget(name string) *Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.byName[name]
	delete(c.byName, name)
	delete(c.status, name)
	if h == nil {
		return nil
	}
	if h.pins > 0 {
		h.orphan = true
		return nil
	}
	c.lru.remove(h)
	c.open--
	h.orphan = true
	return h
}

// Close syncs what has unsynced writes, closes all descriptors and returns the first error, which may be that of an eviction that nobody has been told
// of. A descriptor that is still pinned is closed when it is given back. Opens after it fail with fs.ErrClosed.
func (c *Files) Close() error {
	handles, first := c.shut()
	for _, h := range handles {
		if h.st.dirty() {
			if err := h.Sync(); err != nil && first == nil {
				first = err
			}
		}
		if err := c.unpin(h); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// shut refuses further opens and makes orphans of all handles. It returns them pinned, and an error that a sync has met earlier.
func (c *Files) shut() (handles []*Handle, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, h := range c.byName {
		if h.f != nil {
			c.pinLocked(h)
			handles = append(handles, h)
		}
		h.orphan = true
	}
	for _, st := range c.status {
		if failed == nil {
			failed = st.failed()
		}
	}
	clear(c.byName)
	clear(c.status)
	return handles, failed
}

// pinLocked needs mu.
func (c *Files) pinLocked(h *Handle) {
	if h.pins == 0 {
		c.lru.remove(h)
	}
	h.pins++
}

// unpin gives back one pin. An orphan that nobody has is closed; a cached handle is kept, unless there are too many.
func (c *Files) unpin(h *Handle) error {
	last, over, err := c.unpinned(h)
	if err != nil {
		return err
	}
	if last {
		return h.f.Close()
	}
	if over {
		c.evict()
	}
	return nil
}

func (c *Files) unpinned(h *Handle) (last, over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.pins == 0 {
		return false, false, &fs.PathError{Op: "close", Path: h.name, Err: fs.ErrClosed}
	}
	h.pins--
	switch {
	case h.pins > 0:
		return false, false, nil
	case h.orphan:
		c.open--
		return true, false, nil
	}
	c.lru.pushNewest(h)
	return false, c.open > c.limit, nil
}
