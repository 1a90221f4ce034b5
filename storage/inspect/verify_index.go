package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// posIn returns the position that a corruption error names.
func posIn(err error) storage.Pos {
	var ce *storage.CorruptError
	if errors.As(err, &ce) {
		return ce.Pos
	}
	return 0
}

func posOf(n int64) storage.Pos { return storage.Pos(n) }

// offsetCheck compares an offset index with its log while that is read.
type offsetCheck struct {
	side  *side
	i     int // number of the entry below
	e     index.OffsetEntry
	have  bool
	last  index.OffsetEntry // the entry before
	wrong tally
	older tally // entries of a whole append of several batches
	wait  bool  // the last entry names an offset behind the batch at its position
	waitE index.OffsetEntry
	waitI int
}

// tally remembers the first of several like places.
type tally struct {
	n     int
	pos   storage.Pos
	about storage.Offset
	why   string
}

func (t *tally) add(i int, size int, o storage.Offset, format string, args ...any) {
	if t.n == 0 {
		t.pos, t.about = storage.Pos(i*size), o
		t.why = fmt.Sprintf("entry %d: ", i) + fmt.Sprintf(format, args...)
	}
	t.n++
}

func (t *tally) text() string {
	if t.n > 1 {
		return fmt.Sprintf("%s; %d such entries", t.why, t.n)
	}
	return t.why
}

// tell makes a finding of what was counted.
func (c *segCheck) tell(path string, t *tally, sev Severity, what What, repair string) {
	if t.n > 0 {
		c.r.add(about(path, sev, what, repair, "%s", t.text()).at(t.pos, t.about))
	}
}

// advance reads the next entry that is in order.
func (x *offsetCheck) advance(c *segCheck) {
	x.have = false
	var b [index.OffsetEntrySize]byte
	for {
		ok, err := x.side.next(b[:])
		if err != nil {
			c.r.failed(x.side.path, err)
		}
		if !ok {
			return
		}
		rel, pos := int32(binary.BigEndian.Uint32(b[:])), int32(binary.BigEndian.Uint32(b[4:]))
		x.e = index.OffsetEntry{Offset: c.s.base + storage.Offset(rel), Pos: storage.Pos(pos)}
		x.i++
		i := x.i - 1
		switch {
		case rel < 0 || pos < 0:
			x.wrong.add(i, index.OffsetEntrySize, -1, "relative offset %d, position %d", rel, pos)
		case i > 0 && (x.e.Offset <= x.last.Offset || x.e.Pos <= x.last.Pos):
			x.wrong.add(i, index.OffsetEntrySize, x.e.Offset, "offset %d at %d is not behind offset %d at %d", x.e.Offset, x.e.Pos, x.last.Offset, x.last.Pos)
		default:
			x.last, x.have = x.e, true
			return
		}
	}
}

// take compares the entries up to the batch at pos, whose offsets are known to be right.
func (x *offsetCheck) take(c *segCheck, h *record.Header, pos storage.Pos) {
	x.settle(h)
	for x.have && x.e.Pos < pos {
		if x.e.Pos < c.bad.from || x.e.Pos >= c.bad.end { // else it leads into a damaged stretch, which has been told of
			x.wrong.add(x.i-1, index.OffsetEntrySize, x.e.Offset, "offset %d at position %d, where no batch starts", x.e.Offset, x.e.Pos)
		}
		x.advance(c)
	}
	if !x.have || x.e.Pos != pos {
		return
	}
	switch {
	case x.e.Offset == h.LastOffset():
	case x.e.Offset < c.low || x.e.Offset < h.BaseOffset:
		x.wrong.add(x.i-1, index.OffsetEntrySize, x.e.Offset, "offset %d at position %d, where the batch of offsets %d to %d is", x.e.Offset, pos, h.BaseOffset, h.LastOffset())
	case x.e.Offset == h.BaseOffset: // as very old brokers wrote them
		x.older.add(x.i-1, index.OffsetEntrySize, x.e.Offset, "offset %d is the first one of the batch up to %d", x.e.Offset, h.LastOffset())
	case x.e.Offset < h.LastOffset():
		x.wrong.add(x.i-1, index.OffsetEntrySize, x.e.Offset, "offset %d is inside the batch of offsets %d to %d", x.e.Offset, h.BaseOffset, h.LastOffset())
	default:
		x.wait, x.waitE, x.waitI = true, x.e, x.i-1
	}
	x.advance(c)
}

// settle decides on an entry whose offset lies behind the batch that it leads to: older brokers wrote the last offset of a whole append.
func (x *offsetCheck) settle(h *record.Header) {
	if !x.wait || h.LastOffset() < x.waitE.Offset {
		return
	}
	x.wait = false
	if h.LastOffset() == x.waitE.Offset {
		x.older.add(x.waitI, index.OffsetEntrySize, x.waitE.Offset, "offset %d is the last one of several batches from position %d on", x.waitE.Offset, x.waitE.Pos)
		return
	}
	x.wrong.add(x.waitI, index.OffsetEntrySize, x.waitE.Offset, "offset %d at position %d is the last one of no batch", x.waitE.Offset, x.waitE.Pos)
}

// finish tells what was found.
func (x *offsetCheck) finish(c *segCheck) {
	var ahead tally
	if x.wait {
		x.wrong.add(x.waitI, index.OffsetEntrySize, x.waitE.Offset, "offset %d at position %d is behind the end of the segment", x.waitE.Offset, x.waitE.Pos)
	}
	for x.have {
		if x.e.Pos >= c.goodEnd && (x.e.Pos < c.bad.from || x.e.Pos >= c.bad.end) {
			ahead.add(x.i-1, index.OffsetEntrySize, x.e.Offset, "position %d is behind the end of the log, %d", x.e.Pos, c.goodEnd)
		} else if x.e.Pos < c.goodEnd {
			x.wrong.add(x.i-1, index.OffsetEntrySize, x.e.Offset, "offset %d at position %d, where no batch starts", x.e.Offset, x.e.Pos)
		}
		x.advance(c)
	}
	path := x.side.path
	c.tell(path, &x.wrong, Damage, IndexEntry, rebuildIndexes)
	c.tell(path, &x.older, Notice, IndexInexact, "")
	c.tell(path, &ahead, noticeIf(c.recovers), IndexAhead, rebuildIndexes)
}
