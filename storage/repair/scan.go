package repair

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/record"
)

const maxOffset = storage.Offset(1<<63 - 1)

// batch is what is kept of a batch of a log.
type batch struct {
	pos   storage.Pos
	first storage.Offset
	maxTs int64
	delta int32 // last offset less first
	size  int32
	crc   uint32
	epoch int32 // leader epoch; -1 where there is none
}

func (b *batch) last() storage.Offset { return b.first + storage.Offset(b.delta) }
func (b *batch) next() storage.Offset { return b.last() + 1 }

// logScan is what the good batches of a log tell.
type logScan struct {
	batches []batch
	next    storage.Offset // behind the last good batch; the base offset where there is none
	end     storage.Pos    // behind the last good batch
	bad     int            // places that hold no good batch
	badAt   storage.Pos    // the first of them
	why     string
	aborted []index.TxnEntry
	sizes   index.SizeBuilder
	header  index.SizeHeader // of the size index
}

// scanner reads logs.
type scanner struct {
	reader record.Reader
	txns   *txns // follows transactions where it is not nil
	sums   bool  // sum up records
}

// scanOptions say which batches of a log fit into it.
type scanOptions struct {
	base     storage.Offset // base offset of the segment; -1 takes any offsets that ascend
	next     storage.Offset // no batch may reach this
	interval int64          // of the size index
}

// scan reads a log of size bytes. Batches that are damaged, or whose offsets do not follow, are counted and passed over, as inspect.Verify does.
func (s *scanner) scan(ctx context.Context, f io.ReaderAt, size int64, o scanOptions) (*logScan, error) {
	r := &logScan{next: max(o.base, 0), sizes: index.SizeBuilder{Interval: max(o.interval, index.MinSizeInterval)}}
	r.header = index.SizeHeader{Base: o.base, LogSize: size, MaxTimestamp: storage.NoTimestamp}
	err := inspect.Walk(readerOf{ctx, f}, size, o.base, func(b inspect.Batch) error {
		why := b.Err
		if why == nil && b.Gap == inspect.NoGap {
			if why = s.batch(f, r, &b, o); why == nil {
				return nil
			}
		}
		if why == nil {
			why = errors.New("checksum mismatch")
		}
		if r.bad == 0 {
			r.badAt, r.why = b.Pos, fmt.Sprint(why)
		}
		r.bad++
		return nil
	})
	r.header.NextOffset, r.header.Total = r.next, r.sizes.Total()
	return r, err
}

// batch takes a batch, or says why it is no good one.
func (s *scanner) batch(f io.ReaderAt, r *logScan, b *inspect.Batch, o scanOptions) error {
	if !b.CRCOK {
		return record.ErrCRC
	}
	h := b.Header
	if h.Magic < 2 || s.sums || s.txns != nil && h.Attributes.Control() {
		if err := s.reader.Reset(b.Raw); err != nil {
			return err
		}
		h = *s.reader.Header() // of an older version it knows the first offset only now
	}
	if err := inspect.Misplaced(f, &h, b.End(), inspect.Place{Base: o.base, Low: r.next, Next: o.next}); err != nil {
		return err
	}
	var sums record.Sums
	if s.sums {
		var err error
		if sums, err = s.reader.Sums(); err != nil {
			return err
		}
	}
	r.take(&h, b.Pos, sums)
	if s.txns != nil && h.Magic >= 2 {
		r.aborted = s.txns.batch(r.aborted, &h, &s.reader)
	}
	return nil
}

// take adds a good batch.
func (r *logScan) take(h *record.Header, pos storage.Pos, sums record.Sums) {
	b := batch{pos: pos, first: h.BaseOffset, maxTs: h.MaxTimestamp, delta: h.LastOffsetDelta, size: int32(h.Size()), crc: h.CRC, epoch: h.LeaderEpoch}
	if h.Magic < 2 {
		b.epoch = -1
	}
	if len(r.batches) == 0 {
		r.header.FirstPos, r.header.FirstCRC = pos, h.CRC
	}
	r.header.LastPos, r.header.LastCRC = pos, h.CRC
	if h.Attributes.Control() {
		sums = record.Sums{}
	} else {
		r.header.MaxTimestamp = max(r.header.MaxTimestamp, h.MaxTimestamp)
	}
	r.sizes.Add(h.BaseOffset, pos, index.Sums{Records: sums.Records, KeyBytes: sums.KeyBytes, ValueBytes: sums.ValueBytes})
	r.batches = append(r.batches, b)
	r.next, r.end = b.next(), pos+storage.Pos(b.size)
}

// readerOf ends reads, and so a walk, once a context is cancelled.
type readerOf struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call that takes the context.
	r   io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (r readerOf) ReadAt(b []byte, pos int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.ReadAt(b, pos)
}
