// Package vfs is the only road from the product to the disk.
//
// FS and File are the seam: OS() is the real disk, vfs/memfs a disk in memory that can lose what was not synced, vfs/faultfs a wrapper that fails or cuts
// short the i-th call. Files is a cache of descriptors on top of any FS. Everything above takes an FS and never imports os.
//
// Invariants:
//
//	I1  A name is durable after SyncDir of its directory, a file's bytes and size after File.Sync.
//	I2  Errors can be told apart with errors.Is: fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and syscall.Errno values.
//	I3  A write-back error is reported once by Sync; whoever gets it must take the bytes for lost.
package vfs

import (
	"io"
	"io/fs"
	"time"
)

// FS is a file system. Names are paths as the implementation takes them; the product uses absolute ones. All methods may be called concurrently.
type FS interface {
	// OpenFile opens a file; flag is os.O_RDONLY, or os.O_RDWR with any of os.O_CREATE, os.O_EXCL, os.O_TRUNC. Never O_APPEND.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename replaces newname atomically.
	Rename(oldname, newname string) error
	Mkdir(name string, perm fs.FileMode) error
	// ReadDir lists a directory in the order of names, without looking at the entries.
	ReadDir(name string) ([]DirEntry, error)
	// Stat follows symbolic links.
	Stat(name string) (FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Chown and Chmod change a name's owner and permission bits.
	Chown(name string, uid, gid uint32) error
	Chmod(name string, perm fs.FileMode) error
	// Lock creates name where it is missing and takes an exclusive open-file-description lock on the whole file, without waiting.
	// It excludes a Java broker's lock, and is ErrLocked where somebody else has one.
	Lock(name string, perm fs.FileMode) (Lock, error)
	// Locked reports whether somebody has such a lock on name, and changes nothing. A file that is not there is not locked.
	Locked(name string) (bool, error)
	// Usage tells the room on the file system that holds name.
	Usage(name string) (Usage, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync puts the file's bytes and size on stable storage.
	Sync() error
	Truncate(size int64) error
	Stat() (FileInfo, error)
}

// Lock is a held lock.
type Lock interface {
	// Ours reports whether the path still names the file that is locked (a broker that stops unlinks it).
	Ours() bool
	// Release removes the file, still locked, if it is ours, and then lets go.
	Release() error
}

// DirEntry is a name in a directory.
type DirEntry struct {
	Name string
	Mode fs.FileMode // type bits only; ModeIrregular where the file system does not tell
}

// FileInfo describes a file.
type FileInfo struct {
	Size     int64
	Mode     fs.FileMode
	Modified int64 // nanoseconds since the Unix epoch
	Ino      uint64
	Dev      uint64
	UID, GID uint32
}

// Time is when it was last modified.
func (i FileInfo) Time() time.Time { return time.Unix(0, i.Modified) }

// Millis is when it was last modified, in milliseconds since the Unix epoch.
func (i FileInfo) Millis() int64 { return i.Modified / int64(time.Millisecond) }

// settled is how long a directory must have been unchanged for its modification time to tell a change: clocks of file systems are coarse.
const settled = 2 * time.Second

// Settled reports whether a directory had been unchanged for so long at that time that the next change will have another modification time.
func (i FileInfo) Settled(at time.Time) bool { return at.Sub(i.Time()) > settled }

// Still reports whether now describes the directory that i describes, unchanged since what was read of it at that time.
func (i FileInfo) Still(now FileInfo, at time.Time) bool {
	return now.Ino == i.Ino && now.Modified == i.Modified && i.Settled(at)
}

// IsDir reports whether it is a directory.
func (i FileInfo) IsDir() bool { return i.Mode.IsDir() }

// Usage is the room on a file system, in bytes and inodes.
type Usage struct {
	Total, Free, Avail int64 // Avail: to this process; what is kept for root counts for root
	Files, FilesFree   int64
}
