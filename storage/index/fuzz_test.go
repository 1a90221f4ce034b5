package index

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/logmount/logmount/storage"
)

// allowed reports whether a lookup in arbitrary bytes may fail so.
func allowed(err error) bool {
	return err == nil || errors.Is(err, storage.ErrCorrupt) || errors.Is(err, io.ErrUnexpectedEOF)
}

func FuzzOffsetIndex(f *testing.F) {
	good, _ := AppendOffsetEntry(nil, 7, OffsetEntry{9, 70})
	good, _ = AppendOffsetEntry(good, 7, OffsetEntry{12, 700})
	f.Add(good, int64(7), int64(10))
	f.Add(append(good, make([]byte, 64)...), int64(7), int64(1000))
	f.Fuzz(func(t *testing.T, b []byte, base, target int64) {
		r := bytes.NewReader(b)
		n, err := CountOffsets(r, int64(len(b)))
		if err != nil || n < 0 || n > len(b)/OffsetEntrySize {
			t.Fatalf("count: got %d, %v", n, err)
		}
		x := Offsets{r, n, storage.Offset(base)}
		e, i, err := x.Floor(storage.Offset(target))
		if !allowed(err) {
			t.Fatal(err)
		}
		if _, _, err := x.FloorPos(storage.Pos(target)); !allowed(err) {
			t.Fatal(err)
		}
		if base < 0 || CheckOffsets(r, n, x.Base, math.MaxInt64) != nil {
			return
		}
		// A checked index answers as a scan does, and is written again as it was.
		var again []byte
		want := -1
		for j := range n {
			e, err := x.Entry(j)
			if err != nil {
				t.Fatal(err)
			}
			if e.Offset <= storage.Offset(target) {
				want = j
			}
			if again, err = AppendOffsetEntry(again, x.Base, e); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil || i != want {
			t.Fatalf("floor: got %v, %d, %v, want %d", e, i, err, want)
		}
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("written again: got %x, want %x", again, b)
		}
	})
}

func FuzzTimeIndex(f *testing.F) {
	good, _ := AppendTimeEntry(nil, 7, TimeEntry{1000, 8})
	good, _ = AppendTimeEntry(good, 7, TimeEntry{1001, 12})
	f.Add(good, int64(7), int64(10))
	f.Add(append(good, make([]byte, 64)...), int64(7), int64(1000))
	f.Fuzz(func(t *testing.T, b []byte, base, target int64) {
		r := bytes.NewReader(b)
		n, err := CountTimes(r, int64(len(b)))
		if err != nil || n < 0 || n > len(b)/TimeEntrySize {
			t.Fatalf("count: got %d, %v", n, err)
		}
		x := Times{r, n, storage.Offset(base)}
		e, i, err := x.Floor(target)
		if !allowed(err) {
			t.Fatal(err)
		}
		if _, _, err := x.FloorOffset(storage.Offset(target)); !allowed(err) {
			t.Fatal(err)
		}
		if base < 0 || checkTimes(r, n, x.Base, math.MaxInt64) != nil {
			return
		}
		var again []byte
		want := -1
		for j := range n {
			e, err := x.Entry(j)
			if err != nil {
				t.Fatal(err)
			}
			if e.Timestamp <= target {
				want = j
			}
			if again, err = AppendTimeEntry(again, x.Base, e); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil || i != want {
			t.Fatalf("floor: got %v, %d, %v, want %d", e, i, err, want)
		}
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("written again: got %x, want %x", again, b)
		}
	})
}

func FuzzSizeIndex(f *testing.F) {
	h, e := sampleSizes()
	f.Add(EncodeSizes(h, e), int64(50), int64(60))
	f.Add(EncodeSizes(SizeHeader{MaxTimestamp: -1}, nil), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, base, target int64) {
		if h, err := DecodeSizeHeader(b, storage.Offset(base)); err == nil {
			// What lies behind a good header may be anything.
			x := Sizes{bytes.NewReader(b), h}
			if _, _, err := x.FloorOffset(storage.Offset(target)); !allowed(err) {
				t.Fatal(err)
			}
			if _, _, err := x.FloorMeasure(func(s Sums) int64 { return s.ValueBytes }, target); !allowed(err) {
				t.Fatal(err)
			}
		} else if !errors.Is(err, storage.ErrCorrupt) {
			t.Fatal(err)
		}
		h, entries, err := DecodeSizes(b, storage.Offset(base))
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		x := Sizes{bytes.NewReader(b), h}
		got, i, err := x.FloorOffset(storage.Offset(target))
		want, j, _ := entries.FloorOffset(storage.Offset(target))
		if err != nil || i != j || i >= 0 && got != want {
			t.Fatalf("floor: got %v, %d, %v, want %v, %d", got, i, err, want, j)
		}
		again := EncodeSizes(h, entries)
		h2, err := CheckSizes(again, h.Base)
		if err != nil || h2.N > h.N || h2.N == h.N && !bytes.Equal(again, b) {
			t.Fatalf("written again: got %x, %v, want %x", again, err, b)
		}
	})
}

func FuzzTxnIndex(f *testing.F) {
	good := AppendTxnEntry(AppendTxnEntry(nil, TxnEntry{1000, 100, 107, 108}), TxnEntry{1001, 90, 110, 111})
	f.Add(good, int64(100))
	f.Add(good[:50], int64(0))
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		entries, err := ParseTxns(b, storage.Offset(base))
		if err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Fatal(err)
		}
		var again []byte
		for _, e := range entries {
			again = AppendTxnEntry(again, e)
		}
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("written again: got %x, want %x", again, b)
		}
	})
}
