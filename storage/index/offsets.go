package index

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/logmount/logmount/storage"
)

// MaxRelative is the largest offset relative to its segment's base: index entries have 32 bits for it.
const MaxRelative = math.MaxInt32

// OffsetEntrySize is the size of an entry of an offset index.
const OffsetEntrySize = 8

// OffsetEntry says where a batch lies. Every batch before Pos ends below Offset, and the batch that holds Offset starts at Pos or, in files of some
// older brokers, behind it.
type OffsetEntry struct {
	Offset storage.Offset // last offset of the batch
	Pos    storage.Pos    // where the batch starts
}

// AppendOffsetEntry appends an entry as it lies in the file of the segment with the given base offset.
func AppendOffsetEntry(dst []byte, base storage.Offset, e OffsetEntry) ([]byte, error) {
	if !relative(base, e.Offset) {
		return dst, fmt.Errorf("offset %d in an index of base %d: %w", e.Offset, base, storage.ErrOutOfRange)
	}
	if e.Pos < 0 || e.Pos > math.MaxInt32 {
		return dst, fmt.Errorf("position %d in an index: %w", e.Pos, storage.ErrOutOfRange)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Offset-base))
	return binary.BigEndian.AppendUint32(dst, uint32(e.Pos)), nil
}

// relative reports whether o can be written in an index of the segment with that base.
func relative(base, o storage.Offset) bool { return o >= base && o-base <= MaxRelative }

// Offsets looks up in the first N entries of an offset index.
type Offsets struct {
	R    io.ReaderAt
	N    int
	Base storage.Offset // base offset of the segment
}

func (x Offsets) table() table { return table{r: x.R, n: x.N, size: OffsetEntrySize} }

func (x Offsets) decode(b []byte) OffsetEntry {
	return OffsetEntry{Offset: x.Base + storage.Offset(i32(b)), Pos: storage.Pos(i32(b[4:]))}
}

// checked decodes the entry and refuses numbers that no index holds.
func (x Offsets) checked(i int, raw rawEntry) (OffsetEntry, error) {
	e := x.decode(raw[:])
	if e.Offset < x.Base || e.Pos < 0 {
		return OffsetEntry{}, corruptEntry(i, int64(i)*OffsetEntrySize, "negative offset or position")
	}
	return e, nil
}

// Entry returns entry i, counted from 0. Outside 0 <= i < N it is storage.ErrOutOfRange.
func (x Offsets) Entry(i int) (OffsetEntry, error) {
	raw, err := x.table().entry(i)
	if err != nil {
		return OffsetEntry{}, err
	}
	return x.checked(i, raw)
}

// Floor returns the entry with the largest offset <= o and its number; {Base, 0} and -1 where there is none.
func (x Offsets) Floor(o storage.Offset) (e OffsetEntry, i int, err error) {
	return x.floor(func(e OffsetEntry) bool { return e.Offset <= o })
}

// FloorPos returns the entry with the largest position <= p and its number; {Base, 0} and -1 where there is none.
func (x Offsets) FloorPos(p storage.Pos) (e OffsetEntry, i int, err error) {
	return x.floor(func(e OffsetEntry) bool { return e.Pos <= p })
}

func (x Offsets) floor(le func(OffsetEntry) bool) (OffsetEntry, int, error) {
	raw, i, err := x.table().floor(func(b []byte) bool { return le(x.decode(b)) })
	if err != nil || i < 0 {
		return OffsetEntry{Offset: x.Base}, -1, err
	}
	e, err := x.checked(i, raw)
	return e, i, err
}

// CountOffsets returns the number of entries in an offset index file of the given size: whole entries before the zero padding of a preallocated file.
// It looks at a few entries only, so what it says of a garbled file has to be verified with CheckOffsets.
func CountOffsets(r io.ReaderAt, size int64) (int, error) {
	t := table{r: r, n: whole(size, OffsetEntrySize), size: OffsetEntrySize}
	n, err := t.count(func(b []byte) bool { return i32(b) == 0 })
	if err != nil || n != 1 {
		return n, err
	}
	// The first batch of a segment has no entry, so a first entry of zeros is padding too.
	raw, err := t.entry(0)
	if err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint64(raw[:]) == 0 {
		return 0, nil
	}
	return 1, nil
}

// whole returns how many whole entries fit into size bytes.
func whole(size int64, entry int64) int { return int(max(size, 0) / entry) }

// CheckOffsets reads n entries and verifies what a lookup relies on: offsets and positions ascend strictly and lie inside the segment, positions inside
// the log's logSize bytes. The error is a *storage.CorruptError without a path, see At.
func CheckOffsets(r io.ReaderAt, n int, base storage.Offset, logSize int64) error {
	x := Offsets{R: r, N: n, Base: base}
	var last OffsetEntry
	return x.table().each(func(i int, b []byte) string {
		e := x.decode(b)
		switch {
		case e.Offset < base:
			return fmt.Sprintf("relative offset %d is negative", e.Offset-base)
		case e.Pos < 0:
			return fmt.Sprintf("position %d is negative", e.Pos)
		case i > 0 && e.Offset <= last.Offset:
			return fmt.Sprintf("offset %d is not above the one before, %d", e.Offset, last.Offset)
		case i > 0 && e.Pos <= last.Pos:
			return fmt.Sprintf("position %d is not above the one before, %d", e.Pos, last.Pos)
		case int64(e.Pos) >= logSize:
			return fmt.Sprintf("position %d is not inside the log of %d bytes", e.Pos, logSize)
		}
		last = e
		return ""
	})
}
