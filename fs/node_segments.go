package fs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// segmentsDir lists the raw files of a partition.
type segmentsDir struct {
	partDir
}

func (n *segmentsDir) list(ctx context.Context) ([]fuse.DirEntry, error) {
	p, err := n.part(ctx)
	if err != nil {
		return nil, err
	}
	files, err := p.Files(ctx)
	if errors.Is(err, storage.ErrUnsupported) { // an engine that has none
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]fuse.DirEntry, 0, len(files))
	for i := range files {
		out = append(out, fuse.DirEntry{Name: files[i].Name, Mode: fuse.S_IFREG, Ino: n.ino("segments", files[i].Name)})
	}
	return out, nil
}

func (n *segmentsDir) lookup(ctx context.Context, name string) (*found, error) {
	p, s, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	info, err := p.File(ctx, name)
	switch {
	case errors.Is(err, storage.ErrUnsupported):
		return nil, errNoEntry
	case err != nil:
		return nil, asNoEntry(err)
	}
	f := &found{node: &segmentNode{t: n.t, p: p, info: info}, ino: n.ino("segments", name), dynamic: true}
	if info.Final {
		f.same = identity(p, s, storage.Offset(info.Size), storage.Offset(info.Modified.UnixNano()))
	}
	return f, nil
}

// segmentNode is one raw file.
type segmentNode struct {
	t    *Tree
	p    *part
	info storage.FileInfo
}

func (n *segmentNode) attr(_ context.Context, f *file, out *fuse.Attr) (time.Duration, error) {
	info := n.info
	if f != nil && !info.Final {
		if h, ok := f.h.(*segmentHandle); ok {
			var err error
			if info, err = h.f.Stat(); err != nil {
				return 0, err
			}
		}
	}
	n.t.fileAttr(out, 0o444, info.Size, info.Modified)
	if n.info.Final {
		return finishedKeep, nil
	}
	return 0, nil
}

func (n *segmentNode) open(ctx context.Context, flags uint32) (handle, uint32, error) {
	if accessOf(flags).write {
		return nil, 0, errNoAccess
	}
	f, err := n.p.OpenFile(ctx, n.info.Name)
	if err != nil {
		return nil, 0, err
	}
	n.t.readers.Add(1)
	h := &segmentHandle{t: n.t, f: f}
	if n.info.Final {
		return h, fuse.FOPEN_KEEP_CACHE, nil
	}
	return h, fuse.FOPEN_DIRECT_IO, nil
}

func (n *segmentNode) sync(ctx context.Context) error { return n.t.sync(ctx, n.p) }

// segmentHandle reads a raw file.
type segmentHandle struct {
	t *Tree
	f storage.RawFile
}

func (h *segmentHandle) read(_ context.Context, dest []byte, pos int64, _ uint32) (int, error) {
	n, err := h.f.ReadAt(dest, pos)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (h *segmentHandle) release() {
	_ = h.f.Close()
	h.t.readers.Add(-1)
}
