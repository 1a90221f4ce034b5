package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// recover verifies the segments from the recovery point on and rebuilds their indexes. The log ends at the first bad batch there; what lies behind it is
// moved aside. Bad batches below the recovery point are damage: they are reported and left where they are.
func (l *Log) recover(ctx context.Context, list []found) ([]found, segment.Appender, error) {
	first := l.firstRecovered(list)
	var app segment.Appender
	for i := first; i < len(list); i++ {
		f := &list[i]
		r, err := f.seg.Scan(ctx, f.size, l.o.RecoveryPoint)
		if err != nil {
			return nil, app, err
		}
		switch {
		case r.Bad != nil:
			if err := l.cut(list[i+1:], f, r); err != nil {
				return nil, app, err
			}
			list = list[:i+1]
		case l.missingBehind(list, i, r.Next):
			if err := l.setAsideAll(list[i+1:], fmt.Sprintf("segment %d is missing", r.Next)); err != nil {
				return nil, app, err
			}
			list = list[:i+1]
		}
		l.raiseEpochs(r.Epochs)
		app = r.Appender
		if i < len(list)-1 {
			closing, err := app.Closing()
			if err != nil {
				return nil, app, err
			}
			r.Times = append(r.Times, closing...)
		}
		if err := f.seg.WriteIndexes(r.Offsets, r.Times); err != nil {
			return nil, app, err
		}
		if err := f.seg.SyncAll(); err != nil {
			return nil, app, err
		}
		if i == len(list)-1 && r.Size < f.size {
			// Damage below the recovery point up to the end of the file. It stays; the log goes on in a new segment.
			return l.goOnBehind(list, r)
		}
	}
	return list, app, l.env.FS.SyncDir(l.o.Dir)
}

// firstRecovered returns the number of the first segment that is looked through after an unclean stop. One that ends at the recovery point is, too: its log is
// on stable storage, the closing of its indexes may not be.
func (l *Log) firstRecovered(list []found) int {
	return max(0, sort.Search(len(list), func(i int) bool { return list[i].seg.Base >= l.o.RecoveryPoint })-1)
}

// missingBehind reports whether a segment that followed list[i], which ends at next, has vanished: its name was not on stable storage, so nothing that
// was written later is known to be either. More offsets than a segment can have were left out when the log was written: see gapBehind.
func (l *Log) missingBehind(list []found, i int, next storage.Offset) bool {
	if i == len(list)-1 {
		return false
	}
	base := list[i+1].seg.Base
	return base != next && base > max(l.o.RecoveryPoint, l.o.LogStart) && base-next <= index.MaxRelative
}

// setAsideAll renames segments that lie behind the end of the log, the last first.
func (l *Log) setAsideAll(later []found, why string) error {
	for i := len(later) - 1; i >= 0; i-- {
		if err := l.setAside(later[i].seg); err != nil {
			return err
		}
	}
	if len(later) == 0 {
		return nil
	}
	l.note(fmt.Sprintf("%s: %d later segments set aside as *%s", why, len(later), state.SuffixTorn))
	return l.env.FS.SyncDir(l.o.Dir)
}

// goOnBehind adds a new last segment behind one whose end is damaged.
func (l *Log) goOnBehind(list []found, r *segment.Scanned) ([]found, segment.Appender, error) {
	base := max(l.o.RecoveryPoint, r.Next)
	seg := l.newSegment(base)
	if err := seg.Create(l.owner); err != nil {
		return nil, segment.Appender{}, err
	}
	now := l.env.Now().UnixMilli()
	l.note(fmt.Sprintf("the end of %s is damaged below the recovery point: the log goes on at offset %d in a new segment", list[len(list)-1].seg.Path(), base))
	return append(list, found{seg: seg, modified: now}), seg.NewAppender(now), l.env.FS.SyncDir(l.o.Dir)
}

func (l *Log) note(s string) {
	if r := l.recovered.Load(); r != nil {
		l.recovered.Store(ptr(*r + "; " + s))
	} else {
		l.recovered.Store(&s)
	}
	l.report(l.o.Dir, s)
}

