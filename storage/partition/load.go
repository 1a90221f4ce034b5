package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// found is a segment as the directory lists it.
type found struct {
	seg      *segment.Segment
	size     storage.Pos
	modified int64 // milliseconds
	info     vfs.FileInfo
	bad      bool // it cannot be read at all
	anew     bool // it is not what it was, although it is the same file
}

// load lists the directory and publishes the first snapshot.
func (l *Log) load(ctx context.Context) error {
	if !l.o.Writable {
		return l.look(ctx)
	}
	if l.o.Foreign {
		return l.loadForeign(ctx)
	}
	entries, err := l.env.FS.ReadDir(l.o.Dir)
	if err != nil {
		return err
	}
	list, err := l.listed(ctx, entries)
	if err != nil {
		return err
	}
	l.removeOrphans(list, entries)
	return l.loadWritable(ctx, list)
}

// listed returns the segments of a listing in ascending order. Where a compaction was cut short it returns those that the log's owner would load.
func (l *Log) listed(ctx context.Context, entries []vfs.DirEntry) ([]found, error) {
	swaps, err := l.swaps(ctx, entries)
	if err != nil {
		return nil, err
	}
	out := swaps.in
	for _, e := range entries {
		base, ok := state.ParseLogName(e.Name)
		if !ok || state.Replaced(base, swaps.by) {
			continue
		}
		f, err := l.find(l.newSegment(base))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].seg.Base < out[j].seg.Base })
	return out, nil
}

// find looks at the log of a segment.
func (l *Log) find(seg *segment.Segment) (found, error) {
	st, err := l.env.FS.Stat(seg.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return found{}, err
	}
	f := found{seg: seg, size: storage.Pos(st.Size), modified: st.Millis(), info: st}
	if l.Followed() && err == nil {
		seg.Only(st.Ino)
	}
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case !st.Mode.IsRegular():
		why = seg.Path() + ": not a regular file"
	case st.Size > maxSegment:
		why = fmt.Sprintf("%s: %d bytes, more than a segment can have: what lies behind 2 GiB is not looked at", seg.Path(), st.Size)
		f.size = maxSegment
	}
	switch {
	case why == "":
	case l.o.Writable:
		return found{}, &storage.CorruptError{Path: seg.Path(), Offset: seg.Base, Reason: why, Err: err}
	case st.Mode.IsRegular():
		l.tell(why)
	default:
		l.tell(why)
		f.size, f.bad = 1, true // whoever comes to it gets an error, the segments beside it can be read
	}
	return f, nil
}

// maxSegment is the largest size of a segment's log.
const maxSegment = 1<<31 - 1

// tell reports something once.
func (l *Log) tell(why string) {
	if l.told == nil {
		l.told = map[string]bool{}
	}
	if !l.told[why] && len(l.told) < 1000 {
		l.told[why] = true
		l.report(l.o.Dir, why)
	}
}

// swapped is what a compaction that was cut short leaves to be put in: complete segments, and what is known of them.
type swapped struct {
	in []found
	by []state.Replacement
}

