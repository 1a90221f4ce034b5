package fs

import (
	"context"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// controlDir is .logmount: what the mount tells about itself.
type controlDir struct {
	dir
}

func (n *controlDir) lookup(_ context.Context, name string) (*found, error) {
	for _, c := range n.t.controlFiles() {
		if c.name != name {
			continue
		}
		node := &valueNode{t: n.t, allowed: 0o444}
		node.content = func(ctx context.Context) ([]byte, time.Time, error) {
			b, err := c.content(ctx)
			return b, n.t.controlTime(c.name), err
		}
		return &found{node: node, ino: inoOf(controlName, name)}, nil
	}
	return nil, errNoEntry
}

func (n *controlDir) list(context.Context) ([]fuse.DirEntry, error) {
	files := n.t.controlFiles()
	out := make([]fuse.DirEntry, 0, len(files))
	for _, c := range files {
		out = append(out, fuse.DirEntry{Name: c.name, Mode: fuse.S_IFREG, Ino: inoOf(controlName, c.name)})
	}
	return out, nil
}
