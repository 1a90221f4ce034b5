package index

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
)

func TestAppendRefuses(t *testing.T) {
	const base = 1000
	offsets := []struct {
		name string
		e    OffsetEntry
		ok   bool
	}{
		{"lowest", OffsetEntry{base, 0}, true},
		{"highest", OffsetEntry{base + math.MaxInt32, math.MaxInt32}, true},
		{"offset below base", OffsetEntry{base - 1, 0}, false},
		{"offset too far", OffsetEntry{base + math.MaxInt32 + 1, 0}, false},
		{"position negative", OffsetEntry{base, -1}, false},
		{"position too large", OffsetEntry{base, math.MaxInt32 + 1}, false},
	}
	for _, tt := range offsets {
		t.Run(tt.name, func(t *testing.T) {
			b, err := AppendOffsetEntry([]byte("x"), base, tt.e)
			if (err == nil) != tt.ok || err != nil && (!errors.Is(err, storage.ErrOutOfRange) || string(b) != "x") {
				t.Fatalf("got %x, %v, want ok %t", b, err, tt.ok)
			}
			if !tt.ok {
				return
			}
			got, err := Offsets{bytes.NewReader(b[1:]), 1, base}.Entry(0)
			if err != nil || got != tt.e {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.e)
			}
		})
	}
	for _, e := range []TimeEntry{{-1, base}, {0, base - 1}, {0, base + math.MaxInt32 + 1}} {
		if b, err := AppendTimeEntry(nil, base, e); !errors.Is(err, storage.ErrOutOfRange) || len(b) > 0 {
			t.Errorf("time entry %+v: got %x, %v, want out of range", e, b, err)
		}
	}
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestCheckOffsets(t *testing.T) {
	tests := []struct {
		name, file string
		size       int64
		want       string // part of the error
		pos        storage.Pos
	}{
		{"empty", "", 0, "", 0},
		{"ascending", "00000005 00000010 00000006 00000011", 18, "", 0},
		{"offset repeated", "00000005 00000010 00000005 00000011", 99, "entry 1: offset 105 is not above", 8},
		{"offset descends", "00000005 00000010 00000004 00000011", 99, "entry 1: offset 104 is not above", 8},
		{"position repeated", "00000005 00000010 00000006 00000010", 99, "entry 1: position 16 is not above", 8},
		{"position at the end", "00000005 00000010", 16, "entry 0: position 16 is not inside", 0},
		{"negative offset", "80000000 00000010", 99, "entry 0: relative offset", 0},
		{"negative position", "00000005 80000000", 99, "entry 0: position", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.file)
			err := CheckOffsets(bytes.NewReader(b), len(b)/8, 100, tt.size)
			checkCorrupt(t, err, tt.want, tt.pos)
		})
	}
}

// checkTimes reads n entries and verifies what a lookup relies on: timestamps ascend strictly, offsets do not descend and lie in base <= offset < next.
func checkTimes(r io.ReaderAt, n int, base, next storage.Offset) error {
	x := Times{R: r, N: n, Base: base}
	var last TimeEntry
	return x.table().each(func(i int, b []byte) string {
		e := x.decode(b)
		switch {
		case e.Offset < base:
			return fmt.Sprintf("relative offset %d is negative", e.Offset-base)
		case e.Timestamp < 0:
			return fmt.Sprintf("timestamp %d is negative", e.Timestamp)
		case i > 0 && e.Timestamp <= last.Timestamp:
			return fmt.Sprintf("timestamp %d is not above the one before, %d", e.Timestamp, last.Timestamp)
		case i > 0 && e.Offset < last.Offset:
			return fmt.Sprintf("offset %d is below the one before, %d", e.Offset, last.Offset)
		case e.Offset >= next:
			return fmt.Sprintf("offset %d is not below the end of the segment, %d", e.Offset, next)
		}
		last = e
		return ""
	})
}

func TestCheckTimes(t *testing.T) {
	tests := []struct {
		name, file string
		want       string // part of the error
		pos        storage.Pos
	}{
		{"empty", "", "", 0},
		{"ascending", "0000000000000000 00000000 0000000000000001 00000009", "", 0},
		{"same time", "0000000000000005 00000001 0000000000000005 00000002", "entry 1: timestamp 5 is not above", 12},
		{"offset descends", "0000000000000005 00000002 0000000000000006 00000001", "entry 1: offset 101 is below", 12},
		{"offset at the end", "0000000000000005 0000000a", "entry 0: offset 110 is not below the end", 0},
		{"negative time", "ffffffffffffffff 00000001", "entry 0: timestamp -1 is negative", 0},
		{"negative offset", "0000000000000005 ffffffff", "entry 0: relative offset", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.file)
			checkCorrupt(t, checkTimes(bytes.NewReader(b), len(b)/12, 100, 110), tt.want, tt.pos)
		})
	}
}

