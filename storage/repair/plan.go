package repair

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/state"
)

// planner makes a plan of one round.
type planner struct {
	l       *Layout
	actions []Action
}

// Plan says what to do about findings, given what the directory looks like. It is pure. A finding of damage that nothing is done about is an action of kind
// Leave. The actions are in the order in which they must be done.
func Plan(findings []inspect.Finding, l *Layout) []Action {
	x := &planner{l: l}
	byPart := map[*Part][]inspect.Finding{}
	for _, f := range findings {
		if p := l.part(dirOf(f.Path)); p != nil {
			byPart[p] = append(byPart[p], f)
			continue
		}
		x.top(f)
	}
	for _, p := range l.Parts {
		x.partition(p, byPart[p])
	}
	slices.SortStableFunc(x.actions, func(a, b Action) int {
		if c := cmp.Compare(a.dir(), b.dir()); c != 0 {
			return c
		}
		return cmp.Compare(slices.Index(kindOrder, a.Kind), slices.Index(kindOrder, b.Kind))
	})
	return x.actions
}

// dirOf returns the partition's directory that a path lies in, or is.
func dirOf(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return p
}

func (a *Action) dir() string {
	if a.part == nil {
		return ""
	}
	return a.part.Dir
}

func (x *planner) add(a Action) { x.actions = append(x.actions, a) }

// leave notes damage that is left.
func (x *planner) leave(f inspect.Finding, why string) {
	if f.Severity != inspect.Damage {
		return
	}
	if why == "" {
		why = f.Detail
	}
	x.add(Action{Kind: Leave, Path: f.Path, Offset: f.Offset, Why: why, What: f.What, part: x.l.part(dirOf(f.Path))})
}

// top plans what is done about a file at the top.
func (x *planner) top(f inspect.Finding) {
	switch {
	case in(f.What, inspect.CheckpointForm):
		if p, ok := x.l.Points[f.Path]; ok && p.Err != nil {
			x.add(Action{Kind: FixPoints, Path: f.Path, Offset: -1, Why: f.Detail})
			return
		}
		x.leave(f, "")
	case in(f.What, inspect.CheckpointAhead): // planned with the partition
	default:
		x.leave(f, "")
	}
}

// partition plans what is done to one partition.
func (x *planner) partition(p *Part, list []inspect.Finding) {
	moves := p.finishCompaction()
	if len(moves) == 0 {
		moves = arrange(p)
	}
	if len(moves) > 0 {
		x.actions = append(x.actions, moves...)
		return // what else there is depends on it: the next round sees
	}
	c := &cutter{planner: x, p: p, rebuild: map[storage.Offset]string{}, cuts: map[storage.Offset][]Range{}, end: p.end}
	for _, f := range list {
		if isStretch(f) {
			c.stretch(f)
		}
	}
	c.finish()
	for _, f := range list {
		if !isStretch(f) {
			x.file(c, f)
		}
	}
	x.points(c)
	x.leaderEpochs(p)
	for _, base := range slices.Sorted(maps.Keys(c.rebuild)) {
		x.add(Action{Kind: Rebuild, Path: p.path(base, state.ExtLog), Offset: -1, Why: c.rebuild[base], part: p, base: base})
	}
}

// in reports whether a kind of finding is one of a list.
func in(w inspect.What, list ...inspect.What) bool { return slices.Contains(list, w) }

// isStretch reports whether a finding is about bytes of a log that have to go.
func isStretch(f inspect.Finding) bool {
	return f.End > f.Pos && in(f.What, inspect.BatchFrame, inspect.BatchHeader, inspect.BatchCRC, inspect.BatchRecords, inspect.BatchOffset, inspect.LogZeros, inspect.TornTail)
}

// cutter plans what is done to the logs of a partition.
type cutter struct {
	*planner
	p       *Part
	cuts    map[storage.Offset][]Range
	rebuild map[storage.Offset]string // segments whose indexes are built anew, and why
	gone    map[storage.Offset]bool   // segments that are set aside
	end     storage.Offset            // of the log afterwards; -1 where unknown
	shorter bool                      // the log ends earlier afterwards
}

// stretch notes a damaged stretch of a log.
func (c *cutter) stretch(f inspect.Finding) {
	base, _, _, _ := state.ParseFileName(path.Base(f.Path))
	i, ok := c.p.segment(base)
	if !ok {
		c.leave(f, "the log is not there any more")
		return
	}
	s := &c.p.Segments[i]
	last := i == len(c.p.Segments)-1 && int64(f.End) == s.Size
	if torn := f.What == inspect.TornTail || f.What == inspect.LogZeros; c.p.Raft && (!last || !torn) {
		c.leave(f, "the log of a cluster's metadata with a hole is another cluster's: copy it from another controller")
		return
	}
	at := f.Pos
	for _, k := range append(c.p.keep[f.Path], Range{Pos: f.End, End: f.End}) {
		if k.Pos < f.Pos || k.Pos > f.End {
			continue
		}
		if k.Pos > at {
			c.cuts[base] = append(c.cuts[base], Range{Pos: at, End: k.Pos, What: f.What, Why: f.Detail})
		}
		if k.End > k.Pos {
			c.leave(f, k.Why)
			last = last && k.End < f.End
		}
		at = k.End
	}
	if last {
		c.end, c.shorter = max(f.Offset, base), true
	}
}

// finish plans the cuts. A log of which nothing is left goes as a whole, unless it is the last one: its name says where the log ends.
func (c *cutter) finish() {
	p := c.p
	c.gone = map[storage.Offset]bool{}
	for _, base := range slices.Sorted(maps.Keys(c.cuts)) {
		cuts := c.cuts[base]
		i, _ := p.segment(base)
		s := &p.Segments[i]
		left := s.Size
		for _, r := range cuts {
			left -= int64(r.End - r.Pos)
		}
		name := p.path(base, state.ExtLog)
		if left <= 0 && i < len(p.Segments)-1 {
			c.gone[base] = true
			c.add(Action{Kind: SetAside, Path: name, Offset: -1, Why: "it holds no good batch", part: p, base: base})
			continue
		}
		c.add(Action{Kind: Cut, Path: name, Cuts: cuts, Offset: -1, part: p, base: base})
		c.rebuild[base] = "the log has changed"
	}
	if c.shorter && p.Own {
		c.keepEnd()
	}
}

// keepEnd makes sure that the offsets of records that are lost are not given to others. A broker's log is just shorter: it may get them from a replica.
func (c *cutter) keepEnd() {
	o, _ := c.l.point(state.RecoveryPointFile, c.p.TP)
	if o > c.end && o > c.p.Segments[len(c.p.Segments)-1].Base {
		c.emptySegment(o, "records up to there were on stable storage")
	}
}

func (c *cutter) emptySegment(o storage.Offset, why string) {
	c.add(Action{Kind: Segment, Path: c.p.path(o, state.ExtLog), Offset: o, Why: why, part: c.p, base: o})
	c.rebuild[o] = "the segment is new"
	c.end, c.shorter = o, false
}
