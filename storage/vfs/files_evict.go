package vfs

// lookBack is how many of the least recently used handles are looked through for one that needs no sync.
const lookBack = 32

// evict closes unpinned descriptors until no more than limit are open, or none is left that may be closed.
func (c *Files) evict() {
	for {
		h, sync := c.victim(c.limit)
		if h == nil {
			return
		}
		c.dispose(h, sync)
	}
}

// shrink closes half of the descriptors, as the process or the system has no more of them, and reports whether there were any to close.
func (c *Files) shrink() bool {
	keep, any := c.Len()/2, false
	for {
		h, sync := c.victim(keep)
		if h == nil {
			return any
		}
		any = true
		c.dispose(h, sync)
	}
}

// victim takes a handle out of the cache that is to be closed; or, with sync, one that must be synced first: it is pinned and stays in the cache, so that
// whoever wants it meanwhile can have it.
func (c *Files) victim(keep int) (h *Handle, sync bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open <= keep {
		return nil, false
	}
	oldest := c.lru.oldest()
	if oldest == nil {
		return nil, false
	}
	h = oldest
	for n := 0; h.needsSync(); n++ {
		h = c.lru.newer(h)
		if h == nil || n == lookBack {
			c.pinLocked(oldest)
			return oldest, true
		}
	}
	c.lru.remove(h)
	c.dropLocked(h)
	c.open--
	h.orphan = true
	return h, false
}

func (c *Files) dispose(h *Handle, sync bool) {
	if !sync {
		_ = h.f.Close() // everything that was written to it is synced, or known to be lost
		return
	}
	_ = h.Sync() // kept: F3
	if c.unpinOldest(h) {
		_ = h.f.Close()
	}
}

// unpinOldest gives back the pin of victim. Where nobody has used the handle since, it is the next one to go. It reports whether the descriptor has to
// be closed, as it was forgotten meanwhile.
func (c *Files) unpinOldest(h *Handle) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.pins--
	switch {
	case h.pins > 0:
		return false
	case h.orphan:
		c.open--
		return true
	}
	c.lru.pushOldest(h)
	return false
}

// handleList is a doubly linked list through the handles themselves, so that pinning does not allocate.
type handleList struct{ root Handle }

func (l *handleList) init() { l.root.older, l.root.newer = &l.root, &l.root }

// oldest returns nil of an empty list.
func (l *handleList) oldest() *Handle { return l.newer(&l.root) }

// newer returns the handle that was used after h, or nil.
func (l *handleList) newer(h *Handle) *Handle {
	if h.newer == &l.root {
		return nil
	}
	return h.newer
}

func (l *handleList) pushNewest(h *Handle) { l.insert(h, l.root.older) }

func (l *handleList) pushOldest(h *Handle) { l.insert(h, &l.root) }

func (l *handleList) insert(h, after *Handle) {
	h.older, h.newer = after, after.newer
	h.older.newer, h.newer.older = h, h
}

func (l *handleList) remove(h *Handle) {
	h.older.newer, h.newer.older = h.newer, h.older
	h.older, h.newer = nil, nil
}
