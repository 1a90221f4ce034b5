package record

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
)

func TestParseFrame(t *testing.T) {
	v2 := func(size int32, magic byte) []byte {
		b := make([]byte, FrameSize)
		b[7] = 9
		binary.BigEndian.PutUint32(b[8:], uint32(size))
		b[16] = magic
		return b
	}
	negative := v2(100, 2)
	negative[0] = 0x80
	tests := []struct {
		name string
		b    []byte
		want Frame
		err  error
	}{
		{"version 2", unhex(t, goldenData), Frame{100, 91, 2}, nil},
		{"version 1", unhex(t, goldenV1), Frame{7, 36, 1}, nil},
		{"version 0", unhex(t, goldenV0), Frame{7, 27, 0}, nil},
		{"least of version 2", v2(49, 2), Frame{9, 61, 2}, nil},
		{"less", v2(48, 2), Frame{}, ErrMalformed},
		{"least of version 1", v2(22, 1), Frame{9, 34, 1}, nil},
		{"less", v2(21, 1), Frame{}, ErrMalformed},
		{"least of version 0", v2(14, 0), Frame{9, 26, 0}, nil},
		{"less", v2(13, 0), Frame{}, ErrMalformed},
		{"version 3", v2(49, 3), Frame{9, 61, 3}, nil},
		{"largest", v2(math.MaxInt32, 2), Frame{9, math.MaxInt32 + 12, 2}, nil},
		{"negative size", v2(-1, 2), Frame{}, ErrMalformed},
		{"smallest size", v2(math.MinInt32, 0), Frame{}, ErrMalformed},
		{"negative offset", negative, Frame{}, ErrMalformed},
		{"zeros", make([]byte, 100), Frame{}, ErrZero},
		{"offset and zeros", v2(0, 0), Frame{}, ErrMalformed},
		{"short", unhex(t, goldenData)[:16], Frame{}, ErrTruncated},
		{"nothing", nil, Frame{}, ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseFrame(tt.b)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
			if err != nil && !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%v is not corrupt", err)
			}
		})
	}
}

func TestParseHeader(t *testing.T) {
	change := func(at int, bytes ...byte) []byte {
		b := unhex(t, goldenData)
		copy(b[at:], bytes)
		return b
	}
	tests := []struct {
		name string
		b    []byte
		err  error
		text string
	}{
		{"good", unhex(t, goldenData)[:HeaderSize], nil, ""},
		{"version 0", unhex(t, goldenV0), storage.ErrUnsupported, "version 0"},
		{"version 1", unhex(t, goldenV1), storage.ErrUnsupported, "version 1"},
		{"version 3", change(atMagic, 3), ErrMalformed, "version 3"},
		{"version -1", change(atMagic, 0xff), ErrMalformed, "version -1"},
		{"codec 5", change(atAttributes, 0, 5), storage.ErrUnsupported, "codec 5"},
		{"codec 7", change(atAttributes, 0, 7), storage.ErrUnsupported, "codec 7"},
		{"unused attributes", change(atAttributes, 0x80, 0x80), nil, ""},
		{"negative count", change(atCount, 0xff, 0xff, 0xff, 0xff), ErrMalformed, "count -1"},
		{"negative delta", change(atLastDelta, 0x80), ErrMalformed, "last offset delta -2147483646"},
		{"last offset overflows", change(0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd), ErrMalformed, "base offset 9223372036854775805"},
		{"last offset just fits", change(0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc), nil, ""},
		{"short", unhex(t, goldenData)[:HeaderSize-1], ErrTruncated, "60 bytes"},
		{"zeros", make([]byte, 100), ErrZero, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := ParseHeader(tt.b)
			if !errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got %v, want %v with %q", err, tt.err, tt.text)
			}
			if err != nil {
				return
			}
			if h.Size() != 91 || h.NextOffset() != h.LastOffset()+1 || h.LastOffset() != h.BaseOffset+2 {
				t.Errorf("got size %d, last %d, next %d", h.Size(), h.LastOffset(), h.NextOffset())
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	a := AttrLogAppendTime | AttrControl | Attributes(Zstd)
	if !a.LogAppendTime() || a.Transactional() || !a.Control() || a.HasDeleteHorizon() || a.Codec() != Zstd {
		t.Errorf("%b: got %v %v %v %v %v", a, a.LogAppendTime(), a.Transactional(), a.Control(), a.HasDeleteHorizon(), a.Codec())
	}
	if got := a.WithCodec(Gzip); got != AttrLogAppendTime|AttrControl|1 {
		t.Errorf("WithCodec: got %b", got)
	}
	for i, want := range []string{"none", "gzip", "snappy", "lz4", "zstd", "codec 5"} {
		if got := Codec(i).String(); got != want {
			t.Errorf("codec %d: got %s, want %s", i, got, want)
		}
	}
}
