package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// wholeLimit is the largest of the files that are read as a whole.
const wholeLimit = 64 << 20

// DumpOptions says what to show. The zero value with To, TimeTo and PosTo at their maxima shows all files, and logs batch by batch; see NewDumpOptions.
type DumpOptions struct {
	JSON    bool // one JSON object a line
	Records bool // the records of batches too
	Type    string
	Decode  string // which decoder keys and values go through, one of Decoders; "" is by the name of the topic

	// What to show: offsets, timestamps and positions in a log with From <= o < To. Of batches, those that reach into the range.
	From, To         storage.Offset
	TimeFrom, TimeTo int64
	PosFrom, PosTo   storage.Pos
}

// NewDumpOptions returns options that leave nothing out but records.
func NewDumpOptions() DumpOptions {
	return DumpOptions{To: math.MaxInt64, TimeFrom: math.MinInt64, TimeTo: math.MaxInt64, PosTo: math.MaxInt64}
}

// timed reports whether what is of this time is to be shown. Nothing is later than the last of all times, which records may have.
func (o *DumpOptions) timed(ts int64) bool {
	return ts >= o.TimeFrom && (ts < o.TimeTo || o.TimeTo == math.MaxInt64)
}

// DumpResult is what came out of a dump besides its lines.
type DumpResult struct {
	Files  int // shown
	Damage int // lines that tell of damage
}

// Dump writes what is in files, and in the files of directories and of the directories in them, to w. Damage is told where it is and does not stop it, and
// neither does a file that cannot be read: the error names those when all others have been shown.
func Dump(ctx context.Context, fsys vfs.FS, w io.Writer, paths []string, o DumpOptions) (DumpResult, error) {
	d := dumper{ctx: ctx, fs: fsys, o: o, p: newPrinter(w, o.JSON)}
	var failed error
	for _, path := range paths {
		failed = errors.Join(failed, d.path(path))
		if ctx.Err() != nil {
			failed = context.Cause(ctx)
			break
		}
	}
	if err := d.p.flush(); err != nil {
		failed = err // nothing else matters
	}
	return d.res, failed
}

// dumper is the state of a Dump.
type dumper struct {
	ctx context.Context //nolint:containedctx // It lives as long as Dump, which takes the context.
	fs  vfs.FS
	o   DumpOptions
	p   *printer
	res DumpResult
	cur file // being shown
}

func (d *dumper) path(path string) error {
	i, err := d.fs.Stat(path)
	if err != nil {
		return err
	}
	if i.IsDir() {
		return d.dir(path, 0)
	}
	if !i.Mode.IsRegular() {
		return fmt.Errorf("%s: neither a file nor a directory", path)
	}
	f := identify(path)
	if d.o.Type != "" {
		f.kind = fileKind(d.o.Type)
	}
	if f.kind == fileUnknown {
		return fmt.Errorf("%s: its name does not tell what is in it; --type does, for a *.quarantine: --type log", path)
	}
	return d.file(f)
}

// dir shows the files of a directory whose names tell what is in them, and then those of the directories in it.
func (d *dumper) dir(path string, depth int) error {
	entries, err := d.fs.ReadDir(path)
	if err != nil {
		return err
	}
	var failed error
	var dirs []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name)
		i, err := d.fs.Stat(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // a broker may be at work
				failed = errors.Join(failed, err)
			}
			continue
		}
		if i.IsDir() {
			dirs = append(dirs, name)
			continue
		}
		f := identify(name)
		if !i.Mode.IsRegular() || f.kind == fileUnknown {
			continue
		}
		if err := d.file(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
		if d.p.err != nil || d.ctx.Err() != nil {
			return failed
		}
	}
	if depth > 0 {
		return failed // there are no directories in the directory of a partition
	}
	slices.Sort(dirs)
	for _, name := range dirs {
		if d.p.err != nil || d.ctx.Err() != nil {
			break
		}
		failed = errors.Join(failed, d.dir(name, depth+1))
	}
	return failed
}

// file shows one file.
func (d *dumper) file(f file) error {
	h, err := d.fs.OpenFile(f.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // only read
	i, err := h.Stat()
	if err != nil {
		return err
	}
	f.size = i.Size
	d.cur = f
	d.res.Files++
	d.heading()
	r := contextReader{d.ctx, h}
	switch f.kind {
	case fileLog:
		err = d.log(r)
	case fileIndex:
		err = d.offsetIndex(r)
	case fileTimeIndex:
		err = d.timeIndex(r)
	case fileTxnIndex:
		err = d.txnIndex(r)
	case fileSizeIndex, fileProducers, fileOffsets, fileEpochs, fileMetadata, fileProperties, fileMarker, fileCatalog, fileJSON, fileUnknown:
		err = d.small(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

func (d *dumper) heading() {
	d.p.begin(kindFile, "")
	d.p.word("file", d.cur.path)
	d.p.word("type", string(d.cur.kind))
	if d.cur.base >= 0 {
		if d.cur.kind == fileProducers {
			d.p.num("endOffset", int64(d.cur.base))
		} else {
			d.p.num("baseOffset", int64(d.cur.base))
		}
	}
	d.p.num("size", d.cur.size)
	d.p.end()
}

// damage tells what is wrong at a place of the present file; below 0 there is no such place.
func (d *dumper) damage(pos storage.Pos, reason string) {
	d.res.Damage++
	d.remark(kindDamage, pos, reason)
}

// note tells what is worth knowing and no damage.
func (d *dumper) note(pos storage.Pos, reason string) { d.remark(kindNote, pos, reason) }

func (d *dumper) remark(k kind, pos storage.Pos, reason string) {
	d.p.begin(k, string(k)+": ")
	d.p.only("file", d.cur.path)
	if pos >= 0 {
		d.p.num("position", int64(pos))
	}
	d.p.text("reason", reason)
	d.p.end()
}

// corrupt tells of an error as damage if it is about wrong bytes, and returns it else. The place stands in a corruption error itself.
func (d *dumper) corrupt(pos storage.Pos, err error) error {
	if err == nil || !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrUnsupported) {
		return err
	}
	var ce *storage.CorruptError
	if errors.As(err, &ce) && ce.Path == "" {
		d.damage(ce.Pos, reasonOf(ce))
		return nil
	}
	d.damage(pos, errorText(err))
	return nil
}

func reasonOf(ce *storage.CorruptError) string {
	if ce.Err != nil {
		return ce.Reason + ": " + errorText(ce.Err)
	}
	return ce.Reason
}

// errorText is an error in one line, without saying of what is damaged that it is corrupt.
func errorText(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.ReplaceAll(s, storage.ErrCorrupt.Error()+": ", "")
}

// readSmall reads a whole file of at most wholeLimit bytes.
func readSmall(r io.ReaderAt, size int64) ([]byte, error) {
	if size > wholeLimit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", storage.ErrUnsupported, size, int64(wholeLimit))
	}
	b := make([]byte, size)
	n, err := r.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// lastSegment reports whether no segment with a higher base offset lies beside the file.
func (d *dumper) lastSegment() bool {
	entries, err := d.fs.ReadDir(filepath.Dir(d.cur.path))
	if err != nil {
		return false
	}
	for _, e := range entries {
		if base, ok := state.ParseLogName(e.Name); ok && base > d.cur.base {
			return false
		}
	}
	return true
}
