package fs

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// handle is what an open file does; more by the interfaces below.
type handle interface {
	// release is called once, after everything else.
	release()
}

// reader is a handle open for reading.
type reader interface {
	read(ctx context.Context, dest []byte, pos int64, flags uint32) (int, error)
}

// writer is a handle open for writing. A request is taken whole or refused.
type writer interface {
	write(ctx context.Context, data []byte, pos int64, flags uint32) error
	// flush is called when a descriptor is closed, which need not be the last.
	flush(ctx context.Context, pid uint32) error
}

// truncater is a handle whose size can be set.
type truncater interface {
	truncate(ctx context.Context, size uint64) error
}

// closer is a handle with something to finish at the last close. closing is called as soon as that close is known of, before release.
type closer interface {
	closing()
}

// user is a handle that wants to know that it is still in use.
type user interface {
	alive()
}

// used tells an open file that a request other than its last came.
func (t *Tree) used(f *file) {
	if u, ok := f.h.(user); ok {
		u.alive()
	}
}

// Open implements fuse.RawFileSystem.
func (r *rawFS) Open(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	n, ok := in.node.(fileNode)
	if !ok {
		return fuse.Status(errIsDir)
	}
	if err := r.t.running(); err != nil {
		return r.t.status("open", in, err)
	}
	h, fopen, err := n.open(request(cancel, &input.InHeader), input.Flags)
	if err != nil {
		return r.t.status("open", in, err)
	}
	f := &file{in: in, h: h, flags: input.Flags}
	r.addFile(f)
	out.Fh, out.OpenFlags = f.fh, fopen
	return fuse.OK
}

