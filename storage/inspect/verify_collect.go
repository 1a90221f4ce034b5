package inspect

import (
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// collector takes the segments of a partition in order, and compares what no single one can tell.
type collector struct {
	v *verifier
	p *partPlan
	i int

	state map[int64]state.ProducerEntry // after the segments so far
	// exact says that state is all that a broker would know: the log is whole from its start, or from a snapshot on.
	exact     bool
	off       bool // too many producers
	end       storage.Offset
	any       bool
	epoch     int32
	epochs    bool // some batch has one
	compacted bool
	damaged   bool // the last segment is
	lost      bool // any is
	gaps      []Finding
	compared  map[storage.Offset]bool
}

func (v *verifier) newCollector(p *partPlan) *collector {
	v.sum.Partitions++
	for _, err := range p.errs {
		if len(v.errs) < maxErrors {
			v.errs = append(v.errs, err)
		}
	}
	v.emitAll(p.findings)
	c := &collector{v: v, p: p, state: map[int64]state.ProducerEntry{}, epoch: -1, compacted: p.compacts}
	if len(p.segments) > 0 {
		c.end = p.segments[0].base
		c.exact = c.end == 0
		for _, s := range p.snaps {
			if s.ok && s.offset == c.end && c.end > 0 {
				c.exact = true
				for _, e := range s.entries {
					c.state[e.ProducerID] = e
				}
			}
		}
	}
	return c
}

// segment takes the next segment.
func (c *collector) segment(r *segReport) {
	v, p := c.v, c.p
	s := &p.segments[c.i]
	c.i++
	c.snapshotsAt(s.base)
	v.sum.Segments++
	v.sum.Batches += r.batches
	v.sum.Records += r.records
	v.sum.Bytes += r.read
	v.emitAll(r.findings)
	for _, err := range r.errs {
		if len(v.errs) < maxErrors {
			v.errs = append(v.errs, err)
		}
	}
	log := join(p.dir, state.FileName(s.base, state.ExtLog))
	r.adopt.findings(log, v.emit)
	c.compacted = c.compacted || r.compacted || r.legacy
	if r.gaps > 0 {
		f := r.gap
		if r.gaps > 1 {
			f.Detail += fmt.Sprintf("; %d such places in the file", r.gaps)
		}
		c.gaps = append(c.gaps, f)
	}
	if c.any && s.base > c.end && !c.damaged {
		f := about(log, Notice, OffsetGap, "", "offsets %d to %d are missing before the segment", c.end, s.base-1).at(0, c.end)
		f.Next = s.base
		c.gaps = append(c.gaps, f)
	}
	if r.hasEpochs && c.epochs && r.firstEpoch < c.epoch {
		v.emit(about(log, Damage, EpochOrder, epochRepair, "leader epoch %d in the first batch, %d in a segment before", r.firstEpoch, c.epoch).at(0, s.base))
	}
	if r.hasEpochs {
		c.epochs, c.epoch = true, r.lastEpoch
	}
	c.exact = c.exact && r.gaps == 0 && r.bad == 0 && !r.compacted && !r.legacy && len(r.errs) == 0 && (s.base == c.end || !c.any)
	c.lost = c.lost || r.bad > 0 || len(r.errs) > 0
	c.producers(s, r)
	c.damaged = r.bad > 0 || len(r.errs) > 0
	if r.any || c.damaged {
		c.any = true
	}
	c.end = max(c.end, r.next)
	if r.next < s.base {
		c.end = s.base
	}
}

func (c *collector) producers(s *segPlan, r *segReport) {
	if c.off || r.producers == nil {
		c.off, c.exact, c.state = true, false, nil
		return
	}
	mixed, found := int64(0), false
	for pid, x := range r.producers.m {
		if e, ok := c.state[pid]; ok && e.TxnFirst >= 0 && x.plain >= 0 && (!found || x.plain < r.producers.m[mixed].plain) {
			mixed, found = pid, true
		}
	}
	if found {
		c.v.emit(mixedFinding(join(c.p.dir, state.FileName(s.base, state.ExtLog)), mixed).at(0, r.producers.m[mixed].plain))
	}
	c.txns(s, r)
	for _, o := range s.snaps {
		mid := r.mid[o]
		if mid == nil || o >= r.next {
			continue
		}
		at := make(map[int64]state.ProducerEntry, len(c.state))
		for pid, e := range c.state {
			at[pid] = e
		}
		mid.apply(at)
		c.snapshots(o, at)
	}
	r.producers.apply(c.state)
	if len(c.state) > maxProducers {
		c.off, c.exact, c.state = true, false, nil
	}
}

const epochRepair = "remove leader-epoch-checkpoint, so that it is rebuilt, if the batches are right"

// checkEpoch compares a batch's leader epoch with the one before and with leader-epoch-checkpoint.
func (c *segCheck) checkEpoch(h *record.Header, pos storage.Pos) {
	e := h.LeaderEpoch
	if e < -1 {
		c.once(about(c.log, Damage, EpochMismatch, "", "leader epoch %d", e).at(pos, h.BaseOffset))
	}
	if e < 0 {
		return
	}
	r := c.r
	if !r.hasEpochs {
		r.firstEpoch, r.hasEpochs = e, true
	} else if e < r.lastEpoch {
		c.once(about(c.log, Damage, EpochOrder, epochRepair, "leader epoch %d behind %d", e, r.lastEpoch).at(pos, h.BaseOffset))
	}
	r.lastEpoch = e
	list := c.p.epochs
	for c.epoch+1 < len(list) && list[c.epoch+1].Start <= h.BaseOffset {
		c.epoch++
	}
	if c.epoch < 0 || list[c.epoch].Epoch == e {
		return
	}
	newer := c.epoch == len(list)-1 && e > list[c.epoch].Epoch && c.recovers
	c.once(about(c.log, noticeIf(newer), EpochMismatch, epochRepair, "leader epoch %d, where %s says %d from offset %d on", e, state.EpochsFile, list[c.epoch].Epoch, list[c.epoch].Start).at(pos, h.BaseOffset))
}

// finish compares the small files with the log as a whole.
func (c *collector) finish() {
	v, p := c.v, c.p
	if !c.compacted {
		v.emitAll(c.gaps)
	}
	c.topicID()
	if len(p.segments) == 0 {
		return
	}
	c.snapshotsAt(c.end)
	c.snapshotsAhead()
	c.points()
	name := join(p.dir, state.EpochsFile)
	if last, ok := p.epochs.Last(); ok && last.Start > c.end {
		v.emit(about(name, Notice, EpochsAhead, "a start removes the entries", "epoch %d starts at offset %d, the log ends at %d", last.Epoch, last.Start, c.end))
	}
	if p.noEpochs && c.epochs {
		v.emit(about(name, noticeIf(!p.adopt), EpochsMissing, "the next start rebuilds it", "batches carry leader epochs, the file is missing or has no entry"))
	}
	if p.adopt && !c.off {
		if e, ok := oldestOpen(c.state); ok {
			v.emit(about(p.dir, Damage, AdoptOpenTxn, "end the transaction on the cluster that it comes from, or leave its records out",
				"producer %d has a transaction open since offset %d: readers of committed records stop there for ever", e.ProducerID, e.TxnFirst).at(0, e.TxnFirst))
		}
	}
}

// oldestOpen returns the producer with the oldest open transaction.
func oldestOpen(s map[int64]state.ProducerEntry) (oldest state.ProducerEntry, ok bool) {
	for _, e := range s {
		if e.TxnFirst >= 0 && (!ok || e.TxnFirst < oldest.TxnFirst || e.TxnFirst == oldest.TxnFirst && e.ProducerID < oldest.ProducerID) {
			oldest, ok = e, true
		}
	}
	return oldest, ok
}

func (c *collector) topicID() {
	p, v := c.p, c.v
	if p.topicID == "" {
		return
	}
	path := join(p.dir, state.MetadataFile)
	if cat := v.top.catalog; cat != nil && !v.top.broker {
		if t, ok := cat.Topics[p.tp.Topic]; ok && p.tp.Partition < t.Partitions {
			if t.ID != p.topicID {
				v.emit(about(path, Damage, TopicID, "write the topic's id into it", "topic id %s, %s says %s", p.topicID, state.TopicsFile, t.ID))
			}
			return
		}
	}
	if v.ids == nil {
		v.ids = map[string]string{}
	}
	if first, ok := v.ids[p.tp.Topic]; ok && first != p.topicID {
		v.emit(about(path, Damage, TopicID, "write the topic's id into it", "topic id %s, another partition of the topic has %s", p.topicID, first))
		return
	}
	v.ids[p.tp.Topic] = p.topicID
}

// points compares the checkpoints with the end of the log.
func (c *collector) points() {
	v, p := c.v, c.p
	if c.damaged && c.end == p.segments[len(p.segments)-1].base && !c.any {
		return
	}
	for _, name := range checkpointFiles {
		o, ok := v.top.point(name, p.tp)
		if !ok || o <= c.end {
			continue
		}
		sev, repair := Damage, "set it to the end of the log"
		switch name {
		case state.CleanerOffsetFile:
			sev = Notice
		case state.HighWatermarkFile:
			sev = noticeIf(!p.clean)
		case state.LogStartFile:
			repair += ": as it is a broker deletes every segment"
		}
		v.emit(about(name, sev, CheckpointAhead, repair, "%s: offset %d, the log ends at %d", p.tp, o, c.end).at(0, o))
	}
}
