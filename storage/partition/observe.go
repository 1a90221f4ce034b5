package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const (
	// swapWait is how long a directory may look as if a compaction were being swapped in before that is taken for what a crash left.
	swapWait = time.Second
	swapStep = 5 * time.Millisecond
	// reindexBytes is how much a log grows before its index is looked at again.
	reindexBytes = 1 << 20
	// trailKept is how many places of a growing log are remembered to tell how much of it was cut.
	trailKept = 1024
)

// observer follows a log that somebody else writes. It distrusts it: each look checks that what was seen before is still there.
type observer struct {
	gate chan struct{} // held during a look; guards what follows

	dir     vfs.FileInfo // as it was when it was last listed
	dirAt   time.Time
	file    vfs.FileInfo                    // the active segment's log, as it was last seen
	files   map[storage.Offset]vfs.FileInfo // the segments' logs, as they were when the directory was last listed
	trail   []segment.Footprint             // batches at the end of what was seen, ascending
	whole   *snapshot                       // what is in the files, before isolation
	cuts    []cut
	indexed storage.Pos // size of the active log when its index was last looked at
	swapped string      // a listing that stayed unstable for as long as one may
}

// cut is a truncation: what lay at or above offset before that generation is gone or another.
type cut struct {
	generation uint64
	offset     storage.Offset
}

func newObserver() *observer { return &observer{gate: make(chan struct{}, 1)} }

// Look brings the snapshot up to what is in the directory now. It does nothing for a log that is not followed.
func (l *Log) Look(ctx context.Context) error {
	o := l.observer
	if o == nil {
		return nil
	}
	if err := pass(ctx, o.gate); err != nil {
		return err
	}
	defer func() { <-o.gate }()
	before := l.snap.Load()
	if err := l.look(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", l.o.Dir, storage.ErrPartitionNotFound)
		}
		return err
	}
	if l.snap.Load() != before {
		l.watch.wake()
	}
	return nil
}

// pass takes a gate. Where it need not wait it does not mind that the context has ended.
func pass(ctx context.Context, gate chan struct{}) error {
	select {
	case gate <- struct{}{}:
		return nil
	default:
	}
	select {
	case gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Log) look(ctx context.Context) error {
	o := l.observer
	now := l.env.Now()
	dir, err := l.env.FS.Stat(l.o.Dir)
	if err != nil {
		return err
	}
	if o.whole != nil && o.dir.Still(dir, o.dirAt) {
		file, err := l.env.FS.Stat(o.whole.active.Path())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case file == o.file:
			return l.moveStart(ctx)
		case file.Ino == o.file.Ino:
			if err := l.moveStart(ctx); err != nil {
				return err
			}
			return l.grow(ctx, file)
		}
	}
	for tries := 0; ; tries++ {
		err := l.takeListing(ctx, dir, now)
		if !errors.Is(err, storage.ErrOffsetGone) || tries == listTries {
			return err
		}
	}
}

// listTries is how often a directory is listed again because a segment was deleted or replaced between the listing and the look into it.
const listTries = 4

// takeListing lists the directory and publishes what has become of it.
func (l *Log) takeListing(ctx context.Context, dir vfs.FileInfo, now time.Time) error {
	o := l.observer
	list, err := l.listStable(ctx, dir.Settled(now))
	if err != nil {
		return err
	}
	before, cuts := o.whole, o.cuts
	if err := l.relist(ctx, dir, list); err != nil {
		if o.dirAt = (time.Time{}); o.whole == before { // the next look is to list again, whatever the times say, and finds the same cuts
			o.cuts = cuts
		}
		return err
	}
	o.dir, o.dirAt = dir, now
	return nil
}

// moveStart takes a log start that was checkpointed since.
func (l *Log) moveStart(ctx context.Context) error {
	s := l.observer.whole
	n := *s
	if n.startAt(l.logStart(), s.at(0).Base); n.start <= s.start {
		return nil
	}
	return l.publish(ctx, &n)
}