// cut ends the log at r.Size in f. First the later segments get other names, then what lies behind the cut is copied beside the log, then it is cut: a
// crash in between leaves a log that is recovered in the same way again.
func (l *Log) cut(later []found, f *found, r *segment.Scanned) error {
	if err := l.setAsideAll(later, f.seg.Path()+" ends early"); err != nil {
		return err
	}
	torn, err := l.copyTorn(f, r.Size)
	if err != nil {
		return err
	}
	if err := l.env.FS.SyncDir(l.o.Dir); err != nil {
		return err
	}
	h, err := l.env.Files.Open(f.seg.Path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer h.Unpin()
	if err := h.Truncate(int64(r.Size)); err != nil {
		return err
	}
	if err := h.Sync(); err != nil {
		return err
	}
	what := "zeros"
	if torn != "" {
		what = "kept as " + torn
	}
	l.note(fmt.Sprintf("%s was cut at position %d, offset %d (%v); %d bytes behind it %s",
		f.seg.Path(), r.Size, r.Next, r.Bad.Err, int64(f.size-r.Size), what))
	f.size = r.Size
	return nil
}

// setAside renames a segment's log and removes what is derived from it.
func (l *Log) setAside(s *segment.Segment) error {
	name, err := l.tornName(s.Path())
	if err != nil {
		return err
	}
	l.env.Files.Forget(s.Path())
	if err := l.env.FS.Rename(s.Path(), name); err != nil {
		return err
	}
	return s.Remove()
}

// tornName returns a name that is not taken for what is moved aside.
func (l *Log) tornName(path string) (string, error) {
	return state.TornName(path, func(name string) (bool, error) { return vfs.Exists(l.env.FS, name) })
}

// copyTorn keeps the bytes from pos on in a file of their own, unless all of them are zero.
func (l *Log) copyTorn(f *found, pos storage.Pos) (string, error) {
	h, err := l.env.Files.Open(f.seg.Path(), os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer h.Unpin()
	end := int64(f.size)
	for end > int64(pos) { // a preallocated file ends in zeros
		n, err := trailingZeros(h, int64(pos), end)
		if err != nil {
			return "", err
		}
		if n == 0 {
			break
		}
		end -= n
	}
	if end == int64(pos) {
		return "", nil
	}
	name, err := l.tornName(f.seg.Path())
	if err != nil {
		return "", err
	}
	w, err := l.env.FS.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = copyRange(w, h, int64(pos), end)
	if err == nil {
		err = w.Sync()
	}
	err = errors.Join(err, w.Close())
	if err == nil {
		err = l.owner.Apply(l.env.FS, name)
	}
	if err != nil {
		_ = l.env.FS.Remove(name)
		return "", fmt.Errorf("keep the torn end: %w", err)
	}
	return name, nil
}

func trailingZeros(r io.ReaderAt, from, end int64) (int64, error) {
	b := make([]byte, min(64<<10, end-from))
	if _, err := r.ReadAt(b, end-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return int64(len(b) - n), nil
}

func copyRange(w io.WriterAt, r io.ReaderAt, from, end int64) error {
	b := make([]byte, 256<<10)
	for at := from; at < end; {
		n, err := r.ReadAt(b[:min(int64(len(b)), end-at)], at)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := w.WriteAt(b[:n], at-from); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// mergeEpochs makes leader-epoch-checkpoint agree with the log: rebuilt where it is missing, without entries behind the end.
func (l *Log) mergeEpochs(ctx context.Context, list []found, onDisk state.Epochs) error {
	if len(onDisk) == 0 { // what recovery saw does not reach back to the start
		l.epochs = nil
		if err := l.rebuildEpochs(ctx, list); err != nil {
			return err
		}
	}
	l.epochs, _ = l.epochs.TruncateFrom(l.active.Next)
	if slices.Equal(l.epochs, onDisk) {
		return nil
	}
	return l.writeEpochs()
}

// rebuildEpochs works the epochs out from the batches of all segments.
func (l *Log) rebuildEpochs(ctx context.Context, list []found) error {
	for _, v := range views(list, &l.active) {
		more, err := v.Epochs(ctx)
		if err != nil {
			return err
		}
		l.raiseEpochs(more)
	}
	return nil
}

// raiseEpochs takes epochs that are above the last.
func (l *Log) raiseEpochs(more state.Epochs) (changed bool) {
	for _, e := range more {
		var raised bool
		l.epochs, raised = l.epochs.Raise(e.Epoch, e.Start)
		changed = changed || raised
	}
	return changed
}

func ptr[T any](v T) *T { return &v }

func (l *Log) writeEpochs() error {
	if err := vfs.WriteFile(l.env.FS, l.path(state.EpochsFile), l.epochs.Format(), 0o644, &l.owner); err != nil {
		return fmt.Errorf("write leader epochs: %w", err)
	}
	return nil
}
