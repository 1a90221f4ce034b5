package index

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/logmount/logmount/storage"
)

// TimeEntrySize is the size of an entry of a time index.
const TimeEntrySize = 12

// TimeEntry says that Timestamp is the largest one of the segment up to the entry, and that Offset is the last offset of the first batch that had it.
type TimeEntry struct {
	Timestamp int64
	Offset    storage.Offset
}

// AppendTimeEntry appends an entry as it lies in the file of the segment with the given base offset.
func AppendTimeEntry(dst []byte, base storage.Offset, e TimeEntry) ([]byte, error) {
	if !relative(base, e.Offset) {
		return dst, fmt.Errorf("offset %d in a time index of base %d: %w", e.Offset, base, storage.ErrOutOfRange)
	}
	if e.Timestamp < 0 {
		return dst, fmt.Errorf("timestamp %d in a time index: %w", e.Timestamp, storage.ErrOutOfRange)
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Timestamp))
	return binary.BigEndian.AppendUint32(dst, uint32(e.Offset-base)), nil
}

// Times looks up in the first N entries of a time index.
type Times struct {
	R    io.ReaderAt
	N    int
	Base storage.Offset // base offset of the segment
}

func (x Times) table() table { return table{r: x.R, n: x.N, size: TimeEntrySize} }

func (x Times) decode(b []byte) TimeEntry {
	return TimeEntry{Timestamp: i64(b), Offset: x.Base + storage.Offset(i32(b[8:]))}
}

// checked decodes the entry and refuses numbers that no index holds.
func (x Times) checked(i int, raw rawEntry) (TimeEntry, error) {
	e := x.decode(raw[:])
	if e.Offset < x.Base || e.Timestamp < 0 {
		return TimeEntry{}, corruptEntry(i, int64(i)*TimeEntrySize, "negative offset or timestamp")
	}
	return e, nil
}

// none is what a lookup without a result answers.
func (x Times) none() TimeEntry {
	return TimeEntry{Timestamp: storage.NoTimestamp, Offset: x.Base}
}

// Entry returns entry i, counted from 0. Outside 0 <= i < N it is storage.ErrOutOfRange.
func (x Times) Entry(i int) (TimeEntry, error) {
	raw, err := x.table().entry(i)
	if err != nil {
		return x.none(), err
	}
	return x.checked(i, raw)
}

// Floor returns the entry with the largest timestamp <= ts and its number; {-1, Base} and -1 where there is none. Every batch up to the entry's offset has
// no record later than its timestamp, and the batch that ends there is the first that has one of it.
func (x Times) Floor(ts int64) (e TimeEntry, i int, err error) {
	return x.floor(func(e TimeEntry) bool { return e.Timestamp <= ts })
}

// FloorOffset returns the entry with the largest offset <= o and its number; {-1, Base} and -1 where there is none. Cutting a segment, and dropping the
// entry that a close added, keep the entries up to a number found here.
func (x Times) FloorOffset(o storage.Offset) (e TimeEntry, i int, err error) {
	return x.floor(func(e TimeEntry) bool { return e.Offset <= o })
}

func (x Times) floor(le func(TimeEntry) bool) (TimeEntry, int, error) {
	raw, i, err := x.table().floor(func(b []byte) bool { return le(x.decode(b)) })
	if err != nil || i < 0 {
		return x.none(), -1, err
	}
	e, err := x.checked(i, raw)
	return e, i, err
}

// CountTimes returns the number of entries in a time index file of the given size: whole entries before the zero padding of a preallocated file.
// It looks at a few entries only; of a garbled file the number means nothing.
func CountTimes(r io.ReaderAt, size int64) (int, error) {
	t := table{r: r, n: whole(size, TimeEntrySize), size: TimeEntrySize}
	// Timestamps ascend from 0 or more, so only the first entry can hold timestamp 0.
	n, err := t.count(func(b []byte) bool { return i64(b) == 0 })
	if err != nil || n != 1 || t.n == 1 {
		return n, err
	}
	raw, err := t.entry(0)
	if err != nil {
		return 0, err
	}
	if i64(raw[:]) == 0 && i32(raw[8:]) == 0 {
		return 0, nil
	}
	return 1, nil
}
