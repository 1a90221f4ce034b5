package memfs

import "slices"

const blockSize = 4096

// block is never changed once a content points to it, so that contents can share it.
type block [blockSize]byte

// content is the bytes of a file. A nil block is a hole. Bytes of the last block beyond size are zeros.
type content struct {
	size   int64
	blocks []*block // exactly as many as size needs
	filled int64    // blocks that are not nil
}

func (c *content) clone() content {
	return content{size: c.size, blocks: slices.Clone(c.blocks), filled: c.filled}
}

// used is the bytes that a file takes: those of its filled blocks, of the last one as far as the file goes.
func (c *content) used() int64 {
	n := c.filled * blockSize
	if last := len(c.blocks) - 1; last >= 0 && c.blocks[last] != nil {
		n -= int64(len(c.blocks))*blockSize - c.size
	}
	return n
}

// usedAfter is what used will be when n bytes have been written at pos, within one block.
func (c *content) usedAfter(pos, n int64) int64 {
	if n == 0 {
		return c.used()
	}
	d := *c
	i := pos / blockSize
	if i >= int64(len(c.blocks)) || c.blocks[i] == nil {
		d.filled++
	}
	used := d.filled * blockSize
	d.size = max(c.size, pos+n)
	last := (d.size - 1) / blockSize
	if last == i || last < int64(len(c.blocks)) && c.blocks[last] != nil {
		used -= (last+1)*blockSize - d.size
	}
	return used
}

// fits is how many of n bytes can be written at pos, within one block, when the file may grow by room bytes.
func (c *content) fits(pos, n, room int64) int64 {
	limit := c.used() + room
	grows := c.usedAfter(pos, n)
	if grows <= c.used() {
		return n // in its place
	}
	lo, hi := int64(0), n
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if c.usedAfter(pos, mid) <= limit {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

func (c *content) resize(size int64) {
	if size == c.size {
		return
	}
	n := int((size + blockSize - 1) / blockSize)
	for _, b := range c.blocks[min(n, len(c.blocks)):] {
		if b != nil {
			c.filled--
		}
	}
	if n <= len(c.blocks) {
		clear(c.blocks[n:])
		c.blocks = c.blocks[:n]
	} else {
		c.blocks = slices.Grow(c.blocks, n-len(c.blocks))[:n]
	}
	if in := size % blockSize; size < c.size && in != 0 {
		if b := c.blocks[n-1]; b != nil {
			cut := new(block)
			copy(cut[:in], b[:in])
			c.blocks[n-1] = cut
		}
	}
	c.size = size
}

// set replaces a block.
func (c *content) set(i int64, b *block) {
	if c.blocks[i] != nil {
		c.filled--
	}
	if b != nil {
		c.filled++
	}
	c.blocks[i] = b
}

func (c *content) readAt(p []byte, pos int64) int {
	total := 0
	for len(p) > 0 && pos < c.size {
		in := pos % blockSize
		n := min(int64(len(p)), blockSize-in, c.size-pos)
		if b := c.blocks[pos/blockSize]; b != nil {
			copy(p[:n], b[in:])
		} else {
			clear(p[:n])
		}
		p, pos, total = p[n:], pos+n, total+int(n)
	}
	return total
}

// writeAt grows the file as far as it must.
func (c *content) writeAt(p []byte, pos int64) {
	if len(p) == 0 {
		return
	}
	c.resize(max(c.size, pos+int64(len(p))))
	for len(p) > 0 {
		i, in := pos/blockSize, pos%blockSize
		b := new(block)
		if old := c.blocks[i]; old != nil {
			*b = *old
		}
		n := copy(b[in:], p)
		c.set(i, b)
		p, pos = p[n:], pos+int64(n)
	}
}

// pieces calls do for each part of p at pos that lies in one block.
func pieces(p []byte, pos int64, do func(p []byte, pos int64) bool) {
	for len(p) > 0 {
		n := min(int64(len(p)), blockSize-pos%blockSize)
		if !do(p[:n], pos) {
			return
		}
		p, pos = p[n:], pos+n
	}
}
