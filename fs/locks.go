package fs

import (
	"math"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// locksKept bounds the table: what a program can make the daemon remember.
const locksKept = 1 << 16

// lockTable holds the advisory locks of the mount. They belong to a path and not to a kernel inode, because each lookup of a growing view makes a new
// inode: the key is st_ino. As on a local file system, flock locks and fcntl locks do not see each other. Deadlocks are not looked for; a wait can be
// interrupted.
type lockTable struct {
	mu      sync.Mutex // guards what follows; a leaf
	files   map[lockSpace]*lockedFile
	handles map[uint64]map[lockSpace]struct{} // where a handle ever set a lock
	count   int
	closed  chan struct{}
}

// lockSpace is a file's locks of one kind.
type lockSpace struct {
	ino   uint64
	flock bool
}

// lockedFile is a file with locks or waiters.
type lockedFile struct {
	locks   []heldLock
	waiters int
	changed chan struct{} // closed, and replaced, when a lock has gone
}

// heldLock is a lock on the bytes start..end, both included.
type heldLock struct {
	owner, handle uint64
	start, end    uint64
	write         bool
	pid           uint32
}

func newLockTable() *lockTable {
	return &lockTable{
		files:   make(map[lockSpace]*lockedFile),
		handles: make(map[uint64]map[lockSpace]struct{}),
		closed:  make(chan struct{}),
	}
}

// getlk fills out with a lock that would stand in the way of lk, or with type F_UNLCK.
func (t *lockTable) getlk(ino, owner uint64, lk *fuse.FileLock, flags uint32, out *fuse.FileLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*out = fuse.FileLock{Typ: syscall.F_UNLCK}
	f := t.files[spaceOf(ino, flags)]
	if f == nil {
		return
	}
	if h := f.conflict(owner, lk); h != nil {
		*out = fuse.FileLock{Start: h.start, End: h.end, Typ: syscall.F_RDLCK, Pid: h.pid}
		if h.write {
			out.Typ = syscall.F_WRLCK
		}
	}
}

// setlk takes, converts or drops a lock for owner. handle is the open file through which it is done; releaseHandle with the same number drops what is
// left. A lock that somebody else holds is EAGAIN, or with wait is waited for until cancel is closed (EINTR).
func (t *lockTable) setlk(cancel <-chan struct{}, ino, handle, owner uint64, lk *fuse.FileLock, flags uint32, wait bool) syscall.Errno {
	want := *lk // the request's memory is not ours to keep while waiting
	switch want.Typ {
	case syscall.F_RDLCK, syscall.F_WRLCK, syscall.F_UNLCK:
	default:
		return syscall.EINVAL
	}
	if want.Start > want.End {
		return syscall.EINVAL
	}
	space := spaceOf(ino, flags)
	waiting := false
	for {
		errno, changed := t.try(space, handle, owner, &want, wait, waiting)
		if changed == nil {
			return errno
		}
		waiting = true
		select {
		case <-changed:
			continue
		case <-cancel:
			errno = syscall.EINTR
		case <-t.closed:
			errno = syscall.ENOLCK
		}
		t.stopWaiting(space)
		return errno
	}
}

// try sets the lock if nothing is in the way. With wait it otherwise counts the caller as a waiter, once, and returns the channel to wait on.
func (t *lockTable) try(space lockSpace, handle, owner uint64, want *fuse.FileLock, wait, waiting bool) (syscall.Errno, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[space]
	if f == nil {
		if want.Typ == syscall.F_UNLCK {
			return 0, nil
		}
		f = &lockedFile{changed: make(chan struct{})}
		t.files[space] = f
	}
	defer func() { t.forget(space, f) }()
	if want.Typ != syscall.F_UNLCK && f.conflict(owner, want) != nil {
		if space.flock { // as flock(2) has it: a conversion first gives up the old lock, so that two that want to convert do not wait for each other
			t.giveUp(f, owner)
		}
		if !wait {
			return syscall.EAGAIN, nil
		}
		if !waiting {
			f.waiters++
		}
		return 0, f.changed
	}
	if waiting {
		f.waiters--
	}
	if want.Typ != syscall.F_UNLCK {
		if t.count >= locksKept {
			return syscall.ENOLCK, nil
		}
		spaces := t.handles[handle]
		if spaces == nil {
			spaces = make(map[lockSpace]struct{}, 1)
			t.handles[handle] = spaces
		}
		spaces[space] = struct{}{}
	}
	before := len(f.locks)
	lost := f.carve(owner, want.Start, want.End)
	if want.Typ != syscall.F_UNLCK {
		f.insert(heldLock{owner: owner, handle: handle, start: want.Start, end: want.End, write: want.Typ == syscall.F_WRLCK, pid: want.Pid})
	}
	t.count += len(f.locks) - before
	if lost {
		f.wake()
	}
	return 0, nil
}

// giveUp drops all that owner has in a file. t.mu is held.
func (t *lockTable) giveUp(f *lockedFile, owner uint64) {
	before := len(f.locks)
	if f.carve(owner, 0, math.MaxUint64) {
		t.count -= before - len(f.locks)
		f.wake()
	}
}

// releaseOwner drops the fcntl locks that owner has on a file: what closing any of its descriptors does.
func (t *lockTable) releaseOwner(ino, owner uint64) {
	t.drop(lockSpace{ino: ino}, func(h *heldLock) bool { return h.owner == owner })
}

// releaseHandle drops what was locked through an open file whose last descriptor is gone: flock locks, and fcntl locks that belong to the open file
// rather than to a process (F_OFD_SETLK; the kernel announces their end in no other way).
func (t *lockTable) releaseHandle(handle uint64) {
	for space := range t.takeHandle(handle) {
		t.drop(space, func(h *heldLock) bool { return h.handle == handle })
	}
}

// close ends all waiting. Locks can still be dropped after it.
func (t *lockTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.closed:
	default:
		close(t.closed)
	}
}