func (l *Log) logStart() storage.Offset {
	if l.o.LogStartNow != nil {
		return l.o.LogStartNow()
	}
	return l.o.LogStart
}

// listStable lists the directory. One that looks as if a compaction were being swapped in is looked at again until it does not; if it stays like that,
// somebody was killed there, and the view is that of the log as its owner would load it. So is one that has not changed for a while: nobody is at work
// there.
//
// Nor is a listing taken of which the names changed while their files were looked at: with a segment missing between two that are there, everything behind would
// be shown in the wrong place.
func (l *Log) listStable(ctx context.Context, quiet bool) ([]found, error) {
	waited, changed := time.Duration(0), 0
	for {
		entries, err := l.env.FS.ReadDir(l.o.Dir)
		if err != nil {
			return nil, err
		}
		key := ""
		if unstable(entries) {
			key = entriesKey(entries)
		}
		if quiet || key == l.observer.swapped || key == "" || waited >= swapWait || l.env.Sleep == nil {
			list, err := l.listed(ctx, entries)
			if err != nil {
				return nil, err
			}
			again, err := l.env.FS.ReadDir(l.o.Dir)
			if err != nil {
				return nil, err
			}
			if logNames(again) == logNames(entries) {
				l.observer.swapped = key
				return list, nil
			}
			if changed++; changed > changedTries {
				return nil, fmt.Errorf("%s: %w: the files change too fast to be listed", l.o.Dir, storage.ErrOffsetGone)
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		waited += swapStep
		if err := l.env.Sleep(ctx, swapStep); err != nil {
			return nil, err
		}
	}
}

// changedTries is how often a directory is listed again because it changed meanwhile.
const changedTries = 100

// logNames returns the names that say which segments there are.
func logNames(entries []vfs.DirEntry) string {
	var b strings.Builder
	for _, e := range entries {
		if _, ext, suffix, ok := state.ParseFileName(e.Name); ok && ext == state.ExtLog && suffix != state.SuffixDeleted {
			b.WriteString(e.Name)
			b.WriteByte('/')
		}
	}
	return b.String()
}

func entriesKey(entries []vfs.DirEntry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name)
		b.WriteByte('/')
	}
	return b.String()
}

// unstable reports whether a listing holds files on their way in, or a log without its index.
func unstable(entries []vfs.DirEntry) bool {
	logs, indexes := map[storage.Offset]bool{}, map[storage.Offset]bool{}
	for _, e := range entries {
		base, ext, suffix, ok := state.ParseFileName(e.Name)
		switch {
		case !ok:
		case suffix == state.SuffixSwap || suffix == state.SuffixCleaned:
			return true
		case suffix == "" && ext == state.ExtLog:
			logs[base] = true
		case suffix == "" && ext == state.ExtIndex:
			indexes[base] = true
		}
	}
	for base := range logs {
		if !indexes[base] {
			return true
		}
	}
	return false
}