// Read implements fuse.RawFileSystem.
func (r *rawFS) Read(cancel <-chan struct{}, input *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f := r.file(input.Fh)
	if f == nil {
		return nil, fuse.Status(errBadFile)
	}
	h, ok := f.h.(reader)
	if !ok {
		return nil, fuse.Status(errBadFile)
	}
	r.t.used(f)
	if input.Offset > 1<<63-1-uint64(len(buf)) {
		return nil, fuse.Status(errInvalid)
	}
	ctx := request(cancel, &input.InHeader)
	if l, ok := h.(lender); ok {
		// sendfile(2), splice(2) and mappings go through the page cache however the file was opened. Only what does not names the owner of locks.
		cached := input.ReadFlags&fuse.READ_LOCKOWNER == 0
		n, lent, err := l.lend(ctx, buf, int64(input.Offset), cached)
		switch {
		case err != nil:
			return nil, r.t.fileStatus("read", f.in, err)
		case lent != nil:
			return lent, fuse.OK
		}
		return fuse.ReadResultData(buf[:n]), fuse.OK
	}
	n, err := h.read(ctx, buf, int64(input.Offset), input.Flags)
	if err != nil {
		return nil, r.t.fileStatus("read", f.in, err)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// Write implements fuse.RawFileSystem. What comes out of the page cache was written through a mapping: it has no order and no boundaries.
func (r *rawFS) Write(cancel <-chan struct{}, input *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	f := r.file(input.Fh)
	if input.WriteFlags&fuse.WRITE_CACHE != 0 {
		return 0, fuse.Status(errNotAllowed)
	}
	if f == nil {
		return 0, fuse.Status(errBadFile)
	}
	h, ok := f.h.(writer)
	if !ok {
		return 0, fuse.Status(errBadFile)
	}
	r.t.used(f)
	if input.Offset > 1<<63-1-uint64(len(data)) {
		return 0, fuse.Status(errInvalid)
	}
	if err := h.write(request(cancel, &input.InHeader), data, int64(input.Offset), input.Flags); err != nil {
		return 0, r.t.fileStatus("write", f.in, err)
	}
	return uint32(len(data)), fuse.OK
}

// Writev implements fuse.RawFileSystem; go-fuse calls it rather than Write. Requests in pieces are those larger than one buffer, which the mount's
// MaxWrite does not allow; they are put together.
func (r *rawFS) Writev(cancel <-chan struct{}, input *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	if len(data) == 1 {
		return r.Write(cancel, input, data[0])
	}
	var all []byte
	for _, b := range data {
		all = append(all, b...)
	}
	return r.Write(cancel, input, all)
}

// Flush implements fuse.RawFileSystem.
func (r *rawFS) Flush(cancel <-chan struct{}, input *fuse.FlushIn) fuse.Status {
	f := r.file(input.Fh)
	if f == nil {
		return fuse.Status(errBadFile)
	}
	r.t.locks.releaseOwner(f.in.ino, input.LockOwner)
	h, ok := f.h.(writer)
	if !ok {
		return fuse.OK
	}
	return r.t.fileStatus("close", f.in, h.flush(request(cancel, &input.InHeader), input.Pid))
}

// Release implements fuse.RawFileSystem.
func (r *rawFS) Release(_ <-chan struct{}, input *fuse.ReleaseIn) {
	f := r.dropFile(input.Fh)
	if f == nil {
		return
	}
	if c, ok := f.h.(closer); ok {
		c.closing()
	}
	r.t.locks.releaseHandle(f.fh)
	f.h.release()
}

// Fsync implements fuse.RawFileSystem.
func (r *rawFS) Fsync(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	in := r.table.get(input.NodeId)
	if in == nil {
		return fuse.Status(errStale)
	}
	if f := r.file(input.Fh); f != nil {
		r.t.used(f)
	}
	n, ok := in.node.(fileNode)
	if !ok {
		return fuse.Status(errIsDir)
	}
	return r.t.fileStatus("fsync", in, n.sync(request(cancel, &input.InHeader)))
}

const (
	seekData = 3 // SEEK_DATA
	seekHole = 4 // SEEK_HOLE
)

// Lseek implements fuse.RawFileSystem. It is only asked for data and holes; there are none of the latter.
func (r *rawFS) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	f := r.file(in.Fh)
	if f == nil {
		return fuse.Status(errBadFile)
	}
	var a fuse.AttrOut
	if err := getattr(request(cancel, &in.InHeader), f.in, f, &a); err != nil {
		return r.t.fileStatus("seek", f.in, err)
	}
	switch {
	case in.Whence != seekData && in.Whence != seekHole:
		return fuse.Status(errInvalid)
	case in.Offset >= a.Size:
		return fuse.Status(syscall.ENXIO)
	case in.Whence == seekHole:
		out.Offset = a.Size
	default:
		out.Offset = in.Offset
	}
	return fuse.OK
}

// GetLk implements fuse.RawFileSystem.
func (r *rawFS) GetLk(_ <-chan struct{}, input *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	f := r.file(input.Fh)
	if f == nil {
		return fuse.Status(errBadFile)
	}
	r.t.locks.getlk(f.in.ino, input.Owner, &input.Lk, input.LkFlags, &out.Lk)
	return fuse.OK
}

// SetLk implements fuse.RawFileSystem.
func (r *rawFS) SetLk(cancel <-chan struct{}, input *fuse.LkIn) fuse.Status {
	return r.setlk(cancel, input, false)
}

// SetLkw implements fuse.RawFileSystem.
func (r *rawFS) SetLkw(cancel <-chan struct{}, input *fuse.LkIn) fuse.Status {
	return r.setlk(cancel, input, true)
}

func (r *rawFS) setlk(cancel <-chan struct{}, input *fuse.LkIn, wait bool) fuse.Status {
	f := r.file(input.Fh)
	if f == nil {
		return fuse.Status(errBadFile)
	}
	return fuse.Status(r.t.locks.setlk(cancel, f.in.ino, f.fh, input.Owner, &input.Lk, input.LkFlags, wait))
}

// copyAtOnce is how much one COPY_FILE_RANGE moves.
const copyAtOnce = 512 << 10

// CopyFileRange implements fuse.RawFileSystem. From batches to batches the bytes need not go through the program; everything else is refused in the way
// that makes programs read and write.
func (r *rawFS) CopyFileRange(cancel <-chan struct{}, input *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	from, to := r.file(input.FhIn), r.file(input.FhOut)
	if from == nil || to == nil {
		return 0, fuse.Status(errBadFile)
	}
	src, isRead := from.h.(batchReader)
	dst, isWrite := to.h.(batchWriter)
	if !isRead || !isWrite || !src.readsBatches() || !dst.takesBatches() || input.OffIn > 1<<62 || input.OffOut > 1<<62 {
		return 0, fuse.Status(errInvalid)
	}
	r.t.used(to)
	ctx := request(cancel, &input.InHeader)
	buf := make([]byte, min(input.Len, copyAtOnce))
	n, err := src.read(ctx, buf, int64(input.OffIn), 0)
	if err != nil {
		return 0, r.t.fileStatus("read", from.in, err)
	}
	if n == 0 {
		return 0, fuse.OK
	}
	if err := dst.write(ctx, buf[:n], int64(input.OffOut), to.flags); err != nil {
		return 0, r.t.fileStatus("write", to.in, err)
	}
	return uint32(n), fuse.OK
}

// batchReader is a reader that may give record batches as they lie on disk.
type batchReader interface {
	reader
	readsBatches() bool
}

// batchWriter is a writer that may take record batches.
type batchWriter interface {
	writer
	takesBatches() bool
}
