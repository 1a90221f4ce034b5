package fs

import (
	"context"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// dir is what directories have in common: nothing can be made or removed in them.
type dir struct {
	t *Tree
}

func (dir) mkdir(context.Context, string) error { return errNotAllowed }
func (dir) rmdir(context.Context, string) error { return errNotAllowed }
func (dir) sync(context.Context) error          { return nil }

func (d dir) attr(_ context.Context, _ *file, out *fuse.Attr) (time.Duration, error) {
	return d.t.dirAttr(out, d.t.engine.Info().Modified), nil
}

// partDir is what directories of a partition have in common: they belong to it and sync it.
type partDir struct {
	dir
	tp storage.TopicPartition
}

// attr tells a time that does not move: the names in the directory stay the same, and the kernel keeps what it is told for a while, so that an append in
// between would look to tar(1) like a directory that changes while it is read.
func (d *partDir) attr(ctx context.Context, _ *file, out *fuse.Attr) (time.Duration, error) {
	if _, err := d.part(ctx); err != nil {
		return 0, err
	}
	info, err := d.t.engine.Topic(ctx, d.tp.Topic)
	if err != nil {
		return 0, err
	}
	at := info.Created
	if at.IsZero() { // another's
		at = d.t.started
	}
	return d.t.dirAttr(out, at), nil
}

func (d *partDir) part(ctx context.Context) (*part, error) { return d.t.parts.get(ctx, d.tp) }

func (d *partDir) sync(ctx context.Context) error {
	p, err := d.part(ctx)
	if err != nil {
		return err
	}
	return d.t.sync(ctx, p)
}

// ino returns the inode number of a name in the partition.
func (d *partDir) ino(names ...string) uint64 {
	return inoOf(append([]string{d.tp.Topic, number(d.tp.Partition)}, names...)...)
}

// list of directories whose names resolve but are not shown, as there are endlessly many.
func (*partDir) list(context.Context) ([]fuse.DirEntry, error) { return nil, nil }

// look is how every lookup in a partition begins: closes that are under way are waited for, then the newest state is taken.
func (d *partDir) look(ctx context.Context) (*part, storage.Snapshot, error) {
	if err := d.t.settle.wait(ctx, d.tp); err != nil {
		return nil, nil, err
	}
	p, err := d.part(ctx)
	if err != nil {
		return nil, nil, asNoEntry(err)
	}
	s, err := p.Snapshot(ctx)
	if err != nil {
		return nil, nil, asNoEntry(err)
	}
	return p, s, nil
}
