package repair

import (
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// finishCompaction ends a compaction that was cut short as a broker that starts does: what it was still writing goes, and what is complete replaces the
// segments that it covers. Nothing is deleted but indexes.
func (p *Part) finishCompaction() []Action {
	var swaps, cleaned []storage.Offset
	for i := range p.Compacted {
		switch c := &p.Compacted[i]; {
		case !c.Swap:
			cleaned = append(cleaned, c.Base)
		case c.Log:
			swaps = append(swaps, c.Base)
		}
	}
	complete := state.CompleteSwaps(swaps, cleaned)
	var by []state.Replacement
	var out []Action
	add := func(k Kind, name, to, why string, base storage.Offset) {
		out = append(out, Action{Kind: k, Path: join(p.Dir, name), To: to, Offset: -1, Why: why, part: p, base: base})
	}
	for i := range p.Compacted {
		c := &p.Compacted[i]
		switch {
		case !c.Log:
			add(Remove, c.Name, "", "an index of a compaction that was cut short", c.Base)
		case !c.Swap || !slices.Contains(complete, c.Base):
			add(SetAside, c.Name, "", "a compaction was cut short before it was complete", c.Base)
		default:
			add(Move, c.Name, p.path(c.Base, state.ExtLog), "a compaction was cut short before it was moved into place", c.Base)
			by = append(by, state.Replacement{Base: c.Base, Next: c.Next})
		}
	}
	for i := range p.Segments {
		if s := &p.Segments[i]; state.Replaced(s.Base, by) {
			add(SetAside, state.FileName(s.Base, state.ExtLog), "", "a compaction has replaced it", s.Base)
		}
	}
	return out
}
