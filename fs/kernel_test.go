package fs

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
)

// kernel plays the kernel's part: it sends a tree the requests that system calls become.
type kernel struct {
	t      testing.TB
	engine *storagetest.Memory
	tree   *Tree
	cancel chan struct{}
	pid    uint32
}

func newKernel(tb testing.TB, change func(*Options)) *kernel {
	tb.Helper()
	e := storagetest.NewMemory()
	o := Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	k := &kernel{t: tb, engine: e, tree: NewTree(e, o), cancel: make(chan struct{}), pid: 1000}
	k.tree.dying = func(uint32) bool { return false }
	return k
}

func (k *kernel) header(id uint64) fuse.InHeader {
	return fuse.InHeader{NodeId: id, Caller: fuse.Caller{Pid: k.pid}}
}

func (k *kernel) lookup(path string) (fuse.EntryOut, syscall.Errno) {
	out := fuse.EntryOut{NodeId: 1}
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		var errno syscall.Errno
		if out, errno = k.lookupIn(out.NodeId, name); errno != 0 {
			return out, errno
		}
	}
	return out, 0
}

func (k *kernel) lookupIn(parent uint64, name string) (fuse.EntryOut, syscall.Errno) {
	h := k.header(parent)
	var out fuse.EntryOut
	st := k.tree.raw.Lookup(k.cancel, &h, name, &out)
	return out, syscall.Errno(st)
}

func (k *kernel) mustLookup(path string) fuse.EntryOut {
	k.t.Helper()
	out, errno := k.lookup(path)
	if errno != 0 {
		k.t.Fatalf("lookup %s: %v", path, errno)
	}
	return out
}

func (k *kernel) mkdir(path string) syscall.Errno {
	parent := uint64(1)
	name := path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		name = path[i+1:]
		parent = k.mustLookup(path[:i]).NodeId
	}
	var out fuse.EntryOut
	return syscall.Errno(k.tree.raw.Mkdir(k.cancel, &fuse.MkdirIn{InHeader: k.header(parent)}, name, &out))
}

func (k *kernel) mustMkdir(path string) {
	k.t.Helper()
	if errno := k.mkdir(path); errno != 0 {
		k.t.Fatalf("mkdir %s: %v", path, errno)
	}
}

// descriptor is an open file description.
type descriptor struct {
	k     *kernel
	id    uint64
	fh    uint64
	flags uint32
	how   uint32 // FOPEN flags
	pos   uint64

	mapped bool // it is read through the page cache however it was opened, as sendfile(2) and mappings do
}

func (k *kernel) open(path string, flags uint32) (*descriptor, syscall.Errno) {
	e, errno := k.lookup(path)
	if errno != 0 {
		return nil, errno
	}
	return k.openID(e.NodeId, flags)
}

func (k *kernel) openID(id uint64, flags uint32) (*descriptor, syscall.Errno) {
	var out fuse.OpenOut
	if st := k.tree.raw.Open(k.cancel, &fuse.OpenIn{InHeader: k.header(id), Flags: flags}, &out); st != fuse.OK {
		return nil, syscall.Errno(st)
	}
	return &descriptor{k: k, id: id, fh: out.Fh, flags: flags, how: out.OpenFlags}, 0
}

func (k *kernel) mustOpen(path string, flags uint32) *descriptor {
	k.t.Helper()
	d, errno := k.open(path, flags)
	if errno != 0 {
		k.t.Fatalf("open %s: %v", path, errno)
	}
	return d
}

func (d *descriptor) pread(n int, pos int64) ([]byte, syscall.Errno) {
	return d.preadCancel(d.k.cancel, n, pos)
}

func (d *descriptor) preadCancel(cancel <-chan struct{}, n int, pos int64) ([]byte, syscall.Errno) {
	buf := make([]byte, n)
	in := &fuse.ReadIn{InHeader: d.k.header(d.id), Fh: d.fh, Offset: uint64(pos), Size: uint32(n), Flags: d.flags}
	if d.how&fuse.FOPEN_DIRECT_IO != 0 && !d.mapped {
		in.ReadFlags = fuse.READ_LOCKOWNER
	}
	res, st := d.k.tree.raw.Read(cancel, in, buf)
	if st != fuse.OK {
		return nil, syscall.Errno(st)
	}
	b, _ := res.Bytes(buf)
	b = bytes.Clone(b)
	res.Done() // what was lent is used again
	return b, 0
}

// write sends one WRITE at the descriptor's position.
func (d *descriptor) write(s string) syscall.Errno {
	errno := d.pwrite(s, d.pos)
	if errno == 0 {
		d.pos += uint64(len(s))
	}
	return errno
}

