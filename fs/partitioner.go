package fs

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/logmount/logmount/storage"
)

// partitioner picks the partition of a record as a Kafka producer does: by the key where there is one, so that equal keys meet; otherwise it sticks to
// one partition for about a batch and then goes on to another, so that batches get full. It is for one goroutine at a time.
type partitioner struct {
	rng        *rand.Rand
	batchBytes int
	sticky     int
	left       int // bytes until it lets go of sticky
}

// newPartitioner returns a partitioner that changes the partition of records without a key after about batchBytes of them.
func newPartitioner(seed uint64, batchBytes int) *partitioner {
	return &partitioner{rng: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), batchBytes: max(batchBytes, 1)}
}

// pick returns the partition of r among n, n > 0, counted from 0. An empty key is a key.
func (p *partitioner) pick(r *storage.Record, n int) int {
	if n <= 1 {
		return 0
	}
	if r.Key != nil {
		return int(murmur2(r.Key)&0x7fffffff) % n
	}
	if p.left <= 0 || p.sticky >= n {
		next := p.rng.IntN(n)
		if next == p.sticky {
			next = (next + 1 + p.rng.IntN(n-1)) % n
		}
		p.sticky, p.left = next, p.batchBytes
	}
	p.left -= recordBytes(r)
	return p.sticky
}

// recordBytes returns about what r takes in a batch.
func recordBytes(r *storage.Record) int {
	const overhead = 8 // lengths, attributes, deltas
	size := overhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += 2 + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return size
}

// murmur2 is the hash that Kafka's producers apply to keys, with their seed.
func murmur2(data []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
	)
	h := seed ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