// relist compares the listing with what was seen and publishes what has become of it. Segments whose file is the same stay the same.
func (l *Log) relist(ctx context.Context, dir vfs.FileInfo, list []found) error {
	o, old := l.observer, l.observer.whole
	if old == nil || len(list) == 0 {
		return l.showAll(ctx, dir, list)
	}
	n := *old
	if err := l.cutMeanwhile(list, &n); err != nil {
		return err
	}
	l.cutBelow(list, &n)
	rewritten := false
	for i := range list {
		j := old.find(list[i].seg.Base)
		was := old.at(j)
		if was.Base != list[i].seg.Base || was.Path() != list[i].seg.Path() {
			continue
		}
		if list[i].anew {
			continue
		}
		if o.files[was.Base].Ino == list[i].info.Ino {
			list[i].seg = was.Segment
		} else {
			rewritten = true
			was.ForgetFiles()
		}
	}
	l.forgetGone(list, old)
	if list[0].seg.Base > old.at(0).Base || rewritten || list[len(list)-1].seg.Base < old.active.Base {
		n.generation++
	}
	last := &list[len(list)-1]
	if last.seg == old.active.Segment { // grown at most
		n.closed = l.closedAgain(list, old)
		n.startAt(l.logStart(), list[0].seg.Base)
		if err := l.publish(ctx, &n); err != nil {
			return err
		}
		o.remember(list)
		return l.grow(ctx, last.info)
	}
	v, err := l.tail(ctx, last)
	if err != nil {
		return err
	}
	n.closed, n.active, n.end = l.closedAgain(list, old), v, v.Next
	if n.end < old.end {
		at := n.end
		for i := range list { // a segment that has another file may have been cut before it got that
			if old.at(old.find(list[i].seg.Base)).Segment != list[i].seg {
				at = min(at, list[i].seg.Base)
				break
			}
		}
		l.cutOff(&n, at)
	}
	n.startAt(l.logStart(), list[0].seg.Base)
	n.modified = last.modified
	if err := l.publishTail(ctx, &n, last.info); err != nil {
		return err
	}
	o.remember(list)
	return nil
}

// startAt gives the log a start: what a checkpoint says, within the log. One that has moved makes another generation, like segments that are gone.
func (s *snapshot) startAt(checkpointed, first storage.Offset) {
	start := min(max(checkpointed, first), s.end)
	if start > s.start {
		s.generation++
	}
	s.start = start
}

// publishTail publishes a state whose active segment, with that file, is not the one that was seen before.
func (l *Log) publishTail(ctx context.Context, s *snapshot, file vfs.FileInfo) error {
	trail, err := s.active.Trail(ctx, trailKept/4)
	if err != nil {
		return err
	}
	if err := l.publish(ctx, s); err != nil {
		return err
	}
	o := l.observer
	o.file, o.trail, o.indexed = file, trail, s.active.Size
	return nil
}

// forgetGone lets go of the files of segments that are no longer there.
func (l *Log) forgetGone(list []found, old *snapshot) {
	there := make(map[storage.Offset]bool, len(list))
	for _, f := range list {
		there[f.seg.Base] = true
	}
	for i := range old.len() {
		if v := old.at(i); !there[v.Base] {
			v.ForgetFiles()
		}
	}
}

// closedAgain returns the views of all segments but the last, the old ones where nothing has changed.
func (l *Log) closedAgain(list []found, old *snapshot) []*segment.View {
	views := closedViews(list)
	for i, v := range views {
		was := old.at(old.find(v.Base))
		if was.Segment != v.Segment {
			continue
		}
		if !was.Tail && was.Size == v.Size && was.Next == v.Next {
			views[i] = was
			continue
		}
		v.ForgetIndexes() // it has been closed since
	}
	return views
}

func (o *observer) remember(list []found) {
	o.files = make(map[storage.Offset]vfs.FileInfo, len(list))
	for _, f := range list {
		o.files[f.seg.Base] = f.info
	}
}

// grow takes what was appended to the active segment. What is not whole yet is left for the next look.
func (l *Log) grow(ctx context.Context, file vfs.FileInfo) error {
	o, s := l.observer, l.observer.whole
	ok, err := l.trailHolds(file)
	if err != nil {
		return err
	}
	if !ok {
		return l.truncated(ctx, file)
	}
	v, added, err := s.active.Grow(ctx, storage.Pos(file.Size))
	if err != nil {
		return err
	}
	if v.Size == s.active.Size {
		o.file = file
		return nil
	}
	if v.Size-o.indexed > reindexBytes { // the index has grown too
		v.ForgetIndexes()
		o.indexed = v.Size
	}
	n := *s
	n.active, n.end, n.modified = v, v.Next, file.Millis()
	if err := l.publish(ctx, &n); err != nil {
		return err
	}
	o.file = file
	o.trail = append(o.trail, added...)
	if n := len(o.trail) - trailKept; n > 0 {
		o.trail = append([]segment.Footprint{}, o.trail[n:]...)
	}
	return nil
}

