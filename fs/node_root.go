package fs

import (
	"context"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// controlName is the directory about the mount itself.
const controlName = storage.ControlName

// rootNode is the top of the tree.
type rootNode struct {
	dir
}

func (n *rootNode) lookup(ctx context.Context, name string) (*found, error) {
	if name == controlName {
		return &found{node: &controlDir{dir: n.dir}, ino: inoOf(controlName), same: "dir", keep: dirKeep}, nil
	}
	info, err := n.t.engine.Topic(ctx, name)
	if err != nil {
		return nil, asNoEntry(err)
	}
	return &found{node: &topicNode{dir: n.dir, topic: name}, ino: inoOf(name), same: "topic " + info.ID, keep: dirKeep}, nil
}

func (n *rootNode) list(ctx context.Context) ([]fuse.DirEntry, error) {
	topics, err := n.t.engine.Topics(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]fuse.DirEntry, 0, len(topics)+1)
	out = append(out, fuse.DirEntry{Name: controlName, Mode: fuse.S_IFDIR, Ino: inoOf(controlName)})
	for i := range topics {
		if topics[i].Name == controlName { // a broker takes the name for a topic; here it is taken
			continue
		}
		out = append(out, fuse.DirEntry{Name: topics[i].Name, Mode: fuse.S_IFDIR, Ino: inoOf(topics[i].Name)})
	}
	return out, nil
}

// mkdir creates a topic with one partition.
func (n *rootNode) mkdir(ctx context.Context, name string) error {
	if err := n.t.mayChange(); err != nil {
		return err
	}
	if name == controlName {
		return errExists
	}
	return n.t.engine.CreateTopic(ctx, storage.TopicSpec{Name: name, Partitions: 1})
}

// rmdir deletes a topic that holds no records.
func (n *rootNode) rmdir(ctx context.Context, name string) error {
	if name == controlName {
		return errNotAllowed
	}
	if err := n.t.mayChange(); err != nil {
		return err
	}
	if err := n.t.settle.waitTopic(ctx, name); err != nil { // a record that a close is about to make
		return err
	}
	return n.t.engine.DeleteTopic(ctx, name, false)
}
