package fs

import (
	"context"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// partitionNode is the directory of one log.
type partitionNode struct {
	partDir
}

func (n *partitionNode) lookup(ctx context.Context, name string) (*found, error) {
	sub := partDir{n.dir, n.tp}
	f := &found{ino: n.ino(name), same: "dir", keep: dirKeep}
	switch name {
	case "offset":
		f.node = &offsetDir{sub}
	case "time":
		f.node = &timeDir{sub}
	case "record":
		f.node = &recordDir{sub}
	case "segments":
		f.node = &segmentsDir{sub}
	default:
		return n.lookupFile(ctx, name)
	}
	return f, nil
}

func (n *partitionNode) lookupFile(ctx context.Context, name string) (*found, error) {
	base, ft := splitFormat(name)
	switch base {
	case "tail", "follow", "start", "end":
	default:
		return nil, errNoEntry
	}
	p, s, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	f := &found{ino: n.ino(name)}
	switch {
	case base == "tail":
		f.node, f.same, err = n.t.newView(ctx, p, s, &view{format: ft, from: s.Start(), to: openEnd}, true)
		if err != nil {
			return nil, err
		}
	case base == "follow" && ft.Readable():
		f.node = &followNode{t: n.t, topic: n.tp.Topic, partition: n.tp.Partition, format: ft}
	case name == "start":
		f.node = n.t.offsetValue(p, "start", storage.Snapshot.Start)
	case name == "end":
		f.node = n.t.offsetValue(p, "end", storage.Snapshot.End)
	default:
		return nil, errNoEntry
	}
	return f, nil
}

// listed are the names that a walker may open: nothing that blocks, and the log only once.
var listed = []struct {
	name string
	mode uint32
}{
	{"end", fuse.S_IFREG},
	{"offset", fuse.S_IFDIR},
	{"record", fuse.S_IFDIR},
	{"segments", fuse.S_IFDIR},
	{"start", fuse.S_IFREG},
	{"tail", fuse.S_IFREG},
	{"time", fuse.S_IFDIR},
}

func (n *partitionNode) list(context.Context) ([]fuse.DirEntry, error) {
	out := make([]fuse.DirEntry, 0, len(listed))
	for _, l := range listed {
		out = append(out, fuse.DirEntry{Name: l.name, Mode: l.mode, Ino: n.ino(l.name)})
	}
	return out, nil
}

// offsetDir resolves N, N..M and -N.
type offsetDir struct {
	partDir
}

func (n *offsetDir) lookup(ctx context.Context, name string) (*found, error) {
	base, ft := splitFormat(name)
	spec, ok := parseOffsetSpec(base)
	if !ok || !ft.Readable() {
		return nil, errNoEntry
	}
	p, s, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{format: ft, from: storage.Offset(spec.from), to: openEnd}
	if spec.hasTo {
		v.to = storage.Offset(spec.to)
	}
	if spec.fromEnd {
		if v.from, err = s.FindLast(ctx, spec.from); err != nil {
			return nil, err
		}
	}
	if v.from < s.Start() || v.from > s.End() {
		return nil, errNoEntry
	}
	return n.found(ctx, p, s, v, "offset", name)
}

// timeDir resolves T and T..U. Both ends are what they are at the lookup.
type timeDir struct {
	partDir
}

func (n *timeDir) lookup(ctx context.Context, name string) (*found, error) {
	base, ft := splitFormat(name)
	from, to, hasTo, ok := parseTimeSpec(base, n.t.opts.Now(), n.t.opts.Location)
	if !ok || !ft.Readable() {
		return nil, errNoEntry
	}
	p, s, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{format: ft, to: openEnd}
	if v.from, err = s.FindTime(ctx, from); err != nil {
		return nil, err
	}
	if hasTo {
		if v.to, err = s.FindTime(ctx, to); err != nil {
			return nil, err
		}
		v.to = max(v.to, v.from) // timestamps need not be in order
	}
	return n.found(ctx, p, s, v, "time", name)
}

func (d *partDir) found(ctx context.Context, p *part, s storage.Snapshot, v *view, in, name string) (*found, error) {
	node, same, err := d.t.newView(ctx, p, s, v, false)
	if err != nil {
		return nil, asNoEntry(err)
	}
	return &found{node: node, ino: d.ino(in, name), same: same, dynamic: true}, nil
}

// recordDir resolves N to the one record N.
type recordDir struct {
	partDir
}

func (n *recordDir) lookup(ctx context.Context, name string) (*found, error) {
	base, ft := splitFormat(name)
	o, ok := parseNumber(base)
	if !ok || !ft.Readable() {
		return nil, errNoEntry
	}
	p, s, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	node := &recordNode{t: n.t, p: p, offset: storage.Offset(o), format: ft}
	if err := node.load(ctx, s); err != nil {
		return nil, asNoEntry(err)
	}
	return &found{node: node, ino: n.ino("record", name), same: identity(p, s, node.offset, node.offset+1), dynamic: true}, nil
}