// swaps finds them.
func (l *Log) swaps(ctx context.Context, entries []vfs.DirEntry) (s swapped, err error) {
	var bases, cleaned []storage.Offset
	for _, e := range entries {
		switch base, ext, suffix, ok := state.ParseFileName(e.Name); {
		case !ok:
		case suffix == state.SuffixCleaned:
			cleaned = append(cleaned, base)
		case suffix == state.SuffixSwap && ext == state.ExtLog:
			bases = append(bases, base)
		}
	}
	for _, base := range state.CompleteSwaps(bases, cleaned) {
		f, err := l.find(segment.New(l.seg, l.o.Dir, base, l.settings(state.SuffixSwap)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, err
		}
		if f.bad {
			continue
		}
		v, err := f.seg.Tail(ctx, f.size)
		if err != nil {
			return s, err
		}
		s.in = append(s.in, f)
		s.by = append(s.by, state.Replacement{Base: base, Next: v.Next})
	}
	return s, nil
}

// removeOrphans removes size indexes without a log.
func (l *Log) removeOrphans(list []found, entries []vfs.DirEntry) {
	have := map[storage.Offset]bool{}
	for _, f := range list {
		have[f.seg.Base] = true
	}
	for _, e := range entries {
		if base, ext, suffix, ok := state.ParseFileName(e.Name); ok && ext == state.ExtSizeIndex && suffix == "" && !have[base] {
			_ = l.env.FS.Remove(l.path(e.Name))
		}
	}
}

// showAll shows what is there, of a log that is not ours, up to the last whole batch.
func (l *Log) showAll(ctx context.Context, dir vfs.FileInfo, list []found) error {
	o := l.observer
	s := &snapshot{log: l}
	if old := o.whole; old != nil {
		s.generation = old.generation + 1
		o.cuts = append(o.cuts, cut{s.generation, 0})
	}
	if len(list) == 0 {
		start := l.logStart()
		s.start, s.end, s.active = start, start, segment.View{Segment: l.newSegment(start), Next: start}
		s.modified = dir.Millis()
		if err := l.publishTail(ctx, s, vfs.FileInfo{}); err != nil {
			return err
		}
		o.remember(nil)
		return nil
	}
	last := list[len(list)-1]
	v, err := l.tail(ctx, &last)
	if err != nil {
		return err
	}
	s.closed, s.active, s.modified = closedViews(list), v, last.modified
	s.end = max(v.Next, l.logStart())
	s.start = max(l.logStart(), list[0].seg.Base)
	if err := l.publishTail(ctx, s, last.info); err != nil {
		return err
	}
	o.remember(list)
	return nil
}

// tail finds the end of the last segment. Where the log was closed in order its end is known: what cannot be read before that is damage, and shown as such.
func (l *Log) tail(ctx context.Context, f *found) (segment.View, error) {
	if f.bad {
		return segment.View{Segment: f.seg, Next: f.seg.Base, Tail: true}, nil
	}
	v, err := f.seg.Tail(ctx, f.size)
	if err != nil {
		return v, err
	}
	known := l.o.RecoveryPoint
	switch {
	case v.Next >= known && v.Size == f.size:
	case v.Next < known:
		l.tell(fmt.Sprintf("%s: the log ends at offset %d, but was on stable storage up to %d", f.seg.Path(), v.Next, known))
		if l.o.Clean && known-f.seg.Base < maxSegment {
			v.Size, v.Next = f.size, known
		}
	case !l.o.Clean:
		l.recovered.Store(ptr(fmt.Sprintf("%s holds no whole batch from position %d on: shown up to there", f.seg.Path(), v.Size)))
	}
	return v, nil
}

// closedViews returns the views of all segments but the last: each ends where the next one starts.
func closedViews(list []found) []*segment.View {
	var out []*segment.View
	for i, f := range list[:len(list)-1] {
		out = append(out, &segment.View{Segment: f.seg, Size: f.size, Next: list[i+1].seg.Base})
	}
	return out
}

// loadWritable makes the log ready to be appended to. What was not closed in order is recovered first.
func (l *Log) loadWritable(ctx context.Context, list []found) error {
	if err := l.loadEpochs(); err != nil {
		return err
	}
	onDisk := l.epochs
	if len(list) == 0 {
		seg := l.newSegment(l.o.LogStart)
		if err := seg.Create(l.owner); err != nil {
			return err
		}
		if err := l.env.FS.SyncDir(l.o.Dir); err != nil {
			return err
		}
		list = []found{{seg: seg, modified: l.env.Now().UnixMilli()}}
	}
	var app segment.Appender
	ok := false
	if l.o.Clean {
		last := list[len(list)-1]
		var times int
		var err error
		app, times, ok, err = last.seg.Resume(ctx, last.size)
		if err != nil {
			return err
		}
		if ok {
			offsets, _ := app.Counts()
			if err := last.seg.Cut(last.size, offsets, times); err != nil {
				return err
			}
		}
	}
	if !ok {
		var err error
		if list, app, err = l.recover(ctx, list); err != nil {
			return err
		}
	}
	last := list[len(list)-1]
	app.Created(last.modified)
	l.active = app
	list, err := l.removeBelowStart(list)
	if err != nil {
		return err
	}
	if err := l.mergeEpochs(ctx, list, onDisk); err != nil {
		return err
	}
	if err := l.loadProducers(ctx, list, !ok); err != nil {
		return err
	}
	s := &snapshot{log: l, closed: closedViews(list), active: app.View(), start: max(l.o.LogStart, list[0].seg.Base), end: app.Next, modified: last.modified}
	if lost := max(s.start, l.o.RecoveryPoint); lost > s.end { // the checkpoints are ahead of a log that lost its end
		l.note(fmt.Sprintf("the log ended at offset %d, but was on stable storage up to %d: what was between is gone, the log goes on behind it", s.end, lost))
		return l.skipTo(ctx, s, lost)
	}
	l.syncer.set(s.end)
	return l.publishWritten(ctx, s)
}

// removeBelowStart removes segments that a moved start had left behind. The log was on stable storage up to its start when that was checkpointed: a start
// above everything that the log is known to have held is a checkpoint that was damaged, by which nothing is removed.
func (l *Log) removeBelowStart(list []found) ([]found, error) {
	if end := max(l.active.Next, l.o.RecoveryPoint); l.o.LogStart > end {
		l.note(fmt.Sprintf("the checkpointed log start %d is above the log's end, %d, and is not believed", l.o.LogStart, end))
		l.o.LogStart, l.disbelieved = list[0].seg.Base, true
	}
	for len(list) > 1 && list[1].seg.Base <= l.o.LogStart {
		if err := list[0].seg.Remove(); err != nil {
			return nil, err
		}
		list = list[1:]
	}
	return list, nil
}

// skipTo gives a log that lost its end a new active segment at next, so that no offset is given twice.
func (l *Log) skipTo(ctx context.Context, s *snapshot, next storage.Offset) error {
	if err := l.closeSegment(&l.active); err != nil {
		return err
	}
	seg := l.newSegment(next)
	if err := seg.Create(l.owner); err != nil {
		return err
	}
	if err := l.env.FS.SyncDir(l.o.Dir); err != nil {
		return err
	}
	old := s.active
	old.Next, old.Live = next, nil
	l.active = seg.NewAppender(l.env.Now().UnixMilli())
	s.closed = append(s.closed, &old)
	s.active, s.end = l.active.View(), next
	l.syncer.set(s.end)
	return l.publishWritten(ctx, s)
}

// loadEpochs reads leader-epoch-checkpoint. One that cannot be read is rebuilt from the batches, as if it were missing.
func (l *Log) loadEpochs() error {
	b, err := vfs.ReadFile(l.env.FS, l.path(state.EpochsFile), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil && !errors.Is(err, vfs.ErrTooBig) {
		return err
	}
	if err == nil {
		l.epochs, err = state.ParseEpochs(b)
	}
	if err != nil {
		l.report(l.path(state.EpochsFile), err.Error()+": rebuilt from the batches")
		l.epochs = nil
	}
	return nil
}
