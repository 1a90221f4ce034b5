package fs

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
)

// TestBatchViews: a stretch in batches is every batch that holds an offset of it, whole, and can be read from anywhere.
func TestBatchViews(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	rng := rand.New(rand.NewPCG(1, 2))
	ends := []int64{}
	n := int64(0)
	for range 20 {
		var recs []storage.Record
		for range 1 + rng.IntN(5) {
			recs = append(recs, storage.Record{Timestamp: 1000, Value: make([]byte, rng.IntN(100))})
		}
		k.append(orders, recs...)
		n += int64(len(recs))
		ends = append(ends, n)
	}
	for range 200 {
		from := rng.Int64N(n + 1)
		to := from + rng.Int64N(n+1-from)
		path := fmt.Sprintf("orders/0/offset/%d..%d.batch", from, to)
		d := k.mustOpen(path, syscall.O_RDONLY)
		all := d.readAll()
		if st := d.mustStat(); st.Size != uint64(len(all)) {
			t.Errorf("%s: size %d, but %d bytes", path, st.Size, len(all))
		}
		var want []int64
		begin := int64(0)
		for _, end := range ends {
			if end > from && begin < to {
				want = append(want, begin)
			}
			begin = end
		}
		var got []int64
		for b := []byte(all); len(b) > 0; b = b[12+binary.BigEndian.Uint32(b[8:]):] {
			got = append(got, int64(binary.BigEndian.Uint64(b)))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) && from < to {
			t.Errorf("%s: batches at %v, want %v", path, got, want)
		}
		for range 10 {
			at, size := rng.IntN(len(all)+1), 1+rng.IntN(300)
			b, errno := d.pread(size, int64(at))
			if exp := all[at:min(at+size, len(all))]; errno != 0 || string(b) != exp {
				t.Errorf("%s: %d bytes at %d: got %d, %v; want %d", path, size, at, len(b), errno, len(exp))
			}
		}
		d.close()
	}
}

// FuzzNames: whatever resolves can be opened, and has as many bytes as its size says.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"0", "1..2", "-1", "0.json", "1.kv", "@1", "now", "2026-08-30T00:00Z..now.nul", "..", ".", "9223372036854775807", "1..9223372036854775807.batch", "-1h"} {
		f.Add(s)
	}
	k := newKernel(f, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail.json", "{\"value\":\"a\",\"key\":\"k\",\"timestamp\":0}\n{\"timestamp\":1000}\n{\"value\":\"c\"}\n")
	f.Fuzz(func(t *testing.T, name string) {
		k := *k
		k.t = t
		for _, dir := range []string{"", "orders", "orders/0", "orders/0/offset", "orders/0/time", "orders/0/record", "orders/0/segments", ".logmount"} {
			parent := uint64(1)
			if dir != "" {
				parent = k.mustLookup(dir).NodeId
			}
			e, errno := k.lookupIn(parent, name)
			if errno != 0 {
				if errno != syscall.ENOENT && errno != syscall.ESTALE {
					t.Errorf("%s/%q: %v", dir, name, errno)
				}
				continue
			}
			if e.Mode&syscall.S_IFMT == syscall.S_IFDIR || e.Size == 0 {
				k.tree.raw.Forget(e.NodeId, 1)
				continue
			}
			d, errno := k.openID(e.NodeId, syscall.O_RDONLY)
			if errno != 0 {
				t.Errorf("%s/%q: open: %v", dir, name, errno)
				continue
			}
			if st, got := d.mustStat(), d.readAll(); int(st.Size) != len(got) {
				t.Errorf("%s/%q: size %d, but %d bytes", dir, name, st.Size, len(got))
			}
			d.close()
			k.tree.raw.Forget(e.NodeId, 1)
		}
	})
}
