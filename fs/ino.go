package fs

// inoOf returns the inode number of what the names lead to, the same in every run. It is never 0, which means none, nor 1, which is the root's, and its
// highest bit is clear: go-fuse gives numbers with that bit to nodes that have none.
func inoOf(names ...string) uint64 {
	const (
		basis = 0xcbf29ce484222325
		prime = 0x100000001b3
	)
	h := uint64(basis)
	for _, s := range names {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ '/') * prime // no name contains it
	}
	// FNV alone leaves numbers of similar names close to each other; programs hash them by their low bits.
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	if h &= 1<<63 - 1; h < 2 {
		h += 2
	}
	return h
}