// checkCorrupt verifies that err is a corruption error at pos that says what, or nil for "".
func checkCorrupt(t *testing.T, err error, what string, pos storage.Pos) {
	t.Helper()
	if what == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	var c *storage.CorruptError
	if !errors.As(err, &c) || !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), what) || c.Pos != pos {
		t.Fatalf("got %v, want corruption at %d with %q", err, pos, what)
	}
	at := At("dir/x", err)
	if !errors.As(at, &c) || c.Path != "dir/x" {
		t.Errorf("with a path: got %v", at)
	}
}

func TestAt(t *testing.T) {
	if err := At("x", nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if err := At("x", io.EOF); !errors.Is(err, io.EOF) || err.Error() != "x: EOF" {
		t.Errorf("got %v", err)
	}
}

func TestCount(t *testing.T) {
	tests := []struct {
		name    string
		file    string
		zeros   int
		offsets int
		times   int
	}{
		{"empty", "", 0, 0, 0},
		{"a partial entry", "00000005", 0, 0, 0},
		{"all zeros", "", 10485760, 0, 0},
		{"one entry at time 0", "000000000000000000000000", 0, 0, 1},
		{"one, padded", "0000000000000001 00000000", 4096, 1, 1},
		{"an entry of zeros before others", "00000000 00000000 00000003 00000007", 8, 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := append(unhex(t, tt.file), make([]byte, tt.zeros)...)
			if got := count(t, CountTimes, b); got != tt.times {
				t.Errorf("times: got %d, want %d", got, tt.times)
			}
			if got := count(t, CountOffsets, b); got != tt.offsets {
				t.Errorf("offsets: got %d, want %d", got, tt.offsets)
			}
		})
	}
	if _, err := CountOffsets(bytes.NewReader(nil), 80); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("file shorter than its size: got %v", err)
	}
}

func TestCheckPadding(t *testing.T) {
	b := make([]byte, 200000)
	if err := CheckPadding(bytes.NewReader(b), 12, int64(len(b))); err != nil {
		t.Error(err)
	}
	b[150000] = 1
	checkCorrupt(t, CheckPadding(bytes.NewReader(b), 12, int64(len(b))), "padding is not zero", 150000)
}

func TestLookupReadsLittle(t *testing.T) {
	var b []byte
	const n = 1 << 20
	for i := range n {
		b, _ = AppendOffsetEntry(b, 0, OffsetEntry{storage.Offset(i * 4), storage.Pos(i * 100)})
	}
	r := &counting{r: bytes.NewReader(b)}
	x := Offsets{r, n, 0}
	if e, i, err := x.Floor(2_000_003); err != nil || i != 500_000 || e.Offset != 2_000_000 {
		t.Fatalf("got %+v, %d, %v", e, i, err)
	}
	if r.calls > 13 || r.bytes > 6000 {
		t.Errorf("got %d reads of %d bytes, want at most 13 of 6000", r.calls, r.bytes)
	}
	if got := testing.AllocsPerRun(100, func() { _, _, _ = x.Floor(2_000_003) }); got > 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

// counting counts the calls of a reader.
type counting struct {
	r     io.ReaderAt
	calls int
	bytes int
}

func (c *counting) ReadAt(b []byte, pos int64) (int, error) {
	c.calls++
	c.bytes += len(b)
	return c.r.ReadAt(b, pos)
}

func TestEntryOutOfRange(t *testing.T) {
	r := bytes.NewReader(make([]byte, 100))
	for _, i := range []int{-1, 2, math.MaxInt} {
		if _, err := (Offsets{r, 2, 0}).Entry(i); !errors.Is(err, storage.ErrOutOfRange) {
			t.Errorf("offset entry %d: got %v", i, err)
		}
		if _, err := (Times{r, 2, 0}).Entry(i); !errors.Is(err, storage.ErrOutOfRange) {
			t.Errorf("time entry %d: got %v", i, err)
		}
	}
}

func sampleSizes() (SizeHeader, []SizeEntry) {
	h := SizeHeader{
		Base: 50, NextOffset: 80, LogSize: 9000, LastPos: 8000, FirstCRC: 0xdeadbeef, LastCRC: 0xfeedface, Total: Sums{30, 300, 3000}, MaxTimestamp: 1788026072512, N: 3,
	}
	return h, []SizeEntry{{50, 0, Sums{}}, {60, 4096, Sums{10, 100, 1000}}, {70, 8200, Sums{20, 200, 2000}}}
}

func TestSizes(t *testing.T) {
	h, entries := sampleSizes()
	b := EncodeSizes(h, entries)
	got, err := CheckSizes(b, 50)
	if err != nil || got != h {
		t.Errorf("got %+v, %v, want %+v", got, err, h)
	}
	if got, err := DecodeSizeHeader(b[:SizeHeaderSize], 50); err != nil || got != h {
		t.Errorf("header: got %+v, %v, want %+v", got, err, h)
	}
	empty := SizeHeader{Base: 50, NextOffset: 50, MaxTimestamp: -1}
	if got, err := CheckSizes(EncodeSizes(empty, nil), 50); err != nil || got != empty {
		t.Errorf("empty: got %+v, %v, want %+v", got, err, empty)
	}
	if _, err := CheckSizes(b, 51); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("another base: got %v", err)
	}
	// Every cut and every changed bit is found.
	for n := range len(b) {
		if _, err := CheckSizes(b[:n], 50); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: got %v", n, err)
		}
	}
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if _, err := CheckSizes(c, 50); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("bit %d changed: got %v", i, err)
		}
	}
	tests := []struct {
		name   string
		change func(h *SizeHeader, e []SizeEntry)
	}{
		{"next offset below base", func(h *SizeHeader, _ []SizeEntry) { h.NextOffset = 49 }},
		{"last batch behind the log", func(h *SizeHeader, _ []SizeEntry) { h.LastPos = 9001 }},
		{"negative total", func(h *SizeHeader, _ []SizeEntry) { h.Total.KeyBytes = -1 }},
		{"offset behind the end", func(h *SizeHeader, _ []SizeEntry) { h.NextOffset = 70 }},
		{"position behind the log", func(h *SizeHeader, _ []SizeEntry) { h.LogSize = 8100 }},
		{"sums before the first", func(_ *SizeHeader, e []SizeEntry) { e[0].Before.Records = 1 }},
		{"offset repeated", func(_ *SizeHeader, e []SizeEntry) { e[1].Offset = 50 }},
		{"position repeated", func(_ *SizeHeader, e []SizeEntry) { e[2].Pos = 4096 }},
		{"sums descend", func(_ *SizeHeader, e []SizeEntry) { e[2].Before.ValueBytes = 999 }},
		{"total too small", func(h *SizeHeader, _ []SizeEntry) { h.Total.Records = 19 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, e := sampleSizes()
			tt.change(&h, e)
			if _, err := CheckSizes(EncodeSizes(h, e), 50); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("got %v, want corruption", err)
			}
		})
	}
}

