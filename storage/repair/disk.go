package repair

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/logmount/logmount/storage/vfs"
)

// smallLimit bounds files that are read whole.
const smallLimit = 256 << 20

// disk is a log directory on a file system. Names are relative to the directory.
type disk struct {
	fs  vfs.FS
	dir string
}

func (d *disk) path(rel string) string { return filepath.Join(d.dir, filepath.FromSlash(rel)) }

func join(dir, name string) string { return path.Join(dir, name) }

// readOr returns a file whole, or missing where there is none.
func (d *disk) readOr(rel string, missing []byte) ([]byte, error) {
	b, err := vfs.ReadFile(d.fs, d.path(rel), smallLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return missing, nil
	}
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

// ownerOf is who files that are made in a directory should belong to.
func (d *disk) ownerOf(rel string) (*vfs.Owner, error) {
	st, err := d.fs.Stat(d.path(rel))
	if err != nil {
		return nil, err
	}
	o := vfs.OwnerOf(st)
	return &o, nil
}

// write replaces a file durably. It gets the owner and mode of its directory.
func (d *disk) write(rel string, b []byte) error {
	owner, err := d.ownerOf(path.Dir(rel))
	if err != nil {
		return err
	}
	return vfs.WriteFile(d.fs, d.path(rel), b, 0o644, owner)
}

func (d *disk) syncDir(rel string) error { return d.fs.SyncDir(d.path(rel)) }

// remove removes a file; it is no error if it is not there.
func (d *disk) remove(rel string) error {
	if err := d.fs.Remove(d.path(rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sync puts a file's bytes on stable storage.
func (d *disk) sync(rel string) error {
	f, err := d.fs.OpenFile(d.path(rel), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// sum returns length and SHA-256 of bytes [pos, end) of a file and whether all of them are zero.
func sum(f io.ReaderAt, pos, end int64) (hash string, zeros bool, err error) {
	h := sha256.New()
	zeros = true
	err = chunks(f, pos, end, func(b []byte, _ int64) error {
		zeros = zeros && zero(b)
		_, _ = h.Write(b) // never fails
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), zeros, err
}

// chunks calls fn with bytes [pos, end) of a file, part by part, and where each part begins.
func chunks(f io.ReaderAt, pos, end int64, fn func(b []byte, at int64) error) error {
	buf := make([]byte, min(1<<20, max(end-pos, 0)))
	for pos < end {
		b := buf[:min(int64(len(buf)), end-pos)]
		n, err := f.ReadAt(b, pos)
		if n < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("read at %d: %w", pos+int64(n), err)
		}
		if err := fn(b, pos); err != nil {
			return err
		}
		pos += int64(n)
	}
	return nil
}

// copyInto appends bytes [pos, end) of f to w, which has at bytes already, and returns how many it has then.
func copyInto(w io.WriterAt, at int64, f io.ReaderAt, pos, end int64) (int64, error) {
	err := chunks(f, pos, end, func(b []byte, _ int64) error {
		_, err := w.WriteAt(b, at)
		at += int64(len(b))
		return err
	})
	return at, err
}

// create makes an empty file that replaces what an earlier run may have left under a temporary name.
func (d *disk) create(rel string) (vfs.File, error) {
	if err := d.remove(rel); err != nil {
		return nil, err
	}
	f, err := d.fs.OpenFile(d.path(rel), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	owner, err := d.ownerOf(path.Dir(rel))
	if err == nil {
		err = owner.Apply(d.fs, d.path(rel))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), d.remove(rel))
	}
	return f, nil
}
