package inspect

import (
	"cmp"
	"errors"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const rebuildTxns = "remove .index of the segment: the next start builds all its indexes"

// openTxns reads the segment's transaction index. It is small: an entry for each aborted transaction.
func (c *segCheck) openTxns() {
	if !c.s.files[state.ExtTxnIndex] {
		c.r.txnsRead = true
		return
	}
	path := c.path(state.ExtTxnIndex)
	b, ok, err := c.v.read(path)
	if errors.Is(err, vfs.ErrTooBig) {
		c.r.add(about(path, Notice, NotChecked, "", "%v", err))
		return
	}
	if err != nil || !ok {
		if err != nil {
			c.r.failed(path, err)
		}
		return
	}
	entries, err := index.ParseTxns(b, c.s.base)
	if err != nil {
		f := about(path, Damage, TxnIndexSyntax, rebuildTxns, "%v", index.At(path, err))
		f.Pos = posIn(err)
		c.r.add(f)
		return
	}
	if len(b)%index.TxnEntrySize != 0 {
		c.r.add(about(path, noticeIf(c.recovers), TxnIndexLength, rebuildTxns, "%d bytes are not a whole number of entries", len(b)))
	}
	c.r.txns, c.r.txnsRead = entries, true
}

// finishTxns tells what is wrong with the entries as such.
func (c *segCheck) finishTxns() {
	if c.r.producers == nil {
		return
	}
	for c.txn < len(c.r.txns) {
		c.strayTxn(c.r.txns[c.txn])
		c.txn++
	}
	c.tell(c.path(state.ExtTxnIndex), &c.txnWrong, noticeIf(c.recovers), TxnIndexEntry, rebuildTxns)
}

// txns compares a segment's aborted transactions with its index, knowing which transactions were open before it.
func (c *collector) txns(s *segPlan, r *segReport) {
	if r.producers == nil || !r.txnsRead {
		return
	}
	path := join(c.p.dir, state.FileName(s.base, state.ExtTxnIndex))
	recovers := !c.p.clean && (s.active || s.next > c.p.recovery)
	type before struct {
		pid   int64
		first storage.Offset
		until storage.Offset // its end in this segment
	}
	var open []before
	for pid, e := range c.state {
		if e.TxnFirst >= 0 {
			b := before{pid: pid, first: e.TxnFirst, until: maxOffset}
			if x := r.producers.m[pid]; x != nil && x.ended {
				b.until = x.marker
			}
			open = append(open, b)
		}
	}
	slices.SortFunc(open, func(a, b before) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.pid, b.pid)) })
	var wrong, missing tally
	for i := range r.producers.aborts {
		a := &r.producers.aborts[i]
		first, data := a.first, a.data
		if e, ok := c.state[a.pid]; ok && a.inherit && e.TxnFirst >= 0 {
			first = e.TxnFirst
			if c.exact {
				data = first
			}
		}
		if a.entry == -1 {
			if data >= 0 {
				missing.add(0, 0, a.marker, "the transaction of producer %d from offset %d on, aborted at %d, has none", a.pid, first, a.marker)
			}
			continue
		}
		if a.entry < 0 || c.lost {
			continue // told of already, or a marker before may be what is missing
		}
		for len(open) > 0 && open[0].until <= a.marker {
			open = open[1:]
		}
		stable := a.marker + 1
		for _, o := range []storage.Offset{a.oldest, firstOpen(len(open), func(i int) storage.Offset { return open[i].first })} {
			if o >= 0 {
				stable = min(stable, o)
			}
		}
		e := r.txns[a.entry]
		switch {
		case data >= 0 && e.First > data, c.exact && e.First != first:
			wrong.add(a.entry, index.TxnEntrySize, e.Last, "the transaction of producer %d begins at offset %d, not %d", a.pid, first, e.First)
		case c.exact && e.Stable != stable:
			wrong.add(a.entry, index.TxnEntrySize, e.Last, "last stable offset %d, not %d", e.Stable, stable)
		}
	}
	if missing.n > 0 {
		missing.why = missing.why[len("entry 0: "):]
		c.v.emit(about(path, noticeIf(recovers), TxnIndexMissing, rebuildTxns, "an aborted transaction has no entry, so that its records are shown as committed: %s", missing.text()).at(0, missing.about))
	}
	if wrong.n > 0 {
		c.v.emit(about(path, noticeIf(recovers), TxnIndexEntry, rebuildTxns, "%s", wrong.text()).at(wrong.pos, wrong.about))
	}
}

func firstOpen(n int, at func(int) storage.Offset) storage.Offset {
	if n == 0 {
		return -1
	}
	return at(0)
}
