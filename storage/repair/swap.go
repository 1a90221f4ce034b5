package repair

import (
	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// finishCompaction ends a compaction that was cut short as a broker that starts does: what it was still writing goes, and what is complete replaces the
// segments that it covers. Nothing is deleted but indexes.
func (p *Part) finishCompaction() []Action {
	writing := maxOffset
	for i := range p.Compacted {
		if c := &p.Compacted[i]; !c.Swap {
			writing = min(writing, c.Base)
		}
	}
	from, to := maxOffset, storage.Offset(-1)
	var out []Action
	add := func(k Kind, name, to, why string, base storage.Offset) {
		out = append(out, Action{Kind: k, Path: join(p.Dir, name), To: to, Offset: -1, Why: why, part: p, base: base})
	}
	for i := range p.Compacted {
		c := &p.Compacted[i]
		switch {
		case !c.Log:
			add(Remove, c.Name, "", "an index of a compaction that was cut short", c.Base)
		case !c.Swap || c.Base >= writing:
			add(SetAside, c.Name, "", "a compaction was cut short before it was complete", c.Base)
		default:
			add(Move, c.Name, p.path(c.Base, state.ExtLog), "a compaction was cut short before it was moved into place", c.Base)
			from, to = min(from, c.Base), max(to, c.Next)
		}
	}
	for i := range p.Segments {
		if s := &p.Segments[i]; s.Base >= from && (s.Base < to || s.Base == from) {
			add(SetAside, state.FileName(s.Base, state.ExtLog), "", "a compaction has replaced it", s.Base)
		}
	}
	return out
}
