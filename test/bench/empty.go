package main

import (
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxRequest is the size of the largest READ and WRITE, and st_blksize, as the product has them.
const maxRequest = 512 << 10

// emptyFS is the file system that does nothing: files "sink" and "wide" that take every write, and a file "zeros" of a fixed size. Each lookup gives a new
// inode that the kernel may not remember, and files bypass the page cache, as growing files of the product do.
//
// Programs size their requests by st_blksize: "sink" has the one that the product tells writers, "wide" the one that it tells readers.
type emptyFS struct {
	fuse.RawFileSystem
	size  uint64
	zeros []byte
	last  atomic.Uint64
}

// The low bits of an inode's number say which file it is; 1 is the root.
const (
	kindSink = iota
	kindZeros
	kindWide
	kinds = 4
)

// writeBlock is st_blksize where the product is written to.
const writeBlock = 4096

func newEmptyFS(size uint64) *emptyFS {
	f := &emptyFS{RawFileSystem: fuse.NewDefaultRawFileSystem(), size: size, zeros: make([]byte, maxRequest)}
	f.last.Store(kinds)
	return f
}

// Lookup implements fuse.RawFileSystem.
func (f *emptyFS) Lookup(_ <-chan struct{}, _ *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	kind := uint64(kindSink)
	switch name {
	case "sink":
	case "zeros":
		kind = kindZeros
	case "wide":
		kind = kindWide
	default:
		return fuse.ENOENT
	}
	out.NodeId = f.last.Add(kinds) | kind
	f.attr(out.NodeId, &out.Attr)
	return fuse.OK
}

// GetAttr implements fuse.RawFileSystem.
func (f *emptyFS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.attr(in.NodeId, &out.Attr)
	return fuse.OK
}

func (f *emptyFS) attr(id uint64, out *fuse.Attr) {
	out.Ino = kinds + id%kinds
	out.Nlink = 1
	out.Mode = fuse.S_IFREG | 0o666
	out.Blksize = maxRequest
	switch {
	case id == fuse.FUSE_ROOT_ID:
		out.Ino, out.Mode = id, fuse.S_IFDIR|0o755
	case id%kinds == kindZeros:
		out.Size = f.size
	case id%kinds == kindSink:
		out.Blksize = writeBlock
	}
}

// Open implements fuse.RawFileSystem.
func (f *emptyFS) Open(_ <-chan struct{}, _ *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	return fuse.OK
}

// Read implements fuse.RawFileSystem.
func (f *emptyFS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if in.NodeId%kinds != kindZeros || in.Offset >= f.size {
		return fuse.ReadResultData(nil), fuse.OK
	}
	return fuse.ReadResultData(f.zeros[:min(uint64(len(buf)), f.size-in.Offset)]), fuse.OK
}

// Writev implements fuse.RawFileSystem.
func (f *emptyFS) Writev(_ <-chan struct{}, _ *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	n := 0
	for _, b := range data {
		n += len(b)
	}
	return uint32(n), fuse.OK
}

// Flush implements fuse.RawFileSystem.
func (f *emptyFS) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Fsync implements fuse.RawFileSystem.
func (f *emptyFS) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
