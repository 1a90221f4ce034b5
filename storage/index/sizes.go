package index

import (
	"io"

	"github.com/logmount/logmount/storage"
)

// MinSizeInterval is the smallest distance between entries of a size index that is built, in bytes of log.
const MinSizeInterval = 1 << 10

// Sums counts visible data records and the bytes of their keys and values. A null key or value has no bytes.
type Sums struct {
	Records, KeyBytes, ValueBytes int64
}

// Plus returns s + o.
func (s Sums) Plus(o Sums) Sums {
	return Sums{s.Records + o.Records, s.KeyBytes + o.KeyBytes, s.ValueBytes + o.ValueBytes}
}

// In returns the bytes that the records take in a linear measure.
func (s Sums) In(m *storage.Measure) int64 {
	return m.PerRecord*s.Records + m.PerKeyByte*s.KeyBytes + m.PerValueByte*s.ValueBytes
}

func (s Sums) atLeast(o Sums) bool {
	return s.Records >= o.Records && s.KeyBytes >= o.KeyBytes && s.ValueBytes >= o.ValueBytes
}

// SizeEntry says what lies before a batch.
type SizeEntry struct {
	Offset storage.Offset // first offset of the batch at Pos
	Pos    storage.Pos
	Before Sums // of the segment's records before Pos
}

// SizeTable is a size index to look things up in: Sizes for one in a file, SizeEntries for one in memory. Lookups return the entry's number too; where
// there is no such entry it is -1 and the entry stands for the start of the segment.
type SizeTable interface {
	// FloorOffset returns the entry with the largest offset <= o.
	FloorOffset(o storage.Offset) (SizeEntry, int, error)
	// FloorMeasure returns the last entry with f(Before) <= p. f must not descend as the sums grow.
	FloorMeasure(f func(Sums) int64, p int64) (SizeEntry, int, error)
}

// SizeEntries is a size index in memory, in ascending order.
type SizeEntries []SizeEntry

// FloorOffset implements SizeTable. Its error is always nil.
func (x SizeEntries) FloorOffset(o storage.Offset) (SizeEntry, int, error) {
	return x.floor(func(e *SizeEntry) bool { return e.Offset <= o })
}

// FloorMeasure implements SizeTable. Its error is always nil.
func (x SizeEntries) FloorMeasure(f func(Sums) int64, p int64) (SizeEntry, int, error) {
	return x.floor(func(e *SizeEntry) bool { return f(e.Before) <= p })
}

func (x SizeEntries) floor(le func(*SizeEntry) bool) (e SizeEntry, i int, err error) {
	lo, hi := 0, len(x)
	for lo < hi {
		mid := lo + (hi-lo)/2
		if le(&x[mid]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 {
		return x[lo-1], lo - 1, nil
	}
	if len(x) > 0 {
		e.Offset = x[0].Offset
	}
	return e, -1, nil
}

// Sizes looks up in a size index file whose header H came from CheckSizes or DecodeSizeHeader.
type Sizes struct {
	R io.ReaderAt
	H SizeHeader
}

func (x Sizes) table() table {
	return table{r: x.R, n: x.H.N, size: SizeEntrySize, start: SizeHeaderSize}
}

// FloorOffset implements SizeTable.
func (x Sizes) FloorOffset(o storage.Offset) (SizeEntry, int, error) {
	return x.floor(func(e SizeEntry) bool { return e.Offset <= o })
}

// FloorMeasure implements SizeTable.
func (x Sizes) FloorMeasure(f func(Sums) int64, p int64) (SizeEntry, int, error) {
	return x.floor(func(e SizeEntry) bool { return f(e.Before) <= p })
}

func (x Sizes) floor(le func(SizeEntry) bool) (SizeEntry, int, error) {
	raw, i, err := x.table().floor(func(b []byte) bool { return le(decodeSizeEntry(b, x.H.Base)) })
	if err != nil || i < 0 {
		return SizeEntry{Offset: x.H.Base}, -1, err
	}
	return decodeSizeEntry(raw[:], x.H.Base), i, nil
}

// SizeBuilder makes a size index from a segment's batches in their order. Like Builder it may be copied to stage changes and drop them, as long as a
// slice of a dropped copy is not used any more.
type SizeBuilder struct {
	Interval int64 // smallest distance between two entries, in bytes of log

	entries []SizeEntry
	total   Sums
}

// ResumeSizes returns the SizeBuilder as it stood after the batches that gave these entries and this total. It takes the slice over.
func ResumeSizes(interval int64, entries []SizeEntry, total Sums) SizeBuilder {
	return SizeBuilder{Interval: interval, entries: entries[:len(entries):len(entries)], total: total}
}

// Add takes the next batch: its first offset, where it starts, and what it holds. The first batch of a segment always has an entry.
func (b *SizeBuilder) Add(first storage.Offset, pos storage.Pos, sums Sums) {
	if n := len(b.entries); n == 0 || int64(pos-b.entries[n-1].Pos) >= b.Interval {
		b.entries = append(b.entries, SizeEntry{Offset: first, Pos: pos, Before: b.total})
	}
	b.total = b.total.Plus(sums)
}

// Entries returns the entries so far. The builder only ever adds behind them, so a slice may be read while Add goes on.
func (b *SizeBuilder) Entries() []SizeEntry { return b.entries[:len(b.entries):len(b.entries)] }

// Total returns the sums of all batches.
func (b *SizeBuilder) Total() Sums { return b.total }
