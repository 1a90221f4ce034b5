package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// look reads what the findings make necessary to know.
func (d *disk) look(ctx context.Context, l *Layout, findings []inspect.Finding) error {
	ahead := false
	offsets, epochs := map[*Part]bool{}, map[*Part]bool{}
	for _, f := range findings {
		p := l.part(dirOf(f.Path))
		switch {
		case in(f.What, inspect.CheckpointAhead):
			ahead = true
		case isStretch(f):
			offsets[p] = offsets[p] || f.What == inspect.BatchOffset || misfit(p, f)
			if err := d.lookAt(p, f); err != nil {
				return err
			}
		case in(f.What, inspect.EpochOrder, inspect.EpochMismatch, inspect.EpochsAhead, inspect.EpochsMissing, inspect.EpochsSyntax):
			epochs[p] = true
		}
	}
	for _, p := range l.Parts {
		var err error
		for i := range p.Compacted {
			if c := &p.Compacted[i]; c.Log && c.Swap && err == nil {
				var r *logScan
				if r, err = d.scanFile(ctx, &scanner{}, join(p.Dir, c.Name), scanOptions{base: c.Base, next: maxOffset}); err == nil {
					c.Next = r.next
				}
			}
		}
		if err == nil && ahead {
			err = d.endOf(ctx, p)
		}
		if err == nil && !p.Raft && (offsets[p] || len(p.Moving) > 0) {
			err = d.lookChains(ctx, p)
		}
		if err == nil && epochs[p] {
			err = d.lookEpochs(ctx, l, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// misfit reports whether a damaged stretch may hold good batches that do not fit the names of the segments: at the start of a log, or at the end of one that
// others follow. Verify makes one finding of stretches that touch.
func misfit(p *Part, f inspect.Finding) bool {
	if p == nil || !isStretch(f) {
		return false
	}
	base, _, _, _ := state.ParseFileName(path.Base(f.Path))
	i, ok := p.segment(base)
	return ok && (f.Pos == 0 && f.What != inspect.LogZeros || i < len(p.Segments)-1 && int64(f.End) == p.Segments[i].Size)
}

// lookAt finds whole batches in a damaged stretch that are right, as their checksums say, and that only this program cannot decode.
func (d *disk) lookAt(p *Part, f inspect.Finding) error {
	if p == nil || in(f.What, inspect.TornTail, inspect.LogZeros) {
		return nil
	}
	h, err := d.fs.OpenFile(d.path(f.Path), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // only read
	var r record.Reader
	return inspect.WalkFrom(h, f.Pos, int64(f.End), -1, func(b inspect.Batch) error {
		why := ""
		if b.Raw == nil && errors.Is(b.Err, record.ErrTooLarge) {
			why = "a batch that is too large to be checked"
		} else if b.CRCOK {
			err := r.Reset(b.Raw)
			if err == nil {
				_, err = r.Sums()
			}
			if errors.Is(err, storage.ErrUnsupported) || errors.Is(err, record.ErrTooLarge) {
				why = "a batch with a right checksum that this version cannot decode"
			}
		}
		if why == "" {
			return nil
		}
		if p.keep == nil {
			p.keep = map[string][]Range{}
		}
		p.keep[f.Path] = append(p.keep[f.Path], Range{Pos: b.Pos, End: b.End(), What: f.What, Why: why})
		return nil
	})
}

// lookChains reads the good batches of each log by itself.
func (d *disk) lookChains(ctx context.Context, p *Part) error {
	type file struct {
		base   storage.Offset
		moving bool
	}
	var files []file
	for _, g := range p.Segments {
		files = append(files, file{g.Base, false})
	}
	for _, o := range p.Moving {
		files = append(files, file{o, true})
	}
	for _, x := range files {
		name := p.path(x.base, state.ExtLog)
		if x.moving {
			name += state.SuffixMoving
		}
		c := chain{base: x.base, moving: x.moving}
		for _, o := range []scanOptions{{base: x.base, next: maxOffset}, {base: -1, next: maxOffset}} {
			r, err := d.scanFile(ctx, &scanner{}, name, o)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if o.base < 0 {
				c.free = r.batches
			} else {
				c.named = r.batches
			}
		}
		p.chains = append(p.chains, c)
	}
	return nil
}

// lookEpochs reads the leader epochs of all batches.
func (d *disk) lookEpochs(ctx context.Context, l *Layout, p *Part) error {
	var list []epochBatch
	var end storage.Offset
	for _, g := range p.Segments {
		r, err := d.scanSegment(ctx, &scanner{}, p.Dir, g, g.options(0))
		if err != nil {
			return fmt.Errorf("%s: %w", p.path(g.Base, state.ExtLog), err)
		}
		for i := range r.batches {
			if b := &r.batches[i]; b.epoch >= 0 {
				list = append(list, epochBatch{base: g.Base, pos: b.pos, first: b.first, epoch: b.epoch})
			}
		}
		end = max(end, g.Base, r.next)
	}
	start, _ := l.point(state.LogStartFile, p.TP)
	file := p.Epochs
	if p.EpochErr != nil {
		file = nil
	}
	p.epochs = planEpochs(list, file, start, end, l.Clean)
	return nil
}

// lookSettle compares the indexes that a recovery would build with those that are there, of a partition that is right otherwise.
func (d *disk) lookSettle(ctx context.Context, l *Layout, p *Part) error {
	if l.Clean || p.Raft || len(p.Segments) == 0 {
		return nil
	}
	recovery, _ := l.point(state.RecoveryPointFile, p.TP)
	from := len(p.Segments) - 1
	for from > 0 && p.Segments[from-1].Next > recovery {
		from--
	}
	t, err := d.replay(ctx, p, from)
	if err != nil {
		return err
	}
	p.end = 0
	for _, g := range p.Segments[from:] {
		sc := &scanner{txns: t, sums: p.settings.sizes}
		r, err := d.scanSegment(ctx, sc, p.Dir, g, g.options(p.settings.interval))
		if err != nil {
			return fmt.Errorf("%s: %w", p.path(g.Base, state.ExtLog), err)
		}
		if r.bad > 0 {
			return nil // damage that is left
		}
		st, err := d.settingsOf(ctx, p, g, r)
		if err != nil {
			return err
		}
		want, err := r.derive(g.Base, st)
		if err != nil {
			return err
		}
		differ, err := d.differing(p, g.Base, want, false)
		if err != nil {
			return err
		}
		if len(differ) > 0 {
			p.settles = append(p.settles, g.Base)
		}
		p.end = max(g.Base, r.next)
	}
	p.looked = true
	return nil
}

// maxAsked is how many segments are read to find out an interval.
const maxAsked = 4

// settingsOf returns the settings that the indexes of a segment are built with. Where its topic's are not known they are those of the index that is there,
// if that was built by the rule, or of the segments around it. r is nil where the segment's own index tells nothing.
func (d *disk) settingsOf(ctx context.Context, p *Part, g SegmentFiles, r *logScan) (settings, error) {
	st := p.settings
	if st.interval >= 0 {
		return st, nil
	}
	if r != nil {
		if b := d.boundsOf(p.Dir, g, r); b.ok() && b != anyInterval {
			st.interval = b.pick(usualInterval)
			return st, nil
		}
	}
	if p.found == 0 {
		all := anyInterval
		asked := 0
		for _, o := range slices.Backward(p.Segments) {
			if o.Base == g.Base || !o.Ext[state.ExtIndex] || asked == maxAsked {
				continue
			}
			asked++
			r, err := d.scanSegment(ctx, &scanner{}, p.Dir, o, o.options(0))
			if err != nil {
				return st, fmt.Errorf("%s: %w", p.path(o.Base, state.ExtLog), err)
			}
			if b := all.and(d.boundsOf(p.Dir, o, r)); b.ok() {
				all = b
			}
		}
		p.found = all.pick(usualInterval)
	}
	st.interval = p.found
	return st, nil
}

// scanFile reads a log by its name.
func (d *disk) scanFile(ctx context.Context, s *scanner, name string, o scanOptions) (*logScan, error) {
	f, err := d.fs.OpenFile(d.path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r, err := s.scan(ctx, f, st.Size, o)
	if err == nil {
		r.header.Modified = st.Modified
	}
	return r, err
}

// scanSegment reads the log of a segment.
func (d *disk) scanSegment(ctx context.Context, s *scanner, dir string, g SegmentFiles, o scanOptions) (*logScan, error) {
	return d.scanFile(ctx, s, path.Join(dir, state.FileName(g.Base, state.ExtLog)), o)
}
