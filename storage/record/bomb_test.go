package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"

	"github.com/logmount/logmount/storage"
)

// bombs are payloads that decompress to far more than their size.
func bombs(tb testing.TB, size int) map[string]struct {
	codec   Codec
	payload []byte
} {
	tb.Helper()
	type bomb = struct {
		codec   Codec
		payload []byte
	}
	zeros := make([]byte, 64<<10)
	all := map[string]bomb{}
	for _, c := range []Codec{Gzip, Zstd} {
		b, err := compress(c, nil, make([]byte, size))
		if err != nil {
			tb.Fatal(err)
		}
		all[c.String()] = bomb{c, b}
	}

	member := all["gzip"].payload
	all["gzip members"] = bomb{Gzip, bytes.Repeat(member[:len(member):len(member)], 3)}

	runs := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}
	for range size / zstdMaxBlock {
		runs = append(runs, 0x02, 0x00, 0x10, 0) // 128 KiB of zeros
	}
	runs = append(runs, 1, 0, 0)
	all["zstd runs"] = bomb{Zstd, runs}
	// A content size of 4 EiB in front of 128 KiB.
	claim := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0x02, 0x00, 0x10, 0, 1, 0, 0}
	all["zstd claim"] = bomb{Zstd, claim}
	// A window of 3.75 TiB in front of a compressed block that is none.
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff}
	all["zstd window"] = bomb{Zstd, append(window, 0x1c, 0, 0, 0, 0, 0, 1, 0, 0)}

	block := snappy.Encode(nil, zeros)
	x := append(bytes.Clone(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	for range size / len(zeros) {
		x = binary.BigEndian.AppendUint32(x, uint32(len(block)))
		x = append(x, block...)
	}
	all["snappy"] = bomb{Snappy, x}
	all["snappy claim"] = bomb{Snappy, append(binary.AppendUvarint(nil, 1<<31), make([]byte, 1000)...)}

	l, err := lz4To(nil, make([]byte, size))
	if err != nil {
		tb.Fatal(err)
	}
	all["lz4"] = bomb{LZ4, l}
	big := make([]byte, 4<<20)
	packed := make([]byte, lz4.CompressBlockBound(len(big)))
	n, err := lz4.CompressBlock(big, packed, nil)
	if err != nil {
		tb.Fatal(err)
	}
	f := []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73}
	for range size / len(big) {
		f = binary.LittleEndian.AppendUint32(f, uint32(n))
		f = append(f, packed[:n]...)
	}
	all["lz4 large blocks"] = bomb{LZ4, append(f, 0, 0, 0, 0)}
	return all
}

func bombBatch(codec Codec, payload []byte) []byte {
	h := Header{Length: int32(HeaderSize - lengthBase + len(payload)), Count: 1, Attributes: Attributes(codec)}
	b := make([]byte, HeaderSize)
	h.put(b)
	b = append(b, payload...)
	seal(b)
	return b
}

// allocated returns the bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestBombs(t *testing.T) {
	const limit = 2 << 20
	for name, bomb := range bombs(t, 16<<20) {
		t.Run(name, func(t *testing.T) {
			b := bombBatch(bomb.codec, bomb.payload)
			r := Reader{Limit: limit}
			var err error
			took := allocated(func() { err = r.Reset(b) })
			want := ErrTooLarge
			if name == "zstd claim" || name == "zstd window" {
				want = ErrMalformed
			}
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			// Growing costs the sum of all sizes on the way, and a decoder its own tables.
			if took > 4*limit {
				t.Errorf("allocated %d bytes with a limit of %d", took, limit)
			}
			if cap(r.scratch) > limit {
				t.Errorf("holds %d bytes with a limit of %d", cap(r.scratch), limit)
			}
		})
	}
}

// TestDefaultLimit decodes 1 GiB that is packed into little; nobody set a limit.
func TestDefaultLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes memory")
	}
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}
	for range 1 << 30 / zstdMaxBlock {
		b = append(b, 0x02, 0x00, 0x10, 0)
	}
	var r Reader
	if err := r.Reset(bombBatch(Zstd, append(b, 1, 0, 0))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want too large", err)
	}
	if cap(r.scratch) > 0 {
		t.Errorf("holds %d bytes", cap(r.scratch))
	}
}

func TestTooManyHeaders(t *testing.T) {
	body := []byte{0, 0, 0, 1, 1}
	body = appendVarint(body, maxHeaders+1)
	for range maxHeaders + 1 {
		body = append(body, 0, 1)
	}
	payload := append(appendVarint(nil, int64(len(body))), body...)
	b := bombBatch(None, payload)
	var r Reader
	if err := readOut(&r, b); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Next: got %v, want too large", err)
	}
	if _, _, err := r.Validate(b); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Validate: got %v, want too large", err)
	}
}

// TestScratch holds the Reader to letting go of large buffers once they are not needed.
func TestScratch(t *testing.T) {
	encode := func(size int) []byte {
		recs := []storage.Record{{Value: bytes.Repeat([]byte("ab"), size/2)}}
		b, err := Encode(nil, NewHeader(recs, 0), recs, LZ4)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	big, small := encode(8<<20), encode(1000)
	var r Reader
	for range 3 {
		if err := r.Reset(big); err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.scratch) < 8<<20 {
		t.Fatalf("holds %d bytes for a batch of 8 MiB", cap(r.scratch))
	}
	for range 2 {
		if err := r.Reset(small); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Reset(small); err != nil || cap(r.scratch) > keepScratch {
		t.Errorf("holds %d bytes after small batches, %v", cap(r.scratch), err)
	}
}
