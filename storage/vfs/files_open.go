package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Open pins the descriptor of name, which it opens where the cache has none. flag and perm are those of FS.OpenFile. With os.O_RDWR a descriptor that
// can only read is replaced; those who have that one keep it until they close it. Each Open needs one Handle.Close.
func (c *Files) Open(name string, flag int, perm fs.FileMode) (*Handle, error) {
	if flag&(os.O_EXCL|os.O_TRUNC) == 0 {
		if h := c.pinCached(name, canWrite(flag)); h != nil {
			return h, nil
		}
	}
	for {
		cl, err := c.claim(name, flag)
		switch {
		case err != nil:
			return nil, err
		case cl.wait != nil:
			<-cl.wait // somebody else opens it: see what becomes of that
		case cl.made:
			return c.fill(cl, flag, perm)
		default:
			return c.truncated(cl.h, flag)
		}
	}
}

func canWrite(flag int) bool { return flag&(os.O_RDWR|os.O_WRONLY) != 0 }

// truncated does for a cached descriptor what os.O_TRUNC does at an open.
func (c *Files) truncated(h *Handle, flag int) (*Handle, error) {
	if flag&os.O_TRUNC == 0 {
		return h, nil
	}
	if err := h.Truncate(0); err != nil {
		_ = h.Close() // the first error is the one to tell
		return nil, err
	}
	return h, nil
}

// pinCached is the way of nearly every call: it neither allocates nor waits for the disk.
func (c *Files) pinCached(name string, write bool) *Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.byName[name]
	if h == nil || h.f == nil || write && !h.write {
		return nil
	}
	c.pinLocked(h)
	return h
}

// claim is what somebody who wants a descriptor has got for a start.
type claim struct {
	h        *Handle       // pinned
	made     bool          // h has no descriptor yet, and the claimant must open it
	replaces *Handle       // pinned; what had the name before, where h was made in its stead
	wait     chan struct{} // closed when the one who is opening the name is done; nothing else is set
}

func (c *Files) claim(name string, flag int) (claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return claim{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrClosed}
	}
	old := c.byName[name]
	if old != nil {
		if old.f == nil {
			return claim{wait: old.opened}, nil
		}
		c.pinLocked(old)
		if flag&os.O_EXCL == 0 && (old.write || !canWrite(flag)) {
			return claim{h: old}, nil
		}
	}
	st := c.status[name]
	if st == nil {
		st = new(status)
		c.status[name] = st
	}
	h := &Handle{c: c, name: name, write: canWrite(flag), st: st, opened: make(chan struct{}), pins: 1}
	c.byName[name] = h
	c.open++
	return claim{h: h, made: true, replaces: old}, nil
}

// fill opens the descriptor of a handle that was made.
func (c *Files) fill(cl claim, flag int, perm fs.FileMode) (*Handle, error) {
	c.evict()
	f, err := c.fsys.OpenFile(cl.h.name, flag, perm)
	if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && c.shrink() {
		f, err = c.fsys.OpenFile(cl.h.name, flag, perm)
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		cl.h.st.wrote.Add(1)
	}
	c.filled(cl, f, err, flag&os.O_EXCL != 0)
	if cl.replaces != nil {
		_ = c.unpin(cl.replaces) // it could only read, or its file is gone
	}
	if err != nil {
		return nil, err
	}
	return cl.h, nil
}

// filled publishes the outcome of an open.
func (c *Files) filled(cl claim, f File, err error, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(cl.h.opened)
	current := c.byName[cl.h.name] == cl.h // else forgotten in the meantime, and an orphan already
	if err != nil {
		c.open--
		switch {
		case current && cl.replaces != nil:
			c.byName[cl.h.name] = cl.replaces
		case current:
			c.dropLocked(cl.h)
		case cl.replaces != nil:
			cl.replaces.orphan = true
		}
		return
	}
	cl.h.f = f
	if cl.replaces != nil {
		cl.replaces.orphan = true
	}
	if fresh {
		// A file that did not exist a moment ago has nothing to do with what was known under its name.
		cl.h.st = new(status)
		if current {
			c.status[cl.h.name] = cl.h.st
		}
	}
}

// dropLocked takes h out of the names, and with it what is known of its name, unless that is bad. It needs mu.
func (c *Files) dropLocked(h *Handle) {
	delete(c.byName, h.name)
	if h.st.failed() == nil {
		delete(c.status, h.name)
	}
}
