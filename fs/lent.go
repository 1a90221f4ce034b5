package fs

import (
	"context"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// lender is a reader that may have the bytes at hand: they are then sent from where they are.
type lender interface {
	reader
	// lend reads into dest, or lends the bytes that it would have put there. cached says that they go into the page cache.
	lend(ctx context.Context, dest []byte, pos int64, cached bool) (n int, lent *lentBytes, err error)
}

// buffers are those that bytes are prepared in. One that was lent comes back when the reply has been sent: the next read may be answered before that.
var buffers sync.Pool

// newBuffer returns a buffer of at least n bytes.
func newBuffer(n int) []byte {
	if b, ok := buffers.Get().(*[]byte); ok && cap(*b) >= n {
		return *b
	}
	return make([]byte, n)
}

// lentBytes are bytes in a buffer of their own. It implements fuse.ReadResult.
type lentBytes struct {
	b, buffer []byte
}

// Slices makes go-fuse send the bytes first and call Done then. Without it, and without splice(2), it calls Done before it sends what Bytes returned.
func (l *lentBytes) Slices() ([][]byte, fuse.Status) { return [][]byte{l.b}, fuse.OK }

// Bytes implements fuse.ReadResult.
func (l *lentBytes) Bytes([]byte) ([]byte, fuse.Status) { return l.b, fuse.OK }

// Size implements fuse.ReadResult.
func (l *lentBytes) Size() int { return len(l.b) }

// Done implements fuse.ReadResult.
func (l *lentBytes) Done() {
	b := l.buffer[:cap(l.buffer)]
	l.b, l.buffer = nil, nil
	buffers.Put(&b)
}
