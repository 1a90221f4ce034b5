package fs

import (
	"testing"

	"github.com/logmount/logmount/storage"
)

func TestMurmur2(t *testing.T) {
	for s, want := range map[string]uint32{
		"":                             0x106e08d9,
		"a":                            0xa2d0b27c,
		"ab":                           0x12d8262a,
		"abc":                          0x1c94221b,
		"abcd":                         0xb11ab5f4,
		"21":                           0xc5f2f8ec,
		"key-17":                       0x3909d434,
		"foobar":                       0xd0e47bbe,
		"\xff\xfe\xfd\xfc\xfb\xfa\xf9": 0xf6176f45,
		"The quick brown fox jumps over the lazy dog": 0x1d84d036,
	} {
		if got := murmur2([]byte(s)); got != want {
			t.Errorf("%q: got %#x, want %#x", s, got, want)
		}
	}
}

func TestPartitionerKeyed(t *testing.T) {
	p := newPartitioner(1, 16384)
	for _, key := range []string{"", "a", "key-17", "foobar"} {
		r := &storage.Record{Key: []byte(key)}
		want := int(murmur2([]byte(key))&0x7fffffff) % 7
		for range 3 {
			if got := p.pick(r, 7); got != want {
				t.Errorf("%q: got %d, want %d", key, got, want)
			}
		}
		if got := p.pick(r, 1); got != 0 {
			t.Errorf("%q of one: got %d", key, got)
		}
	}
}

func TestPartitionerSticky(t *testing.T) {
	const n, batch, size = 5, 1000, 92
	p := newPartitioner(1, batch)
	r := &storage.Record{Value: make([]byte, size)}
	var runs []int // lengths
	seen := make(map[int]int)
	last := -1
	for range 10_000 {
		got := p.pick(r, n)
		if got < 0 || got >= n {
			t.Fatalf("got partition %d of %d", got, n)
		}
		seen[got]++
		if got != last {
			runs, last = append(runs, 0), got
		}
		runs[len(runs)-1]++
	}
	for _, run := range runs[:len(runs)-1] {
		if run != 10 {
			t.Errorf("%d records of 100 bytes on one partition, want 10: batches of %d bytes", run, batch)
		}
	}
	for i := range n {
		if seen[i] < 1000 {
			t.Errorf("partition %d got %d of 10000 records", i, seen[i])
		}
	}
	if got := p.pick(r, 1); got != 0 {
		t.Errorf("got %d of one partition", got)
	}
	p.sticky, p.left = 4, 1000
	if got := p.pick(r, 2); got > 1 {
		t.Errorf("got %d of two partitions", got)
	}
	a, b := newPartitioner(7, batch), newPartitioner(7, batch)
	for range 1000 {
		if x, y := a.pick(r, n), b.pick(r, n); x != y {
			t.Fatalf("the same seed gave %d and %d", x, y)
		}
	}
}