// held returns the number of locks, for status.
func (t *lockTable) held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

func (t *lockTable) takeHandle(handle uint64) map[lockSpace]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	spaces := t.handles[handle]
	delete(t.handles, handle)
	return spaces
}

func (t *lockTable) drop(space lockSpace, gone func(*heldLock) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[space]
	if f == nil {
		return
	}
	kept := f.locks[:0]
	for i := range f.locks {
		if !gone(&f.locks[i]) {
			kept = append(kept, f.locks[i])
		}
	}
	if n := len(f.locks) - len(kept); n > 0 {
		t.count -= n
		f.locks = kept
		f.wake()
	}
	t.forget(space, f)
}

func (t *lockTable) stopWaiting(space lockSpace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.files[space]; f != nil {
		f.waiters--
		t.forget(space, f)
	}
}

// forget drops a file that has neither locks nor waiters. t.mu is held.
func (t *lockTable) forget(space lockSpace, f *lockedFile) {
	if len(f.locks) == 0 && f.waiters == 0 && t.files[space] == f {
		delete(t.files, space)
	}
}

// conflict returns a lock of somebody else that excludes want.
func (f *lockedFile) conflict(owner uint64, want *fuse.FileLock) *heldLock {
	if want.Typ == syscall.F_UNLCK {
		return nil
	}
	for i := range f.locks {
		h := &f.locks[i]
		if h.owner != owner && h.start <= want.End && want.Start <= h.end && (h.write || want.Typ == syscall.F_WRLCK) {
			return h
		}
	}
	return nil
}

// carve takes start..end out of owner's locks and returns whether there was anything to take.
func (f *lockedFile) carve(owner, start, end uint64) bool {
	var rest []heldLock
	kept := f.locks[:0]
	lost := false
	for _, h := range f.locks {
		if h.owner != owner || h.end < start || end < h.start {
			kept = append(kept, h)
			continue
		}
		lost = true
		if h.start < start {
			left := h
			left.end = start - 1
			rest = append(rest, left)
		}
		if end < h.end {
			right := h
			right.start = end + 1
			rest = append(rest, right)
		}
	}
	f.locks = append(kept, rest...)
	return lost
}

// insert adds a lock that overlaps none of its owner's, joining it with neighbours of the same kind so that a file locked byte by byte stays one lock.
func (f *lockedFile) insert(n heldLock) {
	kept := f.locks[:0]
	for _, h := range f.locks {
		switch {
		case h.owner == n.owner && h.write == n.write && h.handle == n.handle && h.end < n.start && h.end+1 == n.start:
			n.start = h.start
		case h.owner == n.owner && h.write == n.write && h.handle == n.handle && n.end < h.start && n.end+1 == h.start:
			n.end = h.end
		default:
			kept = append(kept, h)
		}
	}
	f.locks = append(kept, n)
}

// wake lets everybody who waits try again.
func (f *lockedFile) wake() {
	if f.waiters == 0 {
		return
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func spaceOf(ino uint64, flags uint32) lockSpace {
	return lockSpace{ino: ino, flock: flags&fuse.LK_FLOCK != 0}
}
