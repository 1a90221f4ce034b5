package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// testBatch returns a batch of n records from an offset on, with values of about size bytes.
func testBatch(tb testing.TB, base storage.Offset, n, size int) []byte {
	tb.Helper()
	var recs []storage.Record
	for i := range n {
		recs = append(recs, storage.Record{Offset: base + storage.Offset(i), Timestamp: 1700000000000 + int64(base) + int64(i),
			Key: fmt.Appendf(nil, "key %d", i), Value: bytes.Repeat([]byte{'a' + byte(i%26)}, size)})
	}
	b, err := record.Encode(nil, record.NewHeader(recs, 3), recs, record.None)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// testLog returns a log of batches of 3 records each and where they start.
func testLog(tb testing.TB, base storage.Offset, batches, size int) (log []byte, at []int) {
	tb.Helper()
	for i := range batches {
		at = append(at, len(log))
		log = append(log, testBatch(tb, base+storage.Offset(3*i), 3, size)...)
	}
	return log, at
}

// walkAll describes what a walk finds: the offset of a good batch, with ! of a bad one, or a gap's kind and size.
func walkAll(tb testing.TB, r io.ReaderAt, size int64, base storage.Offset) []string {
	tb.Helper()
	var got []string
	var pos storage.Pos
	err := Walk(r, size, base, func(b Batch) error {
		if b.Pos != pos || b.Size <= 0 {
			tb.Fatalf("batch at %d of %d bytes, expected at %d", b.Pos, b.Size, pos)
		}
		pos = b.End()
		switch {
		case b.Gap != NoGap:
			if b.Err == nil || b.Raw != nil {
				tb.Errorf("gap at %d: error %v, raw %v", b.Pos, b.Err, b.Raw != nil)
			}
			got = append(got, fmt.Sprintf("%v %d", b.Gap, b.Size))
		case b.CRCOK && b.Err == nil:
			if int64(len(b.Raw)) != b.Size {
				tb.Fatalf("batch of %d bytes with %d", b.Size, len(b.Raw))
			}
			if err := record.CheckCRC(b.Raw); err != nil {
				tb.Fatalf("batch at %d: %v", b.Pos, err)
			}
			got = append(got, fmt.Sprint(b.Header.BaseOffset))
		default:
			got = append(got, fmt.Sprintf("%d!", b.Header.BaseOffset))
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if int64(pos) != size {
		tb.Fatalf("the walk ended at %d of %d", pos, size)
	}
	return got
}

func TestWalk(t *testing.T) {
	log, at := testLog(t, 100, 5, 50)
	n := at[1]
	at2 := func(f func(b []byte)) func([]byte) []byte {
		return func(b []byte) []byte { f(b[at[2]:]); return b }
	}
	tests := []struct {
		name   string
		damage func([]byte) []byte
		want   string
	}{
		{"none", func(b []byte) []byte { return b }, "100 103 106 109 112"},
		{"empty", func([]byte) []byte { return nil }, ""},
		{"record", at2(func(b []byte) { b[80] ^= 1 }), "100 103 106! 109 112"},
		{"checksum", at2(func(b []byte) { b[17] ^= 1 }), "100 103 106! 109 112"},
		{"codec", at2(func(b []byte) { b[22] |= 7 }), "100 103 106! 109 112"},
		{"count", at2(func(b []byte) { b[57] = 0xff }), "100 103 106! 109 112"},
		{"version", at2(func(b []byte) { b[16] = 9 }), "100 103 106! 109 112"},
		{"offset", at2(func(b []byte) { b[6]++ }), "100 103 362 109 112"},
		{"negative offset", at2(func(b []byte) { b[0] = 0xff }), fmt.Sprintf("100 103 damaged %d 109 112", n)},
		{"longer", at2(func(b []byte) { b[11] += 5 }), fmt.Sprintf("100 103 damaged %d 109 112", n)},
		{"very long", at2(func(b []byte) { b[8] = 0x7f }), fmt.Sprintf("100 103 damaged %d 109 112", n)},
		{"shorter", at2(func(b []byte) { b[11] -= 5 }), fmt.Sprintf("100 103 damaged %d 109 112", n)},
		{"header zeroed", at2(func(b []byte) { clear(b[:61]) }), fmt.Sprintf("100 103 damaged %d 109 112", n)},
		{"two zeroed", at2(func(b []byte) { clear(b[:2*n]) }), fmt.Sprintf("100 103 damaged %d 112", 2*n)},
		{"byte lost", func(b []byte) []byte { return slices.Delete(b, at[2]+70, at[2]+71) }, fmt.Sprintf("100 103 damaged %d 109 112", n-1)},
		{"bytes between", func(b []byte) []byte { return slices.Insert(b, at[2], []byte("garbage that is no batch")...) }, "100 103 damaged 24 106 109 112"},
		{"torn", func(b []byte) []byte { return b[:len(b)-1] }, fmt.Sprintf("100 103 106 109 torn %d", n-1)},
		{"torn in the header", func(b []byte) []byte { return b[:at[4]+30] }, "100 103 106 109 torn 30"},
		{"torn in the frame", func(b []byte) []byte { return b[:at[4]+5] }, "100 103 106 109 torn 5"},
		{"zeros behind", func(b []byte) []byte { return append(b, make([]byte, 3<<20)...) }, "100 103 106 109 112 zeros 3145728"},
		{"few zeros behind", func(b []byte) []byte { return append(b, 0, 0, 0) }, "100 103 106 109 112 torn 3"},
		{"garbage behind", func(b []byte) []byte { return append(b, "garbage, certainly not a batch"...) }, "100 103 106 109 112 damaged 30"},
		{"first lost", func(b []byte) []byte { return b[10:] }, fmt.Sprintf("damaged %d 103 106 109 112", n-10)},
		{"repeated", func(b []byte) []byte { return append(b, b[:n]...) }, "100 103 106 109 112 100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.damage(bytes.Clone(log))
			if got := strings.Join(walkAll(t, bytes.NewReader(b), int64(len(b)), 100), " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestWalkLarge(t *testing.T) {
	log, at := testLog(t, 0, 3, 2<<20) // each batch is larger than what is read ahead
	if got, want := fmt.Sprint(walkAll(t, bytes.NewReader(log), int64(len(log)), 0)), "[0 3 6]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	log[at[1]+8] = 0x70
	if got, want := fmt.Sprint(walkAll(t, bytes.NewReader(log), int64(len(log)), 0)), fmt.Sprintf("[0 damaged %d 6]", at[1]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// badDisk has bytes that cannot be read.
type badDisk struct {
	*bytes.Reader
	from, to int64
}

func (d badDisk) ReadAt(b []byte, pos int64) (int, error) {
	if pos < d.to && pos+int64(len(b)) > d.from {
		n := 0
		if pos < d.from {
			n, _ = d.Reader.ReadAt(b[:d.from-pos], pos)
		}
		return n, fmt.Errorf("read: %w", syscall.EIO)
	}
	return d.Reader.ReadAt(b, pos)
}

func TestWalkBadDisk(t *testing.T) {
	log, at := testLog(t, 0, 20, 1000)
	d := badDisk{bytes.NewReader(log), 8192, 12288}
	first, last := 0, 0
	for i := range at {
		if at[i] <= 8192 {
			first = i
		}
		if at[i] < 12288 {
			last = i + 1
		}
	}
	var want []string
	for i := range at {
		if i == first {
			want = append(want, fmt.Sprintf("damaged %d", at[last]-at[first]))
		}
		if i < first || i >= last {
			want = append(want, fmt.Sprint(3*i))
		}
	}
	if got := walkAll(t, d, int64(len(log)), 0); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// A file that became shorter while it was read.
	if got, want := walkAll(t, bytes.NewReader(log[:at[2]]), int64(len(log)), 0), "[0 3 damaged "+fmt.Sprint(len(log)-at[2])+"]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestWalkEnds(t *testing.T) {
	log, _ := testLog(t, 0, 5, 10)
	n := 0
	if err := Walk(bytes.NewReader(log), int64(len(log)), 0, func(Batch) error { n++; return errStop }); err != nil || n != 1 {
		t.Errorf("got %d calls, %v", n, err)
	}
	if err := Walk(bytes.NewReader(log), int64(len(log)), 0, func(Batch) error { return io.ErrNoProgress }); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

func TestWalkLegacy(t *testing.T) {
	var log []byte
	var at []int
	for i := range 4 {
		at = append(at, len(log))
		var err error
		recs := []storage.Record{{Offset: storage.Offset(2 * i), Timestamp: 5, Value: []byte("one")}, {Offset: storage.Offset(2*i + 1), Timestamp: 6, Value: []byte("two")}}
		if log, err = record.EncodeLegacy(log, 1, record.Attributes(record.Gzip), recs); err != nil {
			t.Fatal(err)
		}
	}
	log = append(log, testBatch(t, 8, 1, 10)...)
	if got, want := fmt.Sprint(walkAll(t, bytes.NewReader(log), int64(len(log)), 0)), "[1 3 5 7 8]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	clear(log[at[1] : at[1]+12])
	if got, want := fmt.Sprint(walkAll(t, bytes.NewReader(log), int64(len(log)), 0)), fmt.Sprintf("[1 damaged %d 5 7 8]", at[2]-at[1]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzWalk(f *testing.F) {
	log, at := testLog(f, 0, 3, 20)
	f.Add(log, int64(0))
	f.Add(log[at[1]:], int64(-1))
	f.Add(append(bytes.Clone(log[:at[1]+3]), log...), int64(0))
	f.Add(append(bytes.Clone(log), make([]byte, 100)...), int64(0))
	b := bytes.Clone(log)
	binary.BigEndian.PutUint32(b[at[1]+8:], 1<<31-1)
	f.Add(b, int64(0))
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		walkAll(t, bytes.NewReader(b), int64(len(b)), storage.Offset(base))
	})
}
