package index

import (
	"math"

	"github.com/logmount/logmount/storage"
)

// Builder decides which batches of a segment get entries in its offset and time index. It is fed with every batch in the order of the log, and it is the
// one rule for the writer, for recovery and for the tools, so that their files are the same byte for byte.
//
// It is a small value: a writer copies it, adds to the copy, and keeps the copy once the bytes are in the log.
type Builder struct {
	Base          storage.Offset // base offset of the segment
	Interval      int64          // bytes of log after which a batch gets an entry
	MaxIndexBytes int64          // largest size of either file; 0 is no limit

	nOffsets, nTimes int
	lastOffset       OffsetEntry
	lastTime         TimeEntry
	max              TimeEntry // largest timestamp so far
	bytesSince       int64     // bytes of log since the start of the last batch that got an entry
}

// NewBuilder returns the Builder of an empty segment.
func NewBuilder(base storage.Offset, interval, maxIndexBytes int64) Builder {
	none := TimeEntry{Timestamp: storage.NoTimestamp, Offset: base}
	return Builder{Base: base, Interval: interval, MaxIndexBytes: maxIndexBytes, lastOffset: OffsetEntry{Offset: base}, lastTime: none, max: none}
}

// ResumeBuilder returns the Builder as it stood after a segment's batches. The time index must be as these batches gave it, without a closing entry: see
// TimesKept. maxTs is their largest timestamp and maxTsOffset the last offset of the first batch that had it, or -1 and base; bytesSince is the log's size
// less the position of the last offset entry, or the log's size where there is none.
func ResumeBuilder(base storage.Offset, interval, maxIndexBytes int64, nOffsets int, lastOffset OffsetEntry, nTimes int, lastTime TimeEntry,
	maxTs int64, maxTsOffset storage.Offset, bytesSince int64,
) Builder {
	b := NewBuilder(base, interval, maxIndexBytes)
	b.bytesSince = bytesSince
	if nOffsets > 0 {
		b.nOffsets, b.lastOffset = nOffsets, lastOffset
	}
	if nTimes > 0 {
		b.nTimes, b.lastTime = nTimes, lastTime
	}
	if maxTs > b.max.Timestamp {
		b.max = TimeEntry{Timestamp: maxTs, Offset: maxTsOffset}
	}
	return b
}

// TimesKept returns how many entries of a time index a rebuild would give for a segment that goes on: all but the closing one. An entry that was added
// together with one of the offset index is not above that one's offset; only a closing entry is above the last.
func TimesKept(o Offsets, t Times) (int, error) {
	if o.N == 0 || t.N == 0 {
		return 0, nil
	}
	last, err := o.Entry(o.N - 1)
	if err != nil {
		return 0, err
	}
	_, i, err := t.FloorOffset(last.Offset)
	return i + 1, err
}

// Add takes the next batch and says which entries to append. pos is where it starts, size its bytes. No entry is given that would make an index larger
// than MaxIndexBytes or that its numbers cannot hold; the caller rolls before that happens, see Full.
func (b *Builder) Add(lastOffset storage.Offset, maxTimestamp int64, pos storage.Pos, size int64) (addOffset bool, oe OffsetEntry, addTime bool, te TimeEntry) {
	if maxTimestamp > b.max.Timestamp {
		b.max = TimeEntry{Timestamp: maxTimestamp, Offset: lastOffset}
	}
	if b.bytesSince > b.Interval && !b.Full() && b.fits(lastOffset, pos) {
		addOffset, oe = true, OffsetEntry{Offset: lastOffset, Pos: pos}
		b.lastOffset = oe
		b.nOffsets++
		if te, addTime = b.Close(); addTime {
			b.lastTime = te
			b.nTimes++
		}
		b.bytesSince = 0
	}
	b.bytesSince += size
	return addOffset, oe, addTime, te
}

// fits reports whether the offset index can take the entry.
func (b *Builder) fits(o storage.Offset, pos storage.Pos) bool {
	return relative(b.Base, o) && pos >= 0 && pos <= math.MaxInt32 && (b.nOffsets == 0 || o > b.lastOffset.Offset)
}

// Close returns the time entry that a segment which ends here still needs, so that its last entry holds its largest timestamp. It does not change b.
func (b *Builder) Close() (te TimeEntry, ok bool) {
	if b.max.Timestamp <= b.lastTime.Timestamp || !relative(b.Base, b.max.Offset) || int64(b.nTimes) >= b.maxTimes() {
		return TimeEntry{}, false
	}
	return b.max, true
}

// Full reports whether an index has no room for another entry; in the time index one slot is kept for the closing entry.
func (b *Builder) Full() bool {
	return int64(b.nOffsets) >= b.maxOffsets() || int64(b.nTimes) >= b.maxTimes()-1
}

func (b *Builder) maxOffsets() int64 { return maxEntries(b.MaxIndexBytes, OffsetEntrySize) }
func (b *Builder) maxTimes() int64   { return maxEntries(b.MaxIndexBytes, TimeEntrySize) }

func maxEntries(limit, size int64) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return limit / size
}

// MaxTimestamp returns the largest timestamp so far and the last offset of the first batch that had it; -1 and Base where there is none.
func (b *Builder) MaxTimestamp() (ts int64, offset storage.Offset) {
	return b.max.Timestamp, b.max.Offset
}

// Counts returns the number of entries that the two indexes hold, the closing one not counted.
func (b *Builder) Counts() (offsets, times int) { return b.nOffsets, b.nTimes }
