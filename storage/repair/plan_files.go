package repair

import (
	"fmt"
	"path"
	"strconv"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/state"
)

// file plans what is done about a file beside a log, or about the partition as such.
func (x *planner) file(c *cutter, f inspect.Finding) {
	p := c.p
	base, ext, suffix, ok := state.ParseFileName(path.Base(f.Path))
	switch {
	case in(f.What, inspect.IndexMissing, inspect.IndexEntry, inspect.IndexAhead, inspect.IndexPadding, inspect.IndexLength,
		inspect.TimeIndexMissing, inspect.TimeIndexEntry, inspect.TimeIndexAhead, inspect.TimeIndexPadding, inspect.TimeIndexLength, inspect.TimeIndexClosing,
		inspect.TxnIndexSyntax, inspect.TxnIndexLength, inspect.TxnIndexMissing, inspect.TxnIndexEntry):
		c.index(base, f)
	case in(f.What, inspect.SizeIndexStale, inspect.SizeIndexWrong):
		if p.Own {
			c.index(base, f)
		} else {
			x.add(Action{Kind: Remove, Path: f.Path, Offset: -1, Why: f.Detail, part: p, base: base})
		}
	case in(f.What, inspect.FileOrphan):
		if ok && suffix == "" && ext != state.ExtLog && ext != state.ExtSnapshot {
			x.add(Action{Kind: Remove, Path: f.Path, Offset: -1, Why: f.Detail, part: p, base: base})
		}
	case in(f.What, inspect.SnapshotSyntax, inspect.SnapshotMismatch, inspect.SnapshotAhead):
		if !x.planned(f.Path) {
			x.add(Action{Kind: SetAside, Path: f.Path, Offset: -1, Why: f.Detail, part: p, base: base})
		}
	case in(f.What, inspect.SnapshotMissing):
		if f.Severity == inspect.Damage {
			x.add(Action{Kind: NoMarker, Path: p.Dir, Offset: -1, Why: f.Detail, part: p})
		}
	case in(f.What, inspect.MetadataSyntax, inspect.TopicID):
		if p.WantID != "" && p.WantID != p.TopicID {
			x.add(Action{Kind: WriteID, Path: f.Path, To: p.WantID, Offset: -1, Why: f.Detail, part: p})
			return
		}
		x.leave(f, "which topic id is right cannot be told from the directory")
	case in(f.What, inspect.MetadataMissing):
		if p.Own {
			x.add(Action{Kind: WriteID, Path: f.Path, To: p.WantID, Offset: -1, Why: f.Detail, part: p})
		}
	case in(f.What, inspect.LogMissing):
		if len(p.Segments) == 0 && len(p.Moving) == 0 {
			var o storage.Offset
			for _, name := range []string{state.RecoveryPointFile, state.LogStartFile, state.HighWatermarkFile} {
				n, _ := x.l.point(name, p.TP)
				o = max(o, n)
			}
			c.emptySegment(o, f.Detail)
		}
	case in(f.What, inspect.EpochOrder, inspect.EpochMismatch, inspect.EpochsAhead, inspect.EpochsMissing, inspect.EpochsSyntax):
		if p.epochs == nil {
			x.leave(f, "")
		}
	default:
		x.leave(f, "")
	}
}

// index notes that the indexes of a segment are to be built anew.
func (c *cutter) index(base storage.Offset, f inspect.Finding) {
	if _, ok := c.p.segment(base); !ok || c.gone[base] {
		return
	}
	if _, planned := c.rebuild[base]; !planned {
		c.rebuild[base] = string(f.What) + ": " + f.Detail
	}
}

// points plans the partition's lines in the checkpoints, and what lies behind the end of the log.
func (x *planner) points(c *cutter) {
	p := c.p
	if c.end < 0 {
		return
	}
	recovery, _ := x.l.point(state.RecoveryPointFile, p.TP)
	high, _ := x.l.point(state.HighWatermarkFile, p.TP)
	if start, ok := x.l.point(state.LogStartFile, p.TP); ok && start > c.end {
		// A start that was set lies at or below what was the end.
		switch believable := start <= max(recovery, high); {
		case !believable:
			x.point(p, state.LogStartFile, -1, fmt.Sprintf("offset %d is above the end of the log, %d, and above all that it ever held", start, c.end))
		case p.Own:
			c.emptySegment(start, "the log starts there")
		default:
			x.point(p, state.LogStartFile, c.end, fmt.Sprintf("offset %d is above the end of the log", start))
		}
	}
	for _, name := range []string{state.RecoveryPointFile, state.HighWatermarkFile, state.CleanerOffsetFile} {
		if o, ok := x.l.point(name, p.TP); ok && o > c.end {
			x.point(p, name, c.end, fmt.Sprintf("offset %d is above the end of the log", o))
		}
	}
	if !c.shorter {
		return
	}
	for _, o := range p.Snaps {
		name := p.path(o, state.ExtSnapshot)
		if o > c.end && !x.planned(name) {
			x.add(Action{Kind: SetAside, Path: name, Offset: -1, Why: fmt.Sprintf("it goes up to offset %d, the log then ends at %d", o, c.end), part: p, base: o})
		}
	}
}

func (x *planner) planned(path string) bool {
	for i := range x.actions {
		if x.actions[i].Path == path {
			return true
		}
	}
	return false
}

func (x *planner) point(p *Part, file string, o storage.Offset, why string) {
	x.add(Action{Kind: SetPoint, Path: file, Offset: o, Why: why, part: p})
}

// leaderEpochs plans what makes a log's leader epochs agree.
func (x *planner) leaderEpochs(p *Part) {
	if p.epochs == nil {
		return
	}
	for _, e := range p.epochs.patches {
		x.add(Action{Kind: SetEpoch, Path: p.path(e.base, state.ExtLog), To: strconv.Itoa(int(e.to)), Offset: e.first,
			Why: "the batches around it have that one", part: p, base: e.base, pos: e.pos, from: e.epoch})
	}
	b := p.epochs.file.Format()
	if p.EpochErr != nil || string(p.Epochs.Format()) != string(b) {
		why := "it does not agree with the batches"
		if p.EpochErr != nil {
			why = p.EpochErr.Error()
		}
		x.add(Action{Kind: WriteEpochs, Path: join(p.Dir, state.EpochsFile), Offset: -1, Why: why, part: p, epochs: b})
	}
}

// planSettle says what has to be done to a partition that is right but was not closed in order, so that nobody has to recover it any more.
func (l *Layout) planSettle(p *Part) []Action {
	var out []Action
	for _, base := range p.settles {
		out = append(out, Action{Kind: Rebuild, Path: p.path(base, state.ExtLog), Offset: -1, Why: "the log was not closed in order", part: p, base: base})
	}
	if o, _ := l.point(state.RecoveryPointFile, p.TP); o != p.end || len(out) > 0 {
		out = append(out, Action{Kind: Settle, Path: p.Dir, Offset: p.end, Why: "the log was not closed in order", part: p})
	}
	return out
}
