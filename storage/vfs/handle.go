package vfs

import (
	"sync"
	"sync/atomic"
)

// Handle is a pinned descriptor of a Files. Everybody who opens the same name gets the same Handle, and may use it from several goroutines, until
// each has closed it as often as they opened it.
type Handle struct {
	c      *Files
	name   string
	write  bool
	f      File    // set once, before the handle is first given to anybody
	st     *status // set with f at the latest
	opened chan struct{}

	// Guarded by c.mu.
	pins         int
	orphan       bool // no longer in the cache: closed with the last pin
	older, newer *Handle
}

// Name is the name that it was opened under.
func (h *Handle) Name() string { return h.name }

// ReadAt implements io.ReaderAt.
func (h *Handle) ReadAt(p []byte, pos int64) (int, error) { return h.f.ReadAt(p, pos) }

// WriteAt implements io.WriterAt. Whoever opened the handle without os.O_RDWR must not count on it.
func (h *Handle) WriteAt(p []byte, pos int64) (int, error) {
	n, err := h.f.WriteAt(p, pos)
	h.st.wrote.Add(1)
	return n, err
}

// Truncate sets the size of the file.
func (h *Handle) Truncate(size int64) error {
	err := h.f.Truncate(size)
	h.st.wrote.Add(1)
	return err
}

// Stat describes the open file, whatever its name is by now.
func (h *Handle) Stat() (FileInfo, error) { return h.f.Stat() }

// Sync puts on stable storage what was written before the call. Syncs of a name that are asked for while one runs share the next. Once one has failed all
// fail, with the same error: the kernel reports an error once and may have dropped the bytes.
func (h *Handle) Sync() error { return h.st.sync(h.f) }

// Close gives the handle back. The descriptor stays open as long as there is room for it.
func (h *Handle) Close() error { return h.c.unpin(h) }

// Unpin is Close without its result. What can fail there is the sync of another file that has to make room, and that error stays for that file's next Sync.
func (h *Handle) Unpin() { _ = h.c.unpin(h) }

// needsSync reports whether there are unsynced writes that a sync could still save.
func (h *Handle) needsSync() bool { return h.st.dirty() && h.st.failed() == nil }

// status is what is known about the bytes of a name. Descriptors that follow each other under a name share it.
type status struct {
	wrote  atomic.Uint64 // writes and truncates that have ended
	synced atomic.Uint64 // wrote, as it was when the last sync that succeeded began
	begun  atomic.Uint64 // syncs that have begun
	err    atomic.Pointer[syncError]

	mu sync.Mutex // held during a sync
	ok uint64     // guarded by mu: number, among those begun, of the last sync that succeeded
}

// syncError boxes an error for the atomic pointer.
type syncError struct{ err error }

func (s *status) dirty() bool { return s.wrote.Load() != s.synced.Load() }

func (s *status) failed() error {
	if e := s.err.Load(); e != nil {
		return e.err
	}
	return nil
}

// sync syncs f. One at a time, so that nobody returns success between a failure of the kernel's and its being known here.
func (s *status) sync(f File) error {
	before := s.begun.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failed(); err != nil {
		return err
	}
	if s.ok > before {
		return nil // that one began after we were called
	}
	n, wrote := s.begun.Add(1), s.wrote.Load()
	if err := f.Sync(); err != nil {
		s.err.Store(&syncError{err})
		return err
	}
	s.ok = n
	s.synced.Store(wrote)
	return nil
}
