package fs

import (
	"context"
	"strconv"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// valueNode is a small file whose content is made when it is opened.
type valueNode struct {
	t       *Tree
	allowed uint32
	content func(ctx context.Context) ([]byte, time.Time, error)
	settle  func(ctx context.Context) error                 // nil, or what a look waits for
	write   func(ctx context.Context) (*startHandle, error) // nil where it cannot be written
	fsync   func(ctx context.Context) error                 // nil where there is nothing to sync
}

// offsetValue is the file start or end of a partition.
func (t *Tree) offsetValue(p *part, name string, get func(storage.Snapshot) storage.Offset) *valueNode {
	n := &valueNode{t: t, allowed: 0o444, fsync: func(ctx context.Context) error { return t.sync(ctx, p) }}
	n.content = func(ctx context.Context) ([]byte, time.Time, error) {
		s, err := p.Snapshot(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		b := strconv.AppendInt(nil, int64(get(s)), 10)
		return append(b, '\n'), time.UnixMilli(s.Modified()), nil
	}
	n.settle = func(ctx context.Context) error { return t.settle.wait(ctx, p.tp) }
	if name == "start" {
		n.allowed = 0o666
		n.write = func(ctx context.Context) (*startHandle, error) { return t.newStartHandle(ctx, p) }
	}
	return n
}

func (n *valueNode) attr(ctx context.Context, f *file, out *fuse.Attr) (time.Duration, error) {
	if f != nil {
		if h, ok := f.h.(*valueHandle); ok { // as it was at the open
			n.t.fileAttr(out, n.allowed, int64(len(h.b)), h.at)
			return 0, nil
		}
	}
	b, at, err := n.now(ctx)
	if err != nil {
		return 0, err
	}
	n.t.fileAttr(out, n.allowed, int64(len(b)), at)
	return 0, nil
}

func (n *valueNode) now(ctx context.Context) ([]byte, time.Time, error) {
	if n.settle != nil {
		if err := n.settle(ctx); err != nil {
			return nil, time.Time{}, err
		}
	}
	return n.content(ctx)
}

func (n *valueNode) open(ctx context.Context, flags uint32) (handle, uint32, error) {
	a := accessOf(flags)
	if a.write {
		if n.write == nil || a.read {
			return nil, 0, errNoAccess
		}
		h, err := n.write(ctx)
		if err != nil {
			return nil, 0, err
		}
		return h, fuse.FOPEN_DIRECT_IO, nil
	}
	b, at, err := n.now(ctx)
	if err != nil {
		return nil, 0, err
	}
	h := n.t.newValueHandle(b)
	h.at = at
	return h, fuse.FOPEN_DIRECT_IO, nil
}

func (n *valueNode) sync(ctx context.Context) error {
	if n.fsync == nil {
		return nil
	}
	return n.fsync(ctx)
}

// valueHandle reads bytes that were fixed at the open.
type valueHandle struct {
	t  *Tree
	b  []byte
	at time.Time
}

func (t *Tree) newValueHandle(b []byte) *valueHandle {
	t.readers.Add(1)
	return &valueHandle{t: t, b: b}
}

func (h *valueHandle) read(_ context.Context, dest []byte, pos int64, _ uint32) (int, error) {
	if pos >= int64(len(h.b)) {
		return 0, nil
	}
	return copy(dest, h.b[pos:]), nil
}

func (h *valueHandle) release() { h.t.readers.Add(-1) }
