package repair

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// chain is a log file and its good batches, whatever the other logs of the partition hold.
type chain struct {
	base   storage.Offset // by its name
	moving bool           // it has the name of a move that was cut short
	named  []batch        // that ascend from its base offset on
	free   []batch        // that ascend
}

// placing is where a log belongs.
type placing struct {
	chain
	all  []batch // the ones that count
	to   storage.Offset
	torn string // why it is set aside; empty where it stays
}

func (f *placing) end() storage.Offset {
	if len(f.all) == 0 {
		return f.to
	}
	return f.all[len(f.all)-1].next()
}

// key tells batches apart.
type key struct {
	first storage.Offset
	delta int32
	crc   uint32
}

func keyOf(b *batch) key { return key{b.first, b.delta, b.crc} }

// covers returns the keys of batches.
func covers(set map[key]bool, list []batch) map[key]bool {
	if set == nil {
		set = make(map[key]bool, len(list))
	}
	for i := range list {
		set[keyOf(&list[i])] = true
	}
	return set
}

// without returns the batches that are not in a set.
func without(list []batch, set map[key]bool) []batch {
	var out []batch
	for i := range list {
		if !set[keyOf(&list[i])] {
			out = append(out, list[i])
		}
	}
	return out
}

// arrange finds logs that do not lie where their batches belong: under a wrong base offset, twice, or in the way of others. What overlaps beyond that is left
// to be cut out.
func arrange(p *Part) []Action {
	var files []*placing
	var right map[key]bool
	for _, c := range p.chains {
		f := &placing{chain: c, all: c.named, to: c.base}
		if displaced(&c) {
			f.all, f.to = c.free, -1
		} else {
			right = covers(right, c.named)
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b *placing) int { return cmp.Compare(a.base, b.base) })
	for _, f := range files {
		if f.to >= 0 {
			continue
		}
		fresh := without(f.all, right)
		if len(fresh) == 0 {
			f.torn = "its batches are in other segments"
			f.to = f.base
			continue
		}
		f.to = fresh[0].first
		right = covers(right, f.all)
	}
	makeRoom(files)
	overlaps(files)
	return p.placed(files)
}

// displaced reports whether a log's name is above its batches: none of them fits it, or those that do follow directly on others that do not.
func displaced(c *chain) bool {
	if len(c.free) == 0 {
		return false
	}
	if len(c.named) == 0 {
		return c.free[0].first < c.base
	}
	for i := range c.free {
		if b := &c.free[i]; b.first >= c.base {
			return i > 0 && c.free[i-1].next() == b.first && b.first == c.named[0].first
		}
	}
	return false
}

// makeRoom gives a log whose name another one needs the name of its own first batch.
func makeRoom(files []*placing) {
	for range files {
		again := false
		for _, f := range files {
			for _, g := range files {
				if f == g || f.torn != "" || g.torn != "" || f.to != g.to || len(f.all) == 0 {
					continue
				}
				if len(g.all) == 0 {
					g.torn = "it holds no good batch, and another segment needs its name"
					continue
				}
				if g.all[0].first > g.to && f.all[0].first <= f.to {
					g.to = g.all[0].first
					again = true
				}
			}
		}
		if !again {
			return
		}
	}
}

// overlaps looks at logs that reach into the one behind them.
func overlaps(files []*placing) {
	for range len(files) + 1 { // a log that is named anew may come to lie behind others
		if !overlapsOnce(files) {
			return
		}
	}
}

// overlapsOnce reports whether it gave a log another name, after which the order may be another one.
func overlapsOnce(files []*placing) bool {
	order := slices.Clone(files)
	slices.SortStableFunc(order, func(a, b *placing) int { return cmp.Compare(a.to, b.to) })
	var a *placing
	for _, b := range order {
		if b.torn != "" {
			continue
		}
		if a == nil || a.end() <= b.to {
			a = b
			continue
		}
		// a holds offsets that b's name claims.
		if len(b.all) == 0 {
			b.torn = fmt.Sprintf("it holds no good batch and lies within offsets %d to %d of another segment", a.to, a.end()-1)
			continue
		}
		if first := a.all[0].first; first >= b.end() && first > a.to {
			a.to = first
			return true
		}
		var over []batch
		for _, x := range a.all {
			if x.last() >= b.to {
				over = append(over, x)
			}
		}
		unique := without(over, covers(nil, b.all))
		if inside := len(without(b.all, covers(nil, a.all))) == 0; inside && (len(unique) > 0 || len(over) == len(b.all)) {
			b.torn = "its batches are in the segment before it"
			continue
		}
		if first := b.all[0].first; len(unique) > 0 && unique[len(unique)-1].next() <= first && first > b.to {
			b.to = first
			return true
		}
		if len(without(a.all, covers(nil, b.all))) == 0 {
			a.torn = "its batches are in the segment behind it"
			return true
		}
		a = b
	}
	return false
}

// placed makes actions of where logs belong.
func (p *Part) placed(files []*placing) []Action {
	taken := map[storage.Offset]int{}
	for _, f := range files {
		if f.torn == "" {
			taken[f.to]++
		}
	}
	var out []Action
	for _, f := range files {
		path := p.path(f.base, state.ExtLog)
		if f.moving {
			path += state.SuffixMoving
		}
		switch {
		case f.torn != "":
			out = append(out, Action{Kind: SetAside, Path: path, Offset: -1, Why: f.torn, part: p, base: f.base, moving: f.moving})
		case f.to == f.base && !f.moving || taken[f.to] > 1:
		default:
			why := fmt.Sprintf("its first batch has offset %d", f.to)
			if f.moving {
				why = "the rename was cut short"
			}
			out = append(out, Action{Kind: Move, Path: path, To: p.path(f.to, state.ExtLog), Offset: -1, Why: why, part: p, base: f.to, moving: f.moving})
		}
	}
	return out
}