// trailHolds reports whether the last batch that was seen is still where it was.
func (l *Log) trailHolds(file vfs.FileInfo) (bool, error) {
	o := l.observer
	if storage.Pos(file.Size) < o.whole.active.Size {
		return false, nil
	}
	if len(o.trail) == 0 {
		return true, nil
	}
	return l.sees(o.trail[len(o.trail)-1])
}

func (l *Log) sees(f segment.Footprint) (bool, error) {
	b, ok, err := l.observer.whole.active.At(f.Pos)
	return err == nil && ok && b == f, err
}

// cutAt returns the offset below which the active segment, as it was last seen, is still what it was: the end of the latest batch that is in its place.
func (l *Log) cutAt() (storage.Offset, error) {
	o := l.observer
	for i := len(o.trail) - 1; i >= 0; i-- {
		ok, err := l.sees(o.trail[i])
		if err != nil {
			return 0, err
		}
		if ok {
			return o.trail[i].Next, nil
		}
	}
	return o.whole.active.Base, nil
}

// cutMeanwhile notices that the segment which was the last was cut, and perhaps written anew, before the log went on behind it.
func (l *Log) cutMeanwhile(list []found, n *snapshot) error {
	o := l.observer
	for i := range list[:len(list)-1] {
		f := &list[i]
		if f.seg.Base != o.whole.active.Base || f.info.Ino != o.files[f.seg.Base].Ino {
			continue
		}
		ok, err := l.trailHolds(f.info)
		if ok || err != nil {
			return err
		}
		at, err := l.cutAt()
		if err != nil {
			return err
		}
		f.anew = true // what is remembered of the segment is of other bytes
		l.cutOff(n, at)
	}
	return nil
}

// cutBelow notices that the log was cut in a segment that something followed, and perhaps written anew: what had been closed is not touched otherwise, but for
// a compaction, which gives it another file. Nobody can say where in the segment that was.
func (l *Log) cutBelow(list []found, n *snapshot) {
	o, old := l.observer, l.observer.whole
	for i := range list {
		f := &list[i]
		j := old.find(f.seg.Base)
		was, file := old.at(j), o.files[f.seg.Base]
		if j == len(old.closed) || was.Base != f.seg.Base || was.Path() != f.seg.Path() || file.Ino != f.info.Ino || file.Size == f.info.Size && file.Modified == f.info.Modified {
			continue
		}
		was.ForgetFiles()
		f.anew = true
		l.cutOff(n, f.seg.Base)
	}
}

// cutOff makes n a generation in which the log is another from an offset on.
func (l *Log) cutOff(n *snapshot, at storage.Offset) {
	n.generation++
	l.observer.cuts = append(l.observer.cuts, cut{n.generation, at})
	if l.committed != nil {
		l.committed.again()
	}
}

// truncated publishes a log whose end was cut, and perhaps written anew. Nobody can say where exactly: at the latest behind the last batch that is as it was.
func (l *Log) truncated(ctx context.Context, file vfs.FileInfo) error {
	o, s := l.observer, l.observer.whole
	at, err := l.cutAt()
	if err != nil {
		return err
	}
	seg := l.newSegment(s.active.Base)
	seg.Only(file.Ino)
	v, err := seg.Tail(ctx, storage.Pos(file.Size))
	if err != nil {
		return err
	}
	n := *s
	n.active, n.end, n.modified = v, max(v.Next, n.start), file.Millis()
	cuts := o.cuts
	l.cutOff(&n, at)
	if err := l.publishTail(ctx, &n, file); err != nil {
		o.cuts = cuts
		return err
	}
	return nil
}

// publish makes a new state of the files known. After an error all is as it was, so that the next look finds the same again.
func (l *Log) publish(ctx context.Context, s *snapshot) error {
	s.cuts = l.observer.cuts
	if err := l.show(ctx, s); err != nil {
		return err
	}
	l.observer.whole = s
	return nil
}
