package inspect

import (
	"errors"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// sizeCheck compares a size index with its log while that is read.
type sizeCheck struct {
	path    string
	h       index.SizeHeader
	entries index.SizeEntries
	i       int
	sums    index.Sums // of the log so far
	foreign bool       // the first or last batch is another one
	wrong   tally
}

func (c *segCheck) openSizes() {
	path := c.path(state.ExtSizeIndex)
	b, ok, err := c.v.read(path)
	if err != nil && !errors.Is(err, vfs.ErrTooBig) {
		c.r.failed(path, err)
		return
	}
	x := &sizeCheck{path: path}
	if err == nil && !ok {
		return // rebuilt, or dropped, at this moment
	}
	if err == nil {
		x.h, x.entries, err = index.DecodeSizes(b, c.s.base)
	}
	if err != nil {
		c.r.add(about(path, Notice, SizeIndexStale, "rebuilt without being asked", "%v", index.At(path, err)))
		return
	}
	c.sizes = x
}

// take compares what is said about the batch at pos.
func (x *sizeCheck) take(h *record.Header, pos storage.Pos, sums index.Sums) {
	if pos == x.h.FirstPos && h.CRC != x.h.FirstCRC || pos == x.h.LastPos && h.CRC != x.h.LastCRC {
		x.foreign = true
	}
	for x.i < len(x.entries) && x.entries[x.i].Pos <= pos {
		if e := &x.entries[x.i]; e.Pos != pos || e.Offset != h.BaseOffset || e.Before != x.sums {
			x.wrong.add(x.i, index.SizeEntrySize, e.Offset, "offset %d at position %d with %v before it; the log has offset %d at %d with %v", e.Offset, e.Pos, e.Before, h.BaseOffset, pos, x.sums)
		}
		x.i++
	}
	x.sums = x.sums.Plus(sums)
}

func (x *sizeCheck) finish(c *segCheck, size int64) {
	switch {
	case x.foreign || x.h.LogSize != size || x.h.NextOffset != c.low:
		c.r.add(about(x.path, Notice, SizeIndexStale, "rebuilt without being asked", "made for another state of the log: %d bytes up to offset %d; it has %d up to %d",
			x.h.LogSize, x.h.NextOffset, size, c.low))
	case c.r.bad > 0: // what damage does to the sums is not its fault
	case x.wrong.n > 0:
		c.tell(x.path, &x.wrong, Damage, SizeIndexWrong, "remove it")
	case x.h.Total != x.sums:
		c.r.add(about(x.path, Damage, SizeIndexWrong, "remove it", "the sums are %v, those of the log %v", x.h.Total, x.sums))
	}
}
