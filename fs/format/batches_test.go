package format

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

func TestSplitBatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want [][]byte
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 50), 0, 6).Draw(t, "sizes") {
			want = append(want, testBatch(n))
		}
		s := NewSplitter(Batch, testMax)
		var got [][]byte
		for rest := bytes.Join(want, nil); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if rapid.Bool().Draw(t, "refuse") {
				if _, err := s.SplitBatches(rest[:n]); err != nil {
					t.Fatal(err)
				}
				s.Abort()
			}
			p := bytes.Clone(rest[:n])
			batches, err := s.SplitBatches(p)
			if err != nil {
				t.Fatal(err)
			}
			taken := rapid.IntRange(0, len(batches)).Draw(t, "taken")
			for _, b := range batches[:taken] {
				got = append(got, bytes.Clone(b))
			}
			s.CommitBatches(taken)
			clear(p)
			rest = rest[n:]
		}
		batches, err := s.FinalBatches()
		if err != nil {
			t.Errorf("%d bytes are unfinished: %v", s.PendingBytes(), err)
		}
		got = append(got, batches...)
		if len(got) != len(want) {
			t.Fatalf("got %d batches, want %d", len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("batch %d: got %x, want %x", i, got[i], want[i])
			}
		}
	})
}

func TestSplitBatchesRefuses(t *testing.T) {
	withLength := func(n uint32) []byte {
		b := testBatch(10)
		b[8], b[9], b[10], b[11] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		return b
	}
	tests := []struct {
		name string
		p    []byte
		want error
	}{
		{"no length", withLength(0), storage.ErrInvalidRecord},
		{"shorter than its header", withLength(leastLength - 1), storage.ErrInvalidRecord},
		{"negative", withLength(1 << 31), storage.ErrInvalidRecord},
		{"as large as possible", withLength(testMax - batchPrefix), nil},
		{"too large", withLength(testMax - batchPrefix + 1), storage.ErrTooLarge},
		{"largest number", withLength(1<<31 - 1), storage.ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for cut := range batchPrefix + 2 {
				s := NewSplitter(Batch, testMax)
				_, err := s.SplitBatches(tt.p[:cut])
				if err == nil {
					s.CommitBatches(0)
					_, err = s.SplitBatches(tt.p[cut:])
				}
				if !errors.Is(err, tt.want) {
					t.Errorf("cut at %d: got %v, want %v", cut, err, tt.want)
				}
			}
		})
	}
	s := NewSplitter(Batch, testMax)
	if _, err := s.SplitBatches(testBatch(10)[:20]); err != nil {
		t.Fatal(err)
	}
	s.CommitBatches(0)
	if _, err := s.FinalBatches(); !errors.Is(err, storage.ErrInvalidRecord) {
		t.Errorf("half a batch at the end: got %v", err)
	}
	if !s.Pending() {
		t.Error("a check has dropped what it checked")
	}
	s.Drop()
	if r, err := s.FinalBatches(); r != nil || err != nil {
		t.Errorf("nothing at the end: got %v, %v", r, err)
	}
}
