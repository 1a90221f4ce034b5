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
		case in(f.What, inspect.BatchOffset):
			offsets[p] = true
		case in(f.What, inspect.BatchHeader, inspect.BatchRecords):
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

// lookAt finds out whether a damaged stretch is a whole batch, as its checksum says, that only this program cannot decode.
func (d *disk) lookAt(p *Part, f inspect.Finding) error {
	if p == nil {
		return nil
	}
	keep := func(why string) {
		if p.keep == nil {
			p.keep = map[spot]string{}
		}
		p.keep[spot{f.Path, f.Pos}] = why
	}
	const maxBatch = 256 << 20
	if f.End-f.Pos > maxBatch {
		keep("a batch that is too large to be checked")
		return nil
	}
	h, err := d.fs.OpenFile(d.path(f.Path), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // only read
	b := make([]byte, 0, 64<<10)
	err = chunks(h, int64(f.Pos), int64(f.End), func(c []byte, _ int64) error {
		b = append(b, c...)
		return nil
	})
	if err != nil {
		return err
	}
	if record.CheckCRC(b) != nil {
		return nil
	}
	var r record.Reader
	if err = r.Reset(b); err == nil {
		_, err = r.Sums()
	}
	if errors.Is(err, storage.ErrUnsupported) || errors.Is(err, record.ErrTooLarge) {
		keep("a batch with a right checksum that this version cannot decode")
	}
	return nil
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
			name += suffixMoving
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
	return s.scan(ctx, f, st.Size, o)
}

// scanSegment reads the log of a segment.
func (d *disk) scanSegment(ctx context.Context, s *scanner, dir string, g SegmentFiles, o scanOptions) (*logScan, error) {
	return d.scanFile(ctx, s, path.Join(dir, state.FileName(g.Base, state.ExtLog)), o)
}
