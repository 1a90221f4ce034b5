package repair

import (
	"bytes"
	"encoding/binary"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/state"
)

// derived are the files beside a log as they should be, by their extensions. nil is a file that should not be there.
type derived map[string][]byte

// derivedExts is the order in which derived files are written. .index comes last: it is its absence that makes a broker rebuild all of them.
var derivedExts = []string{state.ExtTimeIndex, state.ExtTxnIndex, state.ExtSizeIndex, state.ExtIndex}

// settings are those of a topic that indexes depend on.
type settings struct {
	interval int64 // index.interval.bytes; below 0 it is to be found out from the indexes that are there
	maxIndex int64 // segment.index.bytes
	sizes    bool  // the partition has size indexes
}

// derive makes the files beside a log. The time index has its closing entry, as that of every segment that was closed or recovered.
func (r *logScan) derive(base storage.Offset, s settings) (derived, error) {
	b := index.NewBuilder(base, s.interval, s.maxIndex)
	d := derived{state.ExtIndex: {}, state.ExtTimeIndex: {}, state.ExtTxnIndex: nil, state.ExtSizeIndex: nil}
	addTime := func(te index.TimeEntry, err error) error {
		if err == nil {
			d[state.ExtTimeIndex], err = index.AppendTimeEntry(d[state.ExtTimeIndex], base, te)
		}
		return err
	}
	for i := range r.batches {
		x := &r.batches[i]
		hasOffset, oe, hasTime, te := b.Add(x.last(), x.maxTs, x.pos, int64(x.size))
		var err error
		if hasOffset {
			d[state.ExtIndex], err = index.AppendOffsetEntry(d[state.ExtIndex], base, oe)
		}
		if hasTime {
			err = addTime(te, err)
		}
		if err != nil {
			return nil, err
		}
	}
	if te, ok := b.Close(); ok {
		if err := addTime(te, nil); err != nil {
			return nil, err
		}
	}
	for _, e := range r.aborted {
		d[state.ExtTxnIndex] = index.AppendTxnEntry(d[state.ExtTxnIndex], e)
	}
	if s.sizes && len(r.batches) > 0 {
		d[state.ExtSizeIndex] = index.EncodeSizes(r.header, r.sizes.Entries())
	}
	return d, nil
}

// same compares a derived file with what it should be. While a segment may still be written to, zeros behind the entries are how it is preallocated, and
// the time index lacks the closing entry.
func same(ext string, got, want []byte, growing bool) bool {
	if (got == nil) != (want == nil) {
		return false
	}
	if bytes.Equal(got, want) {
		return true
	}
	switch ext {
	case state.ExtSizeIndex:
		return sameSizes(got, want)
	case state.ExtIndex:
		return growing && len(got) > len(want) && bytes.HasPrefix(got, want) && zero(got[len(want):])
	case state.ExtTimeIndex:
		if !growing {
			return false
		}
		if open := len(want) - index.TimeEntrySize; open >= 0 && bytes.HasPrefix(got, want[:open]) && zero(got[open:]) {
			return true
		}
		return len(got) > len(want) && bytes.HasPrefix(got, want) && zero(got[len(want):])
	}
	return false
}

// sameSizes compares size indexes but for the largest timestamp, which is not always known when one is written, and for the log's modification time: one
// that does not fit it is built anew by whoever uses it.
func sameSizes(got, want []byte) bool {
	if len(got) != len(want) || len(got) < index.SizeHeaderSize {
		return false
	}
	if _, err := index.CheckSizes(got, storage.Offset(binary.BigEndian.Uint64(got[16:]))); err != nil {
		return false
	}
	return bytes.Equal(got[12:88], want[12:88]) && bytes.Equal(got[index.SizeHeaderSize:], want[index.SizeHeaderSize:])
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// boundsOf says which interval the offset index of a scanned segment was made with.
func (d *disk) boundsOf(dir string, g SegmentFiles, r *logScan) bounds {
	b, err := d.readOr(join(dir, state.FileName(g.Base, state.ExtIndex)), nil)
	if err != nil || b == nil {
		return anyInterval
	}
	return r.bounds(b, g.Base)
}