func (d *descriptor) pwrite(s string, pos uint64) syscall.Errno {
	in := &fuse.WriteIn{InHeader: d.k.header(d.id), Fh: d.fh, Offset: pos, Size: uint32(len(s)), Flags: d.flags}
	data := []byte(s)
	n, st := d.k.tree.raw.Writev(d.k.cancel, in, [][]byte{data})
	for i := range data { // the request's memory is used again
		data[i] = 0xee
	}
	if st == fuse.OK && int(n) != len(s) {
		d.k.t.Fatalf("write of %d bytes took %d", len(s), n)
	}
	return syscall.Errno(st)
}

func (d *descriptor) flush() syscall.Errno {
	return syscall.Errno(d.k.tree.raw.Flush(d.k.cancel, &fuse.FlushIn{InHeader: d.k.header(d.id), Fh: d.fh}))
}

func (d *descriptor) release() {
	d.k.tree.raw.Release(d.k.cancel, &fuse.ReleaseIn{InHeader: d.k.header(d.id), Fh: d.fh})
}

// close is the last close(2), with the RELEASE that follows it.
func (d *descriptor) close() syscall.Errno {
	errno := d.flush()
	d.release()
	return errno
}

func (d *descriptor) fsync() syscall.Errno {
	return syscall.Errno(d.k.tree.raw.Fsync(d.k.cancel, &fuse.FsyncIn{InHeader: d.k.header(d.id), Fh: d.fh}))
}

func (k *kernel) fsyncDir(path string) syscall.Errno {
	e, errno := k.lookup(path)
	if errno != 0 {
		return errno
	}
	return syscall.Errno(k.tree.raw.FsyncDir(k.cancel, &fuse.FsyncIn{InHeader: k.header(e.NodeId)}))
}

func (d *descriptor) stat() (fuse.Attr, syscall.Errno) {
	var out fuse.AttrOut
	in := &fuse.GetAttrIn{InHeader: d.k.header(d.id), Flags_: fuse.FUSE_GETATTR_FH, Fh_: d.fh}
	st := d.k.tree.raw.GetAttr(d.k.cancel, in, &out)
	return out.Attr, syscall.Errno(st)
}

func (d *descriptor) mustStat() fuse.Attr {
	d.k.t.Helper()
	a, errno := d.stat()
	if errno != 0 {
		d.k.t.Fatalf("fstat: %v", errno)
	}
	return a
}

func (d *descriptor) truncate(size uint64) syscall.Errno {
	var out fuse.AttrOut
	in := &fuse.SetAttrIn{}
	in.InHeader, in.Valid, in.Size, in.Fh = d.k.header(d.id), fuse.FATTR_SIZE|fuse.FATTR_FH, size, d.fh
	return syscall.Errno(d.k.tree.raw.SetAttr(d.k.cancel, in, &out))
}

// write appends s to the file at path through an open of its own.
func (k *kernel) write(path, s string) {
	k.t.Helper()
	d := k.mustOpen(path, syscall.O_WRONLY|syscall.O_APPEND)
	if errno := d.write(s); errno != 0 {
		k.t.Fatalf("write %s: %v", path, errno)
	}
	if errno := d.close(); errno != 0 {
		k.t.Fatalf("close %s: %v", path, errno)
	}
}

// read returns all of the file at path.
func (k *kernel) read(path string) string {
	k.t.Helper()
	d := k.mustOpen(path, syscall.O_RDONLY)
	defer d.close()
	return d.readAll()
}

func (d *descriptor) readAll() string { return d.readFrom(0) }

func (d *descriptor) readFrom(pos int) string {
	d.k.t.Helper()
	var out []byte
	for {
		b, errno := d.pread(1000, int64(pos+len(out)))
		if errno != 0 {
			d.k.t.Fatalf("read at %d: %v", pos+len(out), errno)
		}
		if len(b) == 0 {
			return string(out)
		}
		out = append(out, b...)
	}
}

func (k *kernel) wantRead(path, want string) {
	k.t.Helper()
	if got := k.read(path); got != want {
		k.t.Errorf("%s: got %.200q, want %.200q", path, got, want)
	}
}

func (k *kernel) append(tp storage.TopicPartition, records ...storage.Record) {
	k.t.Helper()
	p, err := k.engine.Partition(context.Background(), tp)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := p.Append(context.Background(), records, 16384); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kernel) reports() string { return string(k.tree.reports.JSON()) }

var orders = storage.TopicPartition{Topic: "orders"}
