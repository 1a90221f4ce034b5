package record

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"
)

func TestVarint(t *testing.T) {
	tests := []struct {
		v   int64
		hex string
	}{
		{0, "00"}, {-1, "01"}, {1, "02"}, {-2, "03"}, {63, "7e"}, {64, "8001"}, {-64, "7f"}, {-65, "8101"},
		{8191, "fe7f"}, {8192, "808001"}, {math.MaxInt32, "feffffff0f"}, {math.MinInt32, "ffffffff0f"},
		{math.MaxInt64, "feffffffffffffffff01"}, {math.MinInt64, "ffffffffffffffffff01"},
	}
	for _, tt := range tests {
		b := appendVarint([]byte{0xaa}, tt.v)
		if got := hex.EncodeToString(b[1:]); got != tt.hex {
			t.Errorf("appendVarint(%d): got %s, want %s", tt.v, got, tt.hex)
		}
		if got, want := varintSize(tt.v), len(tt.hex)/2; got != want {
			t.Errorf("varintSize(%d): got %d, want %d", tt.v, got, want)
		}
		if got, i := varint64(b, 1); got != tt.v || i != len(b) {
			t.Errorf("varint64(%s): got %d up to %d, want %d up to %d", tt.hex, got, i, tt.v, len(b))
		}
		got, i := varint32(b, 1)
		if fits := tt.v == int64(int32(tt.v)); fits && (int64(got) != tt.v || i != len(b)) {
			t.Errorf("varint32(%s): got %d up to %d, want %d up to %d", tt.hex, got, i, tt.v, len(b))
		} else if !fits && i != -1 {
			t.Errorf("varint32(%s): got %d, want none", tt.hex, got)
		}
		for n := 1; n < len(b); n++ {
			if _, i := varint64(b[:n], 1); i != -1 {
				t.Errorf("varint64 of %d bytes of %s: found one", n-1, tt.hex)
			}
			if _, i := varint32(b[:n], 1); i != -1 {
				t.Errorf("varint32 of %d bytes of %s: found one", n-1, tt.hex)
			}
		}
	}
}

func TestVarintTooLong(t *testing.T) {
	for _, s := range []string{"8080808080", "808080808000", "ffffffff1f", "ffffffff8f00"} {
		b, _ := hex.DecodeString(s)
		if got, i := varint32(b, 0); i != -1 {
			t.Errorf("varint32(%s): got %d, want none", s, got)
		}
	}
	for _, s := range []string{"80808080808080808080", "8080808080808080808000", "ffffffffffffffffff02", "ffffffffffffffffff8100"} {
		b, _ := hex.DecodeString(s)
		if got, i := varint64(b, 0); i != -1 {
			t.Errorf("varint64(%s): got %d, want none", s, got)
		}
	}
}

func FuzzVarint(f *testing.F) {
	f.Add([]byte{0x80, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, i := varint64(b, 0)
		if i < 0 {
			return
		}
		again, j := varint64(appendVarint(nil, v), 0)
		if again != v || j != varintSize(v) {
			t.Errorf("%x: got %d in %d bytes, want %d in %d", b[:i], again, j, v, varintSize(v))
		}
		if w, k := varint32(b, 0); k >= 0 && (int64(w) != v || k != i) {
			t.Errorf("%x: 32 bits %d, 64 bits %d", b[:i], w, v)
		}
		if len(appendVarint(nil, v)) == i && !bytes.Equal(appendVarint(nil, v), b[:i]) {
			t.Errorf("%x: two forms of the same length", b[:i])
		}
	})
}
