package inspect

import (
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// snapshotsAt compares the snapshot that goes up to o with the state there; those below o that could not be compared are passed over.
func (c *collector) snapshotsAt(o storage.Offset) {
	if c.off || c.i == 0 && !c.any && o == c.p.segments[0].base {
		return // it is what the state began with
	}
	c.snapshots(o, c.state)
}

// snapshots compares the snapshot that goes up to o with the producers as the log has them there.
func (c *collector) snapshots(o storage.Offset, at map[int64]state.ProducerEntry) {
	i := slices.IndexFunc(c.p.snaps, func(s snapFile) bool { return s.offset == o })
	if i < 0 || !c.p.snaps[i].ok || c.compared[o] {
		return
	}
	s := &c.p.snaps[i]
	if c.compared == nil {
		c.compared = map[storage.Offset]bool{}
	}
	c.compared[o] = true
	var wrong tally
	named := map[int64]bool{}
	for i := range s.entries {
		e := &s.entries[i]
		named[e.ProducerID] = true
		pos := 10 + 46*i
		why := c.snapshotEntry(s, e, at)
		if why != "" {
			wrong.add(i, 0, e.LastOffset, "producer %d: %s", e.ProducerID, why)
			if wrong.n == 1 {
				wrong.pos = storage.Pos(pos)
			}
		}
	}
	if c.exact {
		left := map[int64]state.ProducerEntry{}
		for pid, e := range at {
			if !named[pid] { // those without a transaction may have expired
				left[pid] = e
			}
		}
		if e, ok := oldestOpen(left); ok {
			wrong.add(0, 0, e.TxnFirst, "producer %d has a transaction open since offset %d and is missing", e.ProducerID, e.TxnFirst)
		}
	}
	if wrong.n > 0 {
		c.v.emit(about(s.path, noticeIf(!c.p.clean), SnapshotMismatch, "remove the snapshots of the partition, and the clean marker: the log is read instead", "%s", wrong.text()).at(wrong.pos, wrong.about))
	}
}

// snapshotEntry says what is wrong with an entry.
func (c *collector) snapshotEntry(s *snapFile, e *state.ProducerEntry, at map[int64]state.ProducerEntry) string {
	l, ok := at[e.ProducerID]
	switch {
	case e.LastOffset >= s.offset:
		return "its last batch lies behind the snapshot"
	case e.TxnFirst >= s.offset:
		return "its transaction begins behind the snapshot"
	case !c.exact:
		return ""
	case !ok:
		return "the log has no batch of it"
	case e.Epoch != l.Epoch:
		return "its epoch is not that of its last batch"
	case e.TxnFirst != l.TxnFirst:
		return "its open transaction is not that of the log"
	case e.LastOffset >= 0 && (e.LastOffset != l.LastOffset || e.LastSequence != l.LastSequence || e.OffsetDelta != l.OffsetDelta):
		return "its last batch is not that of the log"
	case e.CoordinatorEpoch >= 0 && e.CoordinatorEpoch != l.CoordinatorEpoch:
		return "its coordinator epoch is not that of its last marker"
	}
	return ""
}

// producersLeft reports whether a broker knows of producers: it forgets those of whom the log has nothing above its start.
func (c *collector) producersLeft() bool {
	for _, e := range c.state {
		if c.p.start <= 0 || e.Open() || e.LastOffset >= c.p.start {
			return true
		}
	}
	return false
}

// snapshotsAhead tells of snapshots that lie behind the end, and of a log with producers that has none.
func (c *collector) snapshotsAhead() {
	some := false
	for i := range c.p.snaps {
		s := &c.p.snaps[i]
		if s.offset > c.end {
			c.v.emit(about(s.path, Notice, SnapshotAhead, "a start removes it", "it goes up to offset %d, the log ends at %d", s.offset, c.end))
		}
		some = some || s.ok
	}
	if some || !c.p.clean || c.off || !c.producersLeft() {
		return
	}
	_, open := oldestOpen(c.state)
	c.v.emit(about(c.p.dir, noticeIf(!open), SnapshotMissing, "remove the clean marker: the log is read then",
		"the log has producers and there is no snapshot: a broker that starts forgets them, and open transactions too"))
}
