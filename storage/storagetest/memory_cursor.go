package storagetest

import (
	"context"
	"fmt"
	"io"
	"sort"

	"github.com/logmount/logmount/storage"
)

type memCursor struct {
	s      *memSnapshot
	at     storage.Offset
	record storage.Record
	buf    []byte
	closed bool
}

var _ storage.Cursor = (*memCursor)(nil)

// batch returns the first batch that ends at or after the cursor, or io.EOF.
func (c *memCursor) batch(ctx context.Context) (*memBatch, error) {
	for i := range c.buf { // nobody may still be using it
		c.buf[i] = 0xdb
	}
	if c.closed {
		return nil, fmt.Errorf("cursor: %w", storage.ErrClosed)
	}
	if err := c.s.p.m.enter(ctx, "next"); err != nil {
		return nil, err
	}
	if c.at < c.s.end {
		if err := c.s.checkGone(c.at); err != nil {
			return nil, err
		}
	}
	all := c.s.batches
	i := sort.Search(len(all), func(i int) bool { return all[i].last() >= c.at })
	if i == len(all) || all[i].first() >= c.s.end {
		c.at = max(c.at, c.s.end)
		return nil, io.EOF
	}
	b := &all[i]
	if b.bad {
		c.at = b.last() + 1
		return nil, &storage.CorruptError{Path: c.s.p.tp.String(), Offset: b.first(), Reason: "damaged by the test"}
	}
	return b, nil
}

// Next implements storage.Cursor.
func (c *memCursor) Next(ctx context.Context) (*storage.Record, error) {
	b, err := c.batch(ctx)
	if err != nil {
		return nil, err
	}
	for i := range b.records {
		if r := &b.records[i]; r.Offset >= c.at {
			c.at = r.Offset + 1
			c.keep(r)
			return &c.record, nil
		}
	}
	return nil, io.EOF // a batch ends with a record, so this is not reached
}

// keep copies the record into memory of the cursor.
func (c *memCursor) keep(r *storage.Record) {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	if c.buf == nil || cap(c.buf) < n { // never nil: an empty value is not null
		c.buf = make([]byte, 0, 2*n)
	}
	c.buf = c.buf[:0]
	c.record.Offset, c.record.Timestamp = r.Offset, r.Timestamp
	c.record.Key, c.record.Value = c.own(r.Key), c.own(r.Value)
	c.record.Headers = c.record.Headers[:0]
	for _, h := range r.Headers {
		c.record.Headers = append(c.record.Headers, storage.Header{Key: c.own(h.Key), Value: c.own(h.Value)})
	}
}

func (c *memCursor) own(b []byte) []byte {
	if b == nil {
		return nil
	}
	from := len(c.buf)
	c.buf = append(c.buf, b...)
	return c.buf[from:len(c.buf):len(c.buf)]
}

// NextBatch implements storage.Cursor.
func (c *memCursor) NextBatch(ctx context.Context) ([]byte, error) {
	b, err := c.batch(ctx)
	if err != nil {
		return nil, err
	}
	c.at = b.last() + 1
	c.buf = append(c.buf[:0], b.data...)
	return c.buf, nil
}

// Offset implements storage.Cursor.
func (c *memCursor) Offset() storage.Offset { return c.at }

// Advance implements storage.Cursor.
func (c *memCursor) Advance(s storage.Snapshot) {
	if next, ok := s.(*memSnapshot); ok && next.p == c.s.p {
		c.s = next
	}
}

// Close implements storage.Cursor.
func (c *memCursor) Close() { c.closed = true }
