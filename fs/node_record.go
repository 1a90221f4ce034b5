package fs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// recordNode is one record: its exact value without a suffix, else as it looks in the format.
type recordNode struct {
	t      *Tree
	p      *part
	offset storage.Offset
	format format.Format

	size int64
	at   time.Time
}

// load looks the record up.
func (n *recordNode) load(ctx context.Context, s storage.Snapshot) error {
	b, at, err := n.content(ctx, s)
	n.size, n.at = int64(len(b)), at
	return err
}

// content returns the record's bytes and time. errNoEntry where there is no such record.
func (n *recordNode) content(ctx context.Context, s storage.Snapshot) ([]byte, time.Time, error) {
	if n.offset < s.Start() || n.offset >= s.End() {
		return nil, time.Time{}, errNoEntry
	}
	c := s.Records(n.offset)
	defer c.Close()
	r, err := c.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, time.Time{}, errNoEntry // nothing but control batches from here on, or what aborted transactions wrote
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	if r.Offset != n.offset {
		return nil, time.Time{}, errNoEntry
	}
	at := r.Time()
	switch n.format {
	case format.Lines:
		return append([]byte(nil), r.Value...), at, nil
	case format.Batch:
		batches := s.Records(n.offset)
		defer batches.Close()
		b, err := batches.NextBatch(ctx)
		return append([]byte(nil), b...), at, err
	case format.NUL, format.KV, format.JSON, format.Whole:
	}
	return n.format.Append(nil, r), at, nil
}

func (n *recordNode) attr(_ context.Context, _ *file, out *fuse.Attr) (time.Duration, error) {
	n.t.fileAttr(out, 0o444, n.size, n.at)
	return finishedKeep, nil
}

func (n *recordNode) open(ctx context.Context, flags uint32) (handle, uint32, error) {
	if accessOf(flags).write {
		return nil, 0, errNoAccess
	}
	s, err := n.p.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	b, _, err := n.content(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	return n.t.newValueHandle(b), fuse.FOPEN_KEEP_CACHE, nil
}

func (n *recordNode) sync(ctx context.Context) error { return n.t.sync(ctx, n.p) }
