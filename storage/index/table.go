package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/logmount/logmount/storage"
)

const (
	maxEntrySize = SizeEntrySize
	leafSize     = 4096     // bytes that the last step of a search reads at once
	passSize     = 64 << 10 // bytes that a whole pass reads at once
)

// leaf is a search's buffer. It is pooled because it would escape to the heap through io.ReaderAt at every lookup.
type leaf [leafSize + maxEntrySize]byte

var leaves = sync.Pool{New: func() any { return new(leaf) }}

// table is n entries of equal size in r from byte start on.
type table struct {
	r     io.ReaderAt
	n     int
	size  int
	start int64
}

// rawEntry is an entry as it lies in its file, at the front.
type rawEntry [maxEntrySize]byte

// readFull fills b; a file that ends before that is io.ErrUnexpectedEOF.
func readFull(r io.ReaderAt, b []byte, pos int64) error {
	n, err := r.ReadAt(b, pos)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// read fills b with whole entries from entry i on.
func (t table) read(b []byte, i int) error {
	if err := readFull(t.r, b, t.start+int64(i)*int64(t.size)); err != nil {
		return fmt.Errorf("read index entry %d: %w", i, err)
	}
	return nil
}

// entry returns entry i.
func (t table) entry(i int) (raw rawEntry, err error) {
	if i < 0 || i >= t.n {
		return raw, fmt.Errorf("index entry %d of %d: %w", i, t.n, storage.ErrOutOfRange)
	}
	l := leaves.Get().(*leaf)
	defer leaves.Put(l)
	if err := t.read(l[:t.size], i); err != nil {
		return raw, err
	}
	copy(raw[:], l[:t.size])
	return raw, nil
}

// floor returns the last entry for which le holds, where le holds for the entries up to some point and for none behind it; i = -1 where there is none.
func (t table) floor(le func([]byte) bool) (raw rawEntry, i int, err error) {
	lo, hi := 0, t.n // le holds below lo and does not from hi on
	if hi == 0 {
		return raw, -1, nil
	}
	l := leaves.Get().(*leaf)
	defer leaves.Put(l)
	for (hi-lo)*t.size > leafSize {
		mid := lo + (hi-lo)/2
		if err := t.read(l[:t.size], mid); err != nil {
			return raw, 0, err
		}
		if le(l[:t.size]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	first := max(lo-1, 0) // one more than is undecided, since the answer may be the last decided one
	b := l[:(hi-first)*t.size]
	if err := t.read(b, first); err != nil {
		return raw, 0, err
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if at := (mid - first) * t.size; le(b[at : at+t.size]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 {
		at := (lo - 1 - first) * t.size
		copy(raw[:], b[at:at+t.size])
	}
	return raw, lo - 1, nil
}

// each calls f for each entry in order until it returns a reason, which becomes a corruption error at that entry.
func (t table) each(f func(i int, b []byte) (reason string)) error {
	per := passSize / t.size
	buf := make([]byte, min(per, t.n)*t.size)
	for i := 0; i < t.n; i += per {
		b := buf[:min(per, t.n-i)*t.size]
		if err := t.read(b, i); err != nil {
			return err
		}
		for j := 0; j*t.size < len(b); j++ {
			if reason := f(i+j, b[j*t.size:(j+1)*t.size]); reason != "" {
				return corruptEntry(i+j, t.start+int64(i+j)*int64(t.size), reason)
			}
		}
	}
	return nil
}

// corrupt makes the error for wrong bytes at pos of an index file. Its path is filled in by At.
func corrupt(pos int64, reason string) error {
	return &storage.CorruptError{Pos: storage.Pos(pos), Offset: -1, Reason: reason}
}

func corruptEntry(i int, pos int64, reason string) error {
	return corrupt(pos, fmt.Sprintf("entry %d: %s", i, reason))
}

// At returns err with the path of the file filled in where it is a corruption error that this package made, and with the path put before it else.
func At(path string, err error) error {
	if err == nil {
		return nil
	}
	var c *storage.CorruptError
	if errors.As(err, &c) && c.Path == "" {
		with := *c
		with.Path = path
		return &with
	}
	return fmt.Errorf("%s: %w", path, err)
}

// CheckPadding verifies that a file holds nothing but zeros from byte pos to byte size: what lies behind the last entry of a preallocated index.
func CheckPadding(r io.ReaderAt, pos, size int64) error {
	if size <= pos {
		return nil
	}
	buf := make([]byte, min(passSize, size-pos))
	zero := make([]byte, len(buf))
	for pos < size {
		b := buf[:min(int64(len(buf)), size-pos)]
		if err := readFull(r, b, pos); err != nil {
			return fmt.Errorf("read index padding: %w", err)
		}
		if !bytes.Equal(b, zero[:len(b)]) {
			i := bytes.IndexFunc(b, func(c rune) bool { return c != 0 })
			return corrupt(pos+int64(i), "padding is not zero")
		}
		pos += int64(len(b))
	}
	return nil
}

// count returns how many of the entries come before the zero padding, where zero holds for a padding entry and for no entry but the first.
func (t table) count(zero func([]byte) bool) (int, error) {
	if t.n == 0 {
		return 0, nil
	}
	l := leaves.Get().(*leaf)
	defer leaves.Put(l)
	b := l[:t.size]
	lo, hi := 1, t.n // the first padding entry lies in lo..hi
	for at := t.n - 1; lo < hi; at = lo + (hi-lo)/2 {
		if err := t.read(b, at); err != nil {
			return 0, err
		}
		if zero(b) {
			hi = at
		} else {
			lo = at + 1
		}
	}
	return lo, nil
}

func i32(b []byte) int64 { return int64(int32(binary.BigEndian.Uint32(b))) }
func i64(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }
