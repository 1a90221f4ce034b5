package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const epochFile = "leader-epoch-checkpoint"

// found is a segment as the directory lists it.
type found struct {
	seg      *segment.Segment
	size     storage.Pos
	modified int64 // milliseconds
}

// load lists the directory and publishes the first snapshot.
func (l *Log) load(ctx context.Context) error {
	list, err := l.list()
	if err != nil {
		return err
	}
	if l.o.Writable {
		return l.loadWritable(ctx, list)
	}
	return l.loadReadOnly(ctx, list)
}

// list returns the segments in ascending order. Size indexes without a log are removed where that is allowed.
func (l *Log) list() ([]found, error) {
	entries, err := l.env.FS.ReadDir(l.o.Dir)
	if err != nil {
		return nil, err
	}
	var out []found
	var derived []storage.Offset
	for _, e := range entries {
		base, ext, suffix, ok := state.ParseFileName(e.Name)
		if !ok || suffix != "" {
			continue
		}
		switch ext {
		case state.ExtLog:
			st, err := l.env.FS.Stat(l.path(e.Name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted since
			}
			if err != nil {
				return nil, err
			}
			if st.IsDir() {
				continue
			}
			if st.Size > 1<<31-1 {
				return nil, &storage.CorruptError{Path: l.path(e.Name), Offset: base, Reason: fmt.Sprintf("a segment of %d bytes is larger than 2 GiB", st.Size)}
			}
			out = append(out, found{seg: l.newSegment(base), size: storage.Pos(st.Size), modified: st.Modified / 1e6})
		case state.ExtSizeIndex:
			derived = append(derived, base)
		}
	}
	if l.o.Writable {
		l.removeOrphans(out, derived)
	}
	return out, nil
}

func (l *Log) removeOrphans(list []found, derived []storage.Offset) {
	have := map[storage.Offset]bool{}
	for _, f := range list {
		have[f.seg.Base] = true
	}
	for _, base := range derived {
		if !have[base] {
			_ = l.env.FS.Remove(l.path(state.FileName(base, state.ExtSizeIndex)))
		}
	}
}

// loadReadOnly shows what is there up to the last whole batch.
func (l *Log) loadReadOnly(ctx context.Context, list []found) error {
	s := &snapshot{log: l, start: l.o.LogStart}
	if len(list) == 0 {
		s.active = segment.View{Segment: l.newSegment(l.o.LogStart), Next: l.o.LogStart}
		s.end = l.o.LogStart
		s.modified = l.env.Now().UnixMilli()
		if st, err := l.env.FS.Stat(l.o.Dir); err == nil {
			s.modified = st.Modified / 1e6
		}
		l.snap.Store(s)
		return nil
	}
	last := list[len(list)-1]
	v, err := last.seg.Tail(ctx, last.size)
	if err != nil {
		return err
	}
	if v.Size < last.size && !l.o.Clean {
		l.recovered = fmt.Sprintf("%s holds no whole batch from position %d on: shown up to there", last.seg.Path(), v.Size)
	}
	s.closed, s.active = closedViews(list), v
	s.modified = last.modified
	s.end = max(v.Next, l.o.LogStart)
	s.start = max(l.o.LogStart, list[0].seg.Base)
	l.snap.Store(s)
	return nil
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
	for len(list) > 1 && list[1].seg.Base <= l.o.LogStart { // the start was moved, the files are still there
		if err := list[0].seg.Remove(); err != nil {
			return err
		}
		list = list[1:]
	}
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
	if err := l.mergeEpochs(list); err != nil {
		return err
	}
	s := &snapshot{log: l, closed: closedViews(list), active: app.View(), start: max(l.o.LogStart, list[0].seg.Base), end: app.Next, modified: last.modified}
	if s.start > s.end { // the checkpoint is ahead of a log that lost its end
		return l.skipTo(s)
	}
	l.syncer.set(s.end)
	l.snap.Store(s)
	return nil
}

// skipTo gives a log whose start lies above its end a new active segment there, so that no offset is given twice.
func (l *Log) skipTo(s *snapshot) error {
	if err := l.closeSegment(&l.active); err != nil {
		return err
	}
	seg := l.newSegment(s.start)
	if err := seg.Create(l.owner); err != nil {
		return err
	}
	if err := l.env.FS.SyncDir(l.o.Dir); err != nil {
		return err
	}
	old := s.active
	old.Next, old.Live = s.start, nil
	l.active = seg.NewAppender(l.env.Now().UnixMilli())
	s.closed = append(s.closed, &old)
	s.active, s.end = l.active.View(), s.start
	l.syncer.set(s.end)
	l.snap.Store(s)
	return nil
}

// loadEpochs reads leader-epoch-checkpoint. One that cannot be read is rebuilt from the batches, as if it were missing.
func (l *Log) loadEpochs() error {
	b, err := vfs.ReadFile(l.env.FS, l.path(epochFile), 1<<20)
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
		l.report(l.path(epochFile), err.Error()+": rebuilt from the batches")
		l.epochs = nil
	}
	return nil
}
