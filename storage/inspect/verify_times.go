package inspect

import (
	"encoding/binary"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// timeCheck compares a time index with its log while that is read.
type timeCheck struct {
	side  *side
	i     int
	e     index.TimeEntry
	have  bool
	last  index.TimeEntry // the entry before
	max   index.TimeEntry // largest timestamp of the log so far, and the last offset of the first batch that had it
	wrong tally
	older tally
}

func newTimeCheck(s *side) *timeCheck {
	none := index.TimeEntry{Timestamp: storage.NoTimestamp, Offset: -1}
	return &timeCheck{side: s, last: none, max: none}
}

// advance reads the next entry that is in order.
func (x *timeCheck) advance(c *segCheck) {
	x.have = false
	var b [index.TimeEntrySize]byte
	for {
		ok, err := x.side.next(b[:])
		if err != nil {
			c.r.failed(x.side.path, err)
		}
		if !ok {
			return
		}
		rel := int32(binary.BigEndian.Uint32(b[8:]))
		x.e = index.TimeEntry{Timestamp: int64(binary.BigEndian.Uint64(b[:])), Offset: c.s.base + storage.Offset(rel)}
		x.i++
		i := x.i - 1
		switch {
		case rel < 0 || x.e.Timestamp < 0:
			x.wrong.add(i, index.TimeEntrySize, -1, "timestamp %d, relative offset %d", x.e.Timestamp, rel)
		case i > 0 && (x.e.Timestamp <= x.last.Timestamp || x.e.Offset < x.last.Offset):
			x.wrong.add(i, index.TimeEntrySize, x.e.Offset, "timestamp %d of offset %d is not behind timestamp %d of offset %d",
				x.e.Timestamp, x.e.Offset, x.last.Timestamp, x.last.Offset)
		default:
			x.last, x.have = x.e, true
			return
		}
	}
}

// take compares the entries up to the end of a batch.
func (x *timeCheck) take(c *segCheck, h *record.Header) {
	before := x.max.Timestamp
	if h.MaxTimestamp > before {
		x.max = index.TimeEntry{Timestamp: h.MaxTimestamp, Offset: h.LastOffset()}
	}
	for x.have && x.e.Offset <= h.LastOffset() {
		switch {
		case x.e == x.max:
		case x.e.Offset >= h.BaseOffset && x.e.Timestamp == h.MaxTimestamp && x.e.Timestamp > before:
			x.older.add(x.i-1, index.TimeEntrySize, x.e.Offset, "offset %d is not the last one of the batch of offsets %d to %d", x.e.Offset, h.BaseOffset, h.LastOffset())
		case x.e.Offset < h.BaseOffset && c.holes: // the batch was in a damaged stretch
		default:
			x.wrong.add(x.i-1, index.TimeEntrySize, x.e.Offset, "timestamp %d of offset %d, where the largest timestamp is %d, first at offset %d",
				x.e.Timestamp, x.e.Offset, x.max.Timestamp, x.max.Offset)
		}
		x.advance(c)
	}
}

// finish tells what was found.
func (x *timeCheck) finish(c *segCheck) {
	var ahead tally
	for x.have {
		if !c.holes { // else the end of the log is damaged, and so told of
			ahead.add(x.i-1, index.TimeEntrySize, x.e.Offset, "offset %d is behind the end of the segment, %d", x.e.Offset, c.low)
		}
		x.advance(c)
	}
	path := x.side.path
	c.tell(path, &x.wrong, Damage, TimeIndexEntry, rebuildIndexes)
	c.tell(path, &x.older, Notice, TimeIndexInexact, "")
	c.tell(path, &ahead, noticeIf(c.recovers), TimeIndexAhead, rebuildIndexes)
	if x.max.Timestamp > x.last.Timestamp && x.wrong.n == 0 && c.r.bad == 0 && (!c.s.active || c.p.clean) {
		c.r.add(about(path, noticeIf(c.recovers), TimeIndexClosing, rebuildIndexes, "the last entry is of timestamp %d, the largest timestamp of the segment is %d: searches by time pass it over",
			x.last.Timestamp, x.max.Timestamp).at(0, x.max.Offset))
	}
}
