package fs

import (
	"context"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// cacheLimit is the largest finished view that goes through the kernel's page cache. There a small one is free when it is read again; a large one reads
// faster in large requests past it.
const cacheLimit = 1 << 20

// viewNode is a file that shows a stretch of a log; the tail also takes records.
type viewNode struct {
	t     *Tree
	p     *part
	view  *view
	tail  bool
	cache bool // finished, of known size and small
	fixed bool // finished
	at    time.Time

	readers, writers atomic.Int64
}

// newView makes the node for v and says what it is the same as: "" unless its bytes can never change.
func (t *Tree) newView(ctx context.Context, p *part, s storage.Snapshot, v *view, tail bool) (*viewNode, string, error) {
	v.generation = s.Generation()
	n := &viewNode{t: t, p: p, view: v, tail: tail}
	if v.format == format.Whole || !v.finished(s) {
		return n, "", nil
	}
	n.fixed = true
	at, err := lastChange(ctx, s, v)
	if err != nil {
		return nil, "", err
	}
	n.at = at
	if size, exact := v.sizeNow(s); !exact || size > cacheLimit {
		return n, "", nil
	}
	n.cache = true
	return n, identity(p, s, v.from, v.end(s)), nil
}

// identity names bytes that never change.
func identity(p *part, s storage.Snapshot, from, to storage.Offset) string {
	b := make([]byte, 0, 64)
	for _, n := range [...]uint64{p.life, s.Generation(), uint64(from), uint64(to)} {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return string(b)
}

// lastChange returns the modification time of a finished view. It must be the same whenever it is asked for, and the log keeps no times of appends: the
// last record's own stands for it. Where the last offset holds no record it is the first one's.
func lastChange(ctx context.Context, s storage.Snapshot, v *view) (time.Time, error) {
	if v.to == openEnd {
		return time.UnixMilli(s.Modified()), nil
	}
	end := v.end(s)
	for _, o := range [...]storage.Offset{end - 1, v.from} {
		if o < v.from {
			break
		}
		at, err := timeOf(ctx, s, o, end)
		if err != nil && interrupted(ctx, err) {
			return time.Time{}, err
		}
		if err == nil && !at.IsZero() {
			return at, nil
		}
	}
	return time.UnixMilli(0), nil
}

// timeOf returns the time of the first record in from <= offset < to, zero where there is none.
func timeOf(ctx context.Context, s storage.Snapshot, from, to storage.Offset) (time.Time, error) {
	c := s.Records(from)
	defer c.Close()
	r, err := c.Next(ctx)
	if err != nil || r.Offset >= to {
		return time.Time{}, err
	}
	return r.Time(), nil
}

func (n *viewNode) attr(ctx context.Context, f *file, out *fuse.Attr) (time.Duration, error) {
	if f == nil || !isWriter(f) { // a writer does not wait for its own close
		if err := n.t.settle.wait(ctx, n.p.tp); err != nil {
			return 0, err
		}
	}
	s, err := n.p.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	size, err := n.size(ctx, s)
	if err != nil {
		return 0, err
	}
	return n.fill(s, size, out), nil
}

// glance implements glancer. The lookup has waited for closes that were under way.
func (n *viewNode) glance(ctx context.Context, out *fuse.Attr) (time.Duration, error) {
	s, err := n.p.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	size := int64(0)
	if n.view.format != format.Whole {
		size, _ = n.view.sizeNow(s)
	}
	return n.fill(s, size, out), nil
}

// fill puts together the attributes of a view of that size.
func (n *viewNode) fill(s storage.Snapshot, size int64, out *fuse.Attr) time.Duration {
	allowed := uint32(0o444)
	if n.tail {
		allowed = 0o666
	}
	if n.view.format == format.Whole {
		allowed = 0o222
	}
	at := n.at
	if !n.fixed {
		at = time.UnixMilli(s.Modified())
	}
	n.t.fileAttr(out, allowed, size, at)
	if n.view.format == format.Whole || n.writers.Load() > 0 && n.readers.Load() == 0 {
		out.Blksize = writeBlock
	}
	if n.cache {
		return finishedKeep
	}
	return 0
}

// size is exact where somebody reads the file. Others are told what is known without reading the log, as long as the sums of its records are being made; what
// has no sums on disk is worked out when it is asked for, but not for those who only write.
func (n *viewNode) size(ctx context.Context, s storage.Snapshot) (int64, error) {
	if n.view.format == format.Whole {
		return 0, nil
	}
	if n.readers.Load() > 0 || n.writers.Load() == 0 && n.worthCounting(s) {
		size, err := n.view.size(ctx, s)
		if err == nil || interrupted(ctx, err) {
			return size, err
		}
		// A damaged place must not keep the rest from being read; reading it will tell.
	}
	size, _ := n.view.sizeNow(s)
	return size, nil
}

// countAtOnce is how many bytes of records are read for the size of a file that nobody has open. The kernel asks for it at every open(2) as well.
const countAtOnce = 16 << 20

// worthCounting reports whether the size is exact for whoever asks although the log has to be read for it.
func (n *viewNode) worthCounting(s storage.Snapshot) bool {
	if n.view.format.Measure().Linear() {
		return false
	}
	bytes, exact := s.ExtentNow(format.Lines.Measure(), n.view.latest().offset, n.view.end(s))
	return bytes <= countAtOnce && (exact || n.t.engine.Info().Own)
}

func isWriter(f *file) bool {
	_, ok := f.h.(writer)
	return ok
}

// access is what a file is opened for.
type access struct {
	read, write bool
}

func accessOf(flags uint32) access {
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		return access{read: true}
	case syscall.O_WRONLY:
		return access{write: true}
	}
	return access{read: true, write: true}
}

func (n *viewNode) open(ctx context.Context, flags uint32) (handle, uint32, error) {
	a := accessOf(flags)
	if a.read && n.view.format == format.Whole || a.write && !n.tail {
		return nil, 0, errNoAccess
	}
	if err := n.t.settle.wait(ctx, n.p.tp); err != nil {
		return nil, 0, err
	}
	var w *writeHandle
	if a.write {
		if err := n.t.mayChange(); err != nil {
			return nil, 0, err
		}
		if err := n.p.Writable(ctx); err != nil {
			return nil, 0, err
		}
		var err error
		if w, err = n.t.newWriteHandle(ctx, &partSink{n.t, n.p}, n.p.tp.Topic, n.view.format, flags); err != nil {
			return nil, 0, err
		}
		w.node = n
		n.writers.Add(1)
	}
	if !a.read {
		return w, fuse.FOPEN_DIRECT_IO, nil
	}
	n.readers.Add(1)
	n.t.readers.Add(1)
	r := &readHandle{gate: newGate(), n: n}
	if w != nil {
		return &bothHandle{r, w}, fuse.FOPEN_DIRECT_IO, nil
	}
	if n.cache {
		return r, fuse.FOPEN_KEEP_CACHE, nil
	}
	return r, fuse.FOPEN_DIRECT_IO, nil
}

func (n *viewNode) sync(ctx context.Context) error { return n.t.sync(ctx, n.p) }
