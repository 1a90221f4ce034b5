package fs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// node is what an inode stands for. It is immutable or locks for itself.
type node interface {
	// attr fills out, save the inode number, and says how long it stays true. f is the open file that the question came through, if it did.
	attr(ctx context.Context, f *file, out *fuse.Attr) (keep time.Duration, err error)
}

// glancer is a node of which not everything is worked out for a LOOKUP: it may be no more than the way to an open. Whoever wants the attributes, stat(2) and
// fstat(2), has the kernel ask for them once more, as these stay true for no time.
type glancer interface {
	// glance is attr with what is known.
	glance(ctx context.Context, out *fuse.Attr) (keep time.Duration, err error)
}

// dirNode is a directory.
type dirNode interface {
	node
	lookup(ctx context.Context, name string) (*found, error)
	list(ctx context.Context) ([]fuse.DirEntry, error)
	mkdir(ctx context.Context, name string) error
	rmdir(ctx context.Context, name string) error
	sync(ctx context.Context) error
}

// fileNode is a regular file.
type fileNode interface {
	node
	open(ctx context.Context, flags uint32) (h handle, fopen uint32, err error)
	sync(ctx context.Context) error
}

// rawFS implements fuse.RawFileSystem. It keeps what the kernel knows (inodes, open files) and leaves the meaning to the nodes and handles.
//
// go-fuse's own layer for nodes is not used: it hides the flags of READ and WRITE and whether a GETATTR came through a handle, and it would look for
// equal inodes where each lookup shall give a new one.
type rawFS struct {
	t     *Tree
	table *inodeTable

	server atomic.Pointer[fuse.Server]

	mu    sync.RWMutex // guards files and last; a leaf
	files map[uint64]*file
	last  uint64
}

func newRawFS(t *Tree) *rawFS {
	r := &rawFS{t: t, files: make(map[uint64]*file)}
	r.table = newInodeTable(&rootNode{dir: dir{t: t}})
	return r
}

// file is an open file or directory.
type file struct {
	fh    uint64
	in    *inode
	h     handle
	flags uint32
}

func (r *rawFS) addFile(f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	f.fh = r.last
	r.files[f.fh] = f
}

func (r *rawFS) file(fh uint64) *file {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.files[fh]
}

func (r *rawFS) dropFile(fh uint64) *file {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.files[fh]
	delete(r.files, fh)
	return f
}

// request makes the context of one request.
func request(cancel <-chan struct{}, h *fuse.InHeader) *fuse.Context {
	return &fuse.Context{Caller: h.Caller, Cancel: cancel}
}

// String implements fuse.RawFileSystem.
func (r *rawFS) String() string { return "logmount" }

// SetDebug implements fuse.RawFileSystem.
func (r *rawFS) SetDebug(bool) {}

// Init implements fuse.RawFileSystem.
func (r *rawFS) Init(s *fuse.Server) { r.server.Store(s) }

// OnUnmount implements fuse.RawFileSystem.
func (r *rawFS) OnUnmount() {}

// Lookup implements fuse.RawFileSystem.
func (r *rawFS) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	in := r.table.get(header.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	return r.t.status("lookup", in, r.lookup(request(cancel, header), in, name, out))
}

func (r *rawFS) lookup(ctx context.Context, in *inode, name string, out *fuse.EntryOut) error {
	d, ok := in.node.(dirNode)
	if !ok {
		return errNotDir
	}
	if name == "." || name == ".." { // from a file handle that outlived its dentry; nothing here promises to be found again in that way
		return errStale
	}
	f, err := d.lookup(ctx, name)
	if err != nil {
		return err
	}
	attr := func(ctx context.Context, out *fuse.Attr) (time.Duration, error) { return f.node.attr(ctx, nil, out) }
	if g, ok := f.node.(glancer); ok {
		attr = g.glance
	}
	keep, err := attr(ctx, &out.Attr)
	if err != nil {
		return err
	}
	child := r.table.add(in, name, f)
	out.NodeId = child.id
	out.Ino = child.ino
	out.SetAttrTimeout(keep)
	out.SetEntryTimeout(f.keep)
	return nil
}

// Forget implements fuse.RawFileSystem.
func (r *rawFS) Forget(nodeid, nlookup uint64) { r.table.forget(nodeid, nlookup) }

// GetAttr implements fuse.RawFileSystem.
func (r *rawFS) GetAttr(cancel <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	var f *file
	if input.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		if f = r.file(input.Fh()); f != nil {
			r.t.used(f)
		}
	}
	err := getattr(request(cancel, &input.InHeader), in, f, out)
	if f != nil {
		return r.t.fileStatus("getattr", in, err)
	}
	return r.t.status("getattr", in, err)
}

func getattr(ctx context.Context, in *inode, f *file, out *fuse.AttrOut) error {
	keep, err := in.node.attr(ctx, f, &out.Attr)
	if err != nil {
		return err
	}
	out.Ino = in.ino
	out.SetTimeout(keep)
	return nil
}

// settable are the changes of attributes that are taken without an effect: a copy with its times, touch(1).
const settable = fuse.FATTR_ATIME | fuse.FATTR_MTIME | fuse.FATTR_CTIME | fuse.FATTR_ATIME_NOW | fuse.FATTR_MTIME_NOW | fuse.FATTR_FH | fuse.FATTR_LOCKOWNER

