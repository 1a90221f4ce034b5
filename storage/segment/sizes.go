package segment

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// maxSizesBytes bounds what is read as a size index: a segment of 2 GiB with an entry every KiB.
const maxSizesBytes = index.SizeHeaderSize + index.SizeEntrySize<<21

// sizeFile is a size index that was found good.
type sizeFile struct {
	path   string
	header index.SizeHeader
}

// sizeEdges collects, batch by batch, what ties a size index to its log.
type sizeEdges struct {
	header index.SizeHeader
	any    bool
	lost   bool // something could not be read: the sums are not those of the whole log
}

func (e *sizeEdges) add(h *record.Header, pos storage.Pos) {
	if !e.any {
		e.header.FirstPos, e.header.FirstCRC, e.header.MaxTimestamp, e.any = pos, h.CRC, storage.NoTimestamp, true
	}
	e.header.LastPos, e.header.LastCRC, e.header.NextOffset = pos, h.CRC, h.NextOffset()
	if !h.Attributes.Control() {
		e.header.MaxTimestamp = max(e.header.MaxTimestamp, h.MaxTimestamp)
	}
}

// sizesPath is where the segment's size index lives; empty where it has no place.
func (s *Segment) sizesPath() string {
	if s.own {
		return s.path(state.ExtSizeIndex)
	}
	if s.env.CacheDir == "" {
		return ""
	}
	return filepath.Join(s.env.CacheDir, filepath.Base(s.dir), state.FileName(s.Base, state.ExtSizeIndex))
}

// readSizes reads the size index and compares it with the log. It returns no header where there is none that fits.
func (v *View) readSizes() (h index.SizeHeader, whole []byte, err error) {
	path := v.sizesPath()
	if path == "" {
		return h, nil, nil
	}
	whole, err = vfs.ReadFile(v.env.FS, path, maxSizesBytes)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrTooBig) {
			err = nil
		}
		return h, nil, err
	}
	h, err = index.CheckSizes(whole, v.Base)
	if err != nil || h.LogSize != int64(v.Size) || !v.fits(&h) {
		return h, nil, nil //nolint:nilerr // A derived file that does not fit is built anew.
	}
	return h, whole, nil
}

// fits compares first and last batch with what the size index says of them.
func (v *View) fits(h *index.SizeHeader) bool {
	if v.Empty() {
		return true
	}
	f, err := v.open()
	if err != nil {
		return false
	}
	defer f.Unpin()
	if st, err := f.Stat(); err != nil || st.Modified != h.Modified {
		return false
	}
	first, ok := v.headerAt(f, h.FirstPos)
	if !ok || first.CRC != h.FirstCRC {
		return false
	}
	last, ok := v.headerAt(f, h.LastPos)
	return ok && last.CRC == h.LastCRC && last.NextOffset() == h.NextOffset
}

// loadSizes returns the table from the size index, or nil where there is none that fits.
func (v *View) loadSizes() (*Table, error) {
	h, whole, err := v.readSizes()
	if whole == nil || err != nil {
		return nil, err
	}
	return &Table{Total: h.Total, next: h.NextOffset, file: &sizeFile{path: v.sizesPath(), header: h}}, nil
}

// buildSizes sums up the whole segment and keeps the result in a file where one may be written.
func (v *View) buildSizes(ctx context.Context) (*Table, error) {
	b := index.SizeBuilder{Interval: max(v.interval, index.MinSizeInterval)}
	var edges sizeEdges
	lost := func(*storage.CorruptError) error {
		edges.lost = true
		return nil
	}
	err := v.walk(ctx, 0, v.Base, lost, func(w *batchWalk, batch []byte) error {
		b.Add(w.scan.Header.BaseOffset, w.scan.Pos, w.sums(batch))
		edges.add(&w.scan.Header, w.scan.Pos)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := &Table{Entries: b.Entries(), Total: b.Total(), next: max(edges.header.NextOffset, v.Base)}
	v.saveSizes(t, &edges)
	return t, nil
}

// saveSizes writes the size index where there is a place for it, and then has the table look things up there. A failure leaves the table in memory:
// the file is derived, nothing is lost with it.
func (v *View) saveSizes(t *Table, edges *sizeEdges) {
	path := v.sizesPath()
	if path == "" || !edges.any || edges.lost {
		return
	}
	st, err := v.env.FS.Stat(v.logPath())
	if err != nil {
		return
	}
	edges.header.Modified = st.Modified
	edges.header.Base, edges.header.LogSize, edges.header.Total = v.Base, int64(v.Size), t.Total
	b := index.EncodeSizes(edges.header, t.Entries)
	var owner *vfs.Owner // nil in the cache directory
	if v.own {
		o := vfs.OwnerOf(st)
		owner = &o
	} else if err := vfs.MkdirAll(v.env.FS, filepath.Dir(path), 0o700); err != nil {
		v.env.Log.Warn("size index not kept", "path", path, "err", err)
		return
	}
	err = vfs.WriteFile(v.env.FS, path, b, 0o600, owner)
	if errors.Is(err, fs.ErrNotExist) && !v.own {
		return // another mount of the directory has kept the same file at the same time, or the cache was tidied up
	}
	if err != nil {
		v.env.Log.Warn("size index not kept", "path", path, "err", err)
		return
	}
	v.env.Files.Forget(path)
	h, err := index.DecodeSizeHeader(b, v.Base)
	if err != nil {
		v.env.Log.Warn("size index not kept", "path", path, "err", err)
		return
	}
	*t = Table{Total: t.Total, next: h.NextOffset, file: &sizeFile{path: path, header: h}}
}

// SaveSizes writes the size index of a segment that is not appended to any more, from what is in memory.
func (v *View) SaveSizes(ctx context.Context) error {
	m := &storage.Measure{}
	known := v.table(m)
	if v.Empty() || v.Hidden != nil || known == nil || known.file != nil || known.lost {
		return nil
	}
	t := *known
	var edges sizeEdges
	if err := v.edges(ctx, &edges); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v.env.Log.Warn("size index not kept", "path", v.logPath(), "err", err)
		return ctx.Err()
	}
	v.saveSizes(&t, &edges)
	if v.Live != nil {
		v.mu.Lock()
		v.sums.linear = &t
		v.mu.Unlock()
	}
	return ctx.Err()
}

// edges finds first and last batch and the largest timestamp.
func (v *View) edges(ctx context.Context, e *sizeEdges) error {
	first := func(h *record.Header, pos storage.Pos) error {
		e.add(h, pos)
		return errStop
	}
	if err := ignoreStop(v.eachHeader(ctx, 0, v.Base, first)); err != nil {
		return err
	}
	pos, err := v.batchPosRough(ctx, v.Next-1)
	if err != nil {
		return err
	}
	err = v.eachHeader(ctx, pos, v.Base, func(h *record.Header, pos storage.Pos) error {
		e.add(h, pos)
		return nil
	})
	if v.Live != nil {
		e.header.MaxTimestamp = max(e.header.MaxTimestamp, v.Live.MaxTimestamp)
	} else {
		e.header.MaxTimestamp = storage.NoTimestamp // not known without a scan
	}
	return err
}
