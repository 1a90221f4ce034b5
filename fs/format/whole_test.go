package format

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

func TestWholeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 200
		s := NewSplitter(Whole, limit)
		var want []byte
		grow := func(size int) {
			for len(want) < size {
				want = append(want, 0)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				p := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
				pos := rapid.IntRange(0, 150).Draw(t, "pos")
				err := s.WriteAt(p, int64(pos))
				if large := len(p) > 0 && pos+len(p) > len(want) && ownBatch(int64(pos+len(p))) > limit; large != errors.Is(err, storage.ErrTooLarge) {
					t.Fatalf("got %v", err)
				}
				if err == nil && len(p) > 0 {
					grow(pos + len(p))
					copy(want[pos:], p)
				}
			},
			"truncate": func(t *rapid.T) {
				size := rapid.IntRange(-1, 150).Draw(t, "size")
				err := s.Truncate(int64(size))
				switch {
				case size < len(want):
					if !errors.Is(err, storage.ErrNotPermitted) {
						t.Fatalf("got %v", err)
					}
				case ownBatch(int64(size)) > limit:
					if !errors.Is(err, storage.ErrTooLarge) {
						t.Fatalf("got %v", err)
					}
				default:
					grow(size)
				}
			},
			"": func(t *rapid.T) {
				r, err := s.Final(5)
				if err != nil {
					t.Fatal(err)
				}
				if r == nil {
					r = &storage.Record{Timestamp: 5}
				}
				if !bytes.Equal(r.Value, want) || r.Key != nil || r.Timestamp != 5 {
					t.Errorf("got %+v, want %q", r, want)
				}
				if got := s.Pending(); got != (len(want) > 0) {
					t.Errorf("pending is %v with %d bytes", got, len(want))
				}
			},
		})
	})
}

func TestWholeRefuses(t *testing.T) {
	s := NewSplitter(Whole, testMax)
	for _, pos := range []int64{testMax, math.MaxInt32, math.MaxInt64 - 1} {
		if err := s.WriteAt([]byte("x"), pos); !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("at %d: got %v", pos, err)
		}
	}
	for _, pos := range []int64{-1, math.MinInt64, math.MaxInt64} {
		if err := s.WriteAt([]byte("x"), pos); !errors.Is(err, storage.ErrInvalidRecord) {
			t.Errorf("at %d: got %v", pos, err)
		}
	}
	if err := s.Truncate(math.MaxInt64); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("truncate: got %v", err)
	}
	if s.Pending() || cap(s.buf) > 0 {
		t.Errorf("keeps %d of %d bytes", s.PendingBytes(), cap(s.buf))
	}
}
