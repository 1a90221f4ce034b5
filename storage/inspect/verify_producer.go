package inspect

import (
	"maps"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

const (
	// maxProducers bounds what is remembered of the producers of a segment, and of a log.
	maxProducers = 1 << 20
	// maxAborts bounds how many aborted transactions of a segment are remembered.
	maxAborts = 1 << 21
	// maxMidSnapshots bounds how many snapshots inside a segment are compared with it.
	maxMidSnapshots = 8
)

// producer is what the batches of a stretch of a log change for one producer.
type producer struct {
	epoch   int16
	changed bool // the epoch changed inside the stretch
	data    bool // there are data batches of the present epoch
	seq     int32
	last    storage.Offset
	delta   int32
	time    int64
	coord   int32 // -1 where there was no marker
	plain   storage.Offset
	// Transactions. The first marker ends one that began before the stretch, if there was one, and no earlier data of the stretch.
	marker storage.Offset // the first one that ends no transaction begun in the stretch, -1 where there is none
	ended  bool           // there was a marker
	open   *openTxn       // begun in the stretch, behind the last marker
}

// openTxn is a transaction that has begun.
type openTxn struct {
	pid    int64
	first  storage.Offset
	data   storage.Offset // first offset of a batch that still has records; -1 where there is none
	closed bool
}

// abort is an aborted transaction as a segment's batches tell.
type abort struct {
	pid     int64
	marker  storage.Offset
	first   storage.Offset // -1 where it began before the segment, or has no data
	data    storage.Offset // first record of it in the segment, -1 where there is none
	inherit bool           // the first marker of its producer in the segment
	oldest  storage.Offset // first offset of the oldest other transaction begun in the segment and open at the marker; -1 where there is none
	entry   int            // in the transaction index; -1 where it has none
}

// producers is what a stretch of a log does to the producers.
type producers struct {
	m      map[int64]*producer
	queue  []*openTxn // in the order of their first offsets; closed ones are dropped in time
	open   int
	aborts []abort
	full   bool // too much to remember
}

func newProducers() *producers { return &producers{m: map[int64]*producer{}} }

func (p *producers) get(h *record.Header) *producer {
	x := p.m[h.ProducerID]
	if x == nil {
		if len(p.m) >= maxProducers {
			p.full = true
		}
		x = &producer{epoch: h.ProducerEpoch, seq: -1, last: -1, time: -1, coord: -1, marker: -1, plain: -1}
		p.m[h.ProducerID] = x
	}
	if x.epoch != h.ProducerEpoch {
		x.epoch, x.changed = h.ProducerEpoch, true
		x.data, x.seq, x.last, x.delta = false, -1, -1, 0
	}
	return x
}

// batch takes a data batch of a producer; mixed reports that it is outside the transaction that the producer has open.
func (p *producers) batch(h *record.Header, records bool) (mixed bool) {
	x := p.get(h)
	x.data, x.last, x.delta, x.time = true, h.LastOffset(), h.LastOffsetDelta, h.MaxTimestamp
	x.seq = -1
	if h.BaseSequence >= 0 {
		x.seq = int32((int64(h.BaseSequence) + int64(h.LastOffsetDelta)) & 0x7fffffff)
	}
	if !h.Attributes.Transactional() {
		if !x.ended && x.open == nil && x.plain < 0 {
			x.plain = h.BaseOffset
		}
		return x.open != nil
	}
	if x.open == nil {
		x.open = &openTxn{pid: h.ProducerID, first: h.BaseOffset, data: -1}
		p.push(x.open)
	}
	if records && x.open.data < 0 {
		x.open.data = h.BaseOffset
	}
	return false
}

func (p *producers) push(t *openTxn) {
	p.open++
	if len(p.queue) > 2*p.open+1024 {
		kept := p.queue[:0]
		for _, q := range p.queue {
			if !q.closed {
				kept = append(kept, q)
			}
		}
		clear(p.queue[len(kept):])
		p.queue = kept
	}
	p.queue = append(p.queue, t)
}

// oldest returns the first offset of the oldest open transaction, -1 where there is none.
func (p *producers) oldest() storage.Offset {
	for len(p.queue) > 0 && p.queue[0].closed {
		p.queue = p.queue[1:]
	}
	if len(p.queue) == 0 {
		return -1
	}
	return p.queue[0].first
}

// end takes the marker at the end of a transaction.
func (p *producers) end(h *record.Header, c record.ControlRecord, entry func(pid int64) int) {
	x := p.get(h)
	x.coord, x.time = c.CoordinatorEpoch, h.MaxTimestamp
	t := x.open
	inherit := !x.ended
	if t != nil {
		t.closed, x.open = true, nil
		p.open--
	}
	if inherit {
		x.marker = h.BaseOffset
	}
	x.ended = true
	if c.Type != record.Abort {
		return
	}
	a := abort{pid: h.ProducerID, marker: h.BaseOffset, first: -1, data: -1, inherit: inherit, oldest: p.oldest(), entry: entry(h.ProducerID)}
	if t != nil {
		a.first, a.data = t.first, t.data
	}
	if len(p.aborts) >= maxAborts {
		p.full = true
		return
	}
	p.aborts = append(p.aborts, a)
}

// clone returns a copy that does not change with p; of its transactions only which are open.
func (p *producers) clone() *producers {
	q := &producers{m: maps.Clone(p.m), full: p.full}
	for pid, x := range q.m {
		y := *x
		q.m[pid] = &y
	}
	return q
}

// apply changes the state of producers as the stretch does.
func (p *producers) apply(s map[int64]state.ProducerEntry) {
	for pid, x := range p.m {
		e, had := s[pid]
		if !had {
			e = state.ProducerEntry{ProducerID: pid, Epoch: x.epoch, LastSequence: -1, LastOffset: -1, Timestamp: -1, CoordinatorEpoch: -1, TxnFirst: -1}
		}
		if x.data || x.changed || e.Epoch != x.epoch {
			e.LastSequence, e.LastOffset, e.OffsetDelta = x.seq, x.last, x.delta
		}
		e.Epoch, e.Timestamp = x.epoch, x.time
		if x.coord >= 0 {
			e.CoordinatorEpoch = x.coord
		}
		if x.ended {
			e.TxnFirst = -1
		}
		if x.open != nil && e.TxnFirst < 0 {
			e.TxnFirst = x.open.first
		}
		s[pid] = e
	}
}

// crossing keeps the state of producers as it is at snapshots up to o, where the next batch starts.
func (c *segCheck) crossing(o storage.Offset) {
	for _, s := range c.s.snaps {
		if s > o || s < c.low || c.r.mid[s] != nil || c.r.producers == nil {
			continue
		}
		c.r.mid[s] = c.r.producers.clone()
	}
}

// checkProducer follows a batch's producer and its transactions.
func (c *segCheck) checkProducer(h *record.Header, pos storage.Pos, sums record.Sums) {
	p := c.r.producers
	if h.ProducerID < 0 || p == nil {
		return
	}
	switch {
	case !h.Attributes.Control():
		if p.batch(h, sums.Records > 0) {
			c.once(mixedFinding(c.log, h.ProducerID).at(pos, h.BaseOffset))
		}
	case sums.Records > 0 && (c.ctl.Type == record.Abort || c.ctl.Type == record.Commit):
		p.end(h, c.ctl, func(pid int64) int { return c.txnEntry(h.BaseOffset, pid) })
	}
	if p.full {
		c.r.producers, c.r.mid = nil, nil
		c.r.add(about(c.log, Notice, NotChecked, "", "more producers or aborted transactions than are kept in memory: those of the partition are not verified"))
	}
}

func mixedFinding(log string, pid int64) Finding {
	return about(log, Damage, TxnMixed, "abort the transaction with a broker that still runs, or cut the log before the batch",
		"producer %d has a transaction open and writes a batch outside it: a broker that recovers the log does not start", pid)
}

// control checks a control record and keeps it for checkProducer.
func (c *segCheck) control(rec *storage.Record) error {
	ctl, err := record.ParseControl(rec)
	if err == nil {
		c.ctl = ctl
	}
	return err
}

// txnEntry returns the entry of the transaction index for the abort marker at o, or -1. Entries before it have no marker.
func (c *segCheck) txnEntry(o storage.Offset, pid int64) int {
	for c.txn < len(c.r.txns) && c.r.txns[c.txn].Last < o {
		c.strayTxn(c.r.txns[c.txn])
		c.txn++
	}
	if c.txn == len(c.r.txns) || c.r.txns[c.txn].Last != o {
		return -1
	}
	c.txn++
	if e := c.r.txns[c.txn-1]; e.ProducerID != pid {
		c.txnWrong.add(c.txn-1, index.TxnEntrySize, o, "the marker at offset %d is of producer %d, the entry names %d", o, pid, e.ProducerID)
		return -2
	}
	return c.txn - 1
}

// strayTxn counts an entry without a marker, unless the marker may have been in a damaged stretch.
func (c *segCheck) strayTxn(e index.TxnEntry) {
	if c.r.bad > 0 {
		return
	}
	c.txnWrong.add(c.txn, index.TxnEntrySize, e.Last, "there is no abort marker of producer %d at offset %d", e.ProducerID, e.Last)
}