// SetAttr implements fuse.RawFileSystem. A log cannot be cut; only a record that is still being written may be made longer.
func (r *rawFS) SetAttr(cancel <-chan struct{}, input *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	ctx := request(cancel, &input.InHeader)
	var f *file
	if fh, ok := input.GetFh(); ok {
		if f = r.file(fh); f != nil {
			r.t.used(f)
		}
	}
	valid := input.Valid
	if size, ok := input.GetSize(); ok {
		if f == nil {
			return fuse.Status(errNotAllowed)
		}
		w, ok := f.h.(truncater)
		if !ok {
			return fuse.Status(errNotAllowed)
		}
		if err := w.truncate(ctx, size); err != nil {
			return r.t.fileStatus("truncate", in, err)
		}
		valid &^= fuse.FATTR_SIZE
	}
	if valid&^settable != 0 {
		return fuse.Status(errNotAllowed)
	}
	return r.t.status("setattr", in, getattr(ctx, in, f, out))
}

// Mkdir implements fuse.RawFileSystem.
func (r *rawFS) Mkdir(cancel <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	ctx := request(cancel, &input.InHeader)
	d, ok := in.node.(dirNode)
	if !ok {
		return fuse.Status(errNotDir)
	}
	if err := d.mkdir(ctx, name); err != nil {
		return r.t.status("mkdir", in, err)
	}
	r.table.removed(in, name)
	r.t.topics.fire()
	return r.t.status("mkdir", in, r.lookup(context.WithoutCancel(ctx), in, name, out))
}

// Rmdir implements fuse.RawFileSystem.
func (r *rawFS) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	in := r.table.get(header.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	d, ok := in.node.(dirNode)
	if !ok {
		return fuse.Status(errNotDir)
	}
	if err := d.rmdir(request(cancel, header), name); err != nil {
		return r.t.status("rmdir", in, err)
	}
	r.table.removed(in, name)
	r.t.topics.fire()
	return fuse.OK
}

// dirHandle is an open directory: its listing as it was at the open, or at the last rewind.
type dirHandle struct {
	mu      sync.Mutex
	entries []fuse.DirEntry
	fresh   bool
}

func (*dirHandle) release() {}

// OpenDir implements fuse.RawFileSystem.
func (r *rawFS) OpenDir(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	h := &dirHandle{}
	if err := h.load(request(cancel, &input.InHeader), in); err != nil {
		return r.t.status("opendir", in, err)
	}
	f := &file{in: in, h: h, flags: input.Flags}
	r.addFile(f)
	out.Fh = f.fh
	return fuse.OK
}

func (h *dirHandle) load(ctx context.Context, in *inode) error {
	d, ok := in.node.(dirNode)
	if !ok {
		return errNotDir
	}
	list, err := d.list(ctx)
	if err != nil {
		return err
	}
	up := in
	if in.parent != nil {
		up = in.parent
	}
	entries := make([]fuse.DirEntry, 0, len(list)+2)
	entries = append(entries, fuse.DirEntry{Name: ".", Mode: fuse.S_IFDIR, Ino: in.ino}, fuse.DirEntry{Name: "..", Mode: fuse.S_IFDIR, Ino: up.ino})
	h.entries, h.fresh = append(entries, list...), true
	return nil
}

// ReadDir implements fuse.RawFileSystem.
func (r *rawFS) ReadDir(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f := r.file(input.Fh)
	if f == nil {
		return fuse.Status(errBadFile)
	}
	h, ok := f.h.(*dirHandle)
	if !ok {
		return fuse.Status(errNotDir)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if input.Offset == 0 && !h.fresh {
		if err := h.load(request(cancel, &input.InHeader), f.in); err != nil {
			return r.t.status("readdir", f.in, err)
		}
	}
	for i := input.Offset; i < uint64(len(h.entries)); i++ {
		e := h.entries[i]
		e.Off = i + 1
		if !out.AddDirEntry(e) {
			break
		}
		h.fresh = false
	}
	return fuse.OK
}

// ReadDirPlus implements fuse.RawFileSystem. It is switched off at the mount, as it would look up every name.
func (r *rawFS) ReadDirPlus(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return r.ReadDir(cancel, input, out)
}

// ReleaseDir implements fuse.RawFileSystem.
func (r *rawFS) ReleaseDir(input *fuse.ReleaseIn) {
	if f := r.dropFile(input.Fh); f != nil {
		r.t.locks.releaseHandle(f.fh)
	}
}

// FsyncDir implements fuse.RawFileSystem.
func (r *rawFS) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	d, ok := in.node.(dirNode)
	if !ok {
		return fuse.Status(errNotDir)
	}
	return r.t.status("fsync", in, d.sync(request(cancel, &input.InHeader)))
}

// statBlock is the unit in which df(1) is told about room.
const statBlock = 4096

// StatFs implements fuse.RawFileSystem. It tells the room where the logs are; where an engine cannot tell, there are 0 blocks, which df(1) leaves out.
func (r *rawFS) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = statBlock, statBlock, 255
	e, ok := r.t.engine.(storage.Roomy)
	if !ok {
		return fuse.OK
	}
	room, err := e.Room(request(cancel, h))
	if err != nil {
		return fuse.OK // who asks wants to know that the mount answers
	}
	out.Blocks, out.Bfree, out.Bavail = blocks(room.Total), blocks(room.Free), blocks(room.Avail)
	return fuse.OK
}

func blocks(bytes int64) uint64 { return uint64(max(bytes, 0)) / statBlock }
