package fs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// dirKeep is how long the kernel may believe a directory: in a directory that somebody else writes, topics come and go.
	dirKeep = time.Second
	// finishedKeep is for what cannot change.
	finishedKeep = time.Hour

	// readBlock is st_blksize where bytes are read: cat, wc and others size their buffers by it, and large requests are what makes reading fast.
	readBlock = 512 << 10
	// writeBlock is st_blksize where they are written: stdio and Python collect that much before they write, and a log wants its records soon.
	writeBlock = 4096
)

// owner fills in who owns a file.
func (t *Tree) owner(out *fuse.Attr) {
	info := t.engine.Info()
	out.Uid, out.Gid = info.UID, info.GID
	if t.opts.UID != nil {
		out.Uid = *t.opts.UID
	}
	if t.opts.GID != nil {
		out.Gid = *t.opts.GID
	}
}

// dirMode returns the permissions of directories.
func (t *Tree) dirMode() uint32 {
	if t.opts.Umask != nil {
		return 0o777 &^ *t.opts.Umask
	}
	return t.engine.Info().Mode & 0o777
}

// dirAttr fills in a directory.
func (t *Tree) dirAttr(out *fuse.Attr, modified time.Time) time.Duration {
	t.owner(out)
	out.Mode = fuse.S_IFDIR | t.dirMode()
	out.Nlink = 2
	out.Blksize = writeBlock
	setTimes(out, modified)
	return dirKeep
}

// fileAttr fills in a regular file. allowed is what may be done with it at all, as 0444, 0222 or 0666. A mount that is read-only keeps the mode bits, as
// read-only disks do: the error is then EROFS, which says what is the matter, and not EACCES.
func (t *Tree) fileAttr(out *fuse.Attr, allowed uint32, size int64, modified time.Time) {
	t.owner(out)
	mode := t.dirMode() & 0o666
	if t.opts.Umask != nil {
		mode = 0o666 &^ *t.opts.Umask
	}
	out.Mode = fuse.S_IFREG | mode&allowed
	out.Nlink = 1
	out.Size = uint64(max(size, 0))
	out.Blocks = (out.Size + 511) / 512
	out.Blksize = readBlock
	setTimes(out, modified)
}

func setTimes(out *fuse.Attr, at time.Time) {
	if at.IsZero() || at.Unix() < 0 {
		at = time.Unix(0, 0)
	}
	out.Atime, out.Mtime, out.Ctime = uint64(at.Unix()), uint64(at.Unix()), uint64(at.Unix())
	nsec := uint32(at.Nanosecond())
	out.Atimensec, out.Mtimensec, out.Ctimensec = nsec, nsec, nsec
}