func TestEncodeSizesLeavesOutWhatDoesNotFit(t *testing.T) {
	h, e := sampleSizes()
	h.NextOffset, h.LogSize = math.MaxInt64, math.MaxInt64
	e = append(e, SizeEntry{80, 1 << 32, h.Total}, SizeEntry{50 + 1<<31, 9000, h.Total})
	got, err := CheckSizes(EncodeSizes(h, e), 50)
	if err != nil || got.N != 3 {
		t.Errorf("got %d entries, %v, want 3", got.N, err)
	}
}

func TestSizeBuilder(t *testing.T) {
	b := SizeBuilder{Interval: 100}
	b.Add(5, 0, Sums{1, 1, 1})
	shared := b.Entries()
	b.Add(6, 99, Sums{2, 2, 2})
	staged := b
	staged.Add(8, 100, Sums{4, 4, 4})
	b.Add(9, 150, Sums{8, 8, 8})
	want := []SizeEntry{{5, 0, Sums{}}, {9, 150, Sums{3, 3, 3}}}
	if got := b.Entries(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(shared) != 1 || shared[0] != want[0] {
		t.Errorf("slice taken earlier: got %v", shared)
	}
	r := ResumeSizes(100, b.Entries(), b.Total())
	r.Add(10, 250, Sums{1, 1, 1})
	if got := r.Entries(); len(got) != 3 || got[2] != (SizeEntry{10, 250, Sums{11, 11, 11}}) || r.Total() != (Sums{12, 12, 12}) {
		t.Errorf("resumed: got %v, %v", got, r.Total())
	}
	m := &storage.Measure{PerRecord: 2, PerKeyByte: 1, PerValueByte: 10}
	if got := (Sums{1, 2, 3}).In(m); got != 34 {
		t.Errorf("measured: got %d, want 34", got)
	}
}

func TestTxns(t *testing.T) {
	golden := unhex(t, "0000 00000000000003e8 0000000000000064 000000000000006b 000000000000006c")
	e := TxnEntry{1000, 100, 107, 108}
	if got := AppendTxnEntry(nil, e); !bytes.Equal(got, golden) {
		t.Errorf("got %x, want %x", got, golden)
	}
	second := AppendTxnEntry(golden, TxnEntry{1001, 90, 110, 111})
	tests := []struct {
		name string
		file []byte
		base storage.Offset
		n    int
		want string
	}{
		{"empty", nil, 0, 0, ""},
		{"one", golden, 107, 1, ""},
		{"two and a half", append(second[:68:68], golden[:20]...), 0, 2, ""},
		{"marker before the segment", golden, 108, 0, "entry 0: marker offset 107 is below"},
		{"marker repeated", append(golden[:34:34], golden...), 0, 1, "entry 1: marker offset 107 is not above"},
		{"version", append([]byte{1, 0}, golden[2:]...), 0, 0, "entry 0: version 256"},
		{"first after last", AppendTxnEntry(nil, TxnEntry{1, 9, 8, 9}), 0, 0, "entry 0: transaction from 9 to 8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTxns(tt.file, tt.base)
			if len(got) != tt.n {
				t.Errorf("got %d entries, want %d", len(got), tt.n)
			}
			checkCorrupt(t, err, tt.want, storage.Pos(tt.n*TxnEntrySize))
		})
	}
}
