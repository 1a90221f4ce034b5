package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// What the tree does not do is "operation not permitted", never "not implemented": the kernel remembers the latter for the life of the mount, and libc
// then falls back to something worse. Nor is it "read-only file system": a mistyped name must not look like a broken disk.

// Create implements fuse.RawFileSystem.
func (r *rawFS) Create(<-chan struct{}, *fuse.CreateIn, string, *fuse.CreateOut) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Tmpfile implements fuse.RawFileSystem.
func (r *rawFS) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Mknod implements fuse.RawFileSystem.
func (r *rawFS) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Symlink implements fuse.RawFileSystem.
func (r *rawFS) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Link implements fuse.RawFileSystem.
func (r *rawFS) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Rename implements fuse.RawFileSystem.
func (r *rawFS) Rename(<-chan struct{}, *fuse.RenameIn, string, string) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Unlink implements fuse.RawFileSystem.
func (r *rawFS) Unlink(<-chan struct{}, *fuse.InHeader, string) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Fallocate implements fuse.RawFileSystem. With EOPNOTSUPP glibc would write zeros instead.
func (r *rawFS) Fallocate(<-chan struct{}, *fuse.FallocateIn) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Readlink implements fuse.RawFileSystem.
func (r *rawFS) Readlink(<-chan struct{}, *fuse.InHeader) ([]byte, fuse.Status) {
	return nil, fuse.Status(errInvalid)
}

// Access implements fuse.RawFileSystem. The kernel decides by owner and mode (default_permissions) and does not ask.
func (r *rawFS) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

// GetXAttr implements fuse.RawFileSystem. Extended attributes are switched off at the mount.
func (r *rawFS) GetXAttr(<-chan struct{}, *fuse.InHeader, string, []byte) (uint32, fuse.Status) {
	return 0, fuse.Status(syscall.ENODATA)
}

// ListXAttr implements fuse.RawFileSystem.
func (r *rawFS) ListXAttr(<-chan struct{}, *fuse.InHeader, []byte) (uint32, fuse.Status) {
	return 0, fuse.OK
}

// SetXAttr implements fuse.RawFileSystem.
func (r *rawFS) SetXAttr(<-chan struct{}, *fuse.SetXAttrIn, string, []byte) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// RemoveXAttr implements fuse.RawFileSystem.
func (r *rawFS) RemoveXAttr(<-chan struct{}, *fuse.InHeader, string) fuse.Status {
	return fuse.Status(errNotAllowed)
}

// Statx implements fuse.RawFileSystem. The kernel sends it for stat(1) and all others who also ask for a time of birth. There is none, and at ENOSYS the
// kernel asks with GETATTR from then on; any other error would be that of the stat.
func (r *rawFS) Statx(<-chan struct{}, *fuse.StatxIn, *fuse.StatxOut) fuse.Status {
	return fuse.ENOSYS
}

// Ioctl implements fuse.RawFileSystem.
func (r *rawFS) Ioctl(<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte) fuse.Status {
	return fuse.Status(syscall.ENOTTY)
}
