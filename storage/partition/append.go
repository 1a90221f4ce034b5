package partition

import (
	"context"
	"fmt"
	"math"
	"syscall"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/segment"
)

// keepBuffer is the largest encoding buffer that is kept between appends.
const keepBuffer = 2 << 20

// appendWork is what an append stages before it touches a file. It is reused: the lock is held while it is in use.
type appendWork struct {
	buf            []byte // encoded batches
	offsets, times []byte // index entries
	pieces         []staged
	app            segment.Appender // the writing end as it will be
	batch          record.Builder
	reader         record.Reader
	producers      *producers // as they will be; nil where an append does not change them
}

// staged is what an append adds to one segment.
type staged struct {
	app              segment.Appender // as it will be afterwards
	pos              storage.Pos      // as they are before
	nOffsets, nTimes int
	log              [2]int // ranges of the buffers
	offsets, times   [2]int
	created          bool
	txns             []byte // entries for the transaction index
	txnsAt           int64  // where they begin
	txnsWritten      bool
	producers        *producers // where the segment begins, if it is a new one
}

// begin starts staging. The lock is held.
func (l *Log) begin() *appendWork {
	w := &l.work
	w.buf, w.offsets, w.times, w.pieces = w.buf[:0], w.offsets[:0], w.times[:0], w.pieces[:0]
	w.producers = nil
	w.app = l.active
	w.piece(false)
	return w
}

// piece starts what is added to the segment of w.app.
func (w *appendWork) piece(created bool) {
	p := staged{pos: w.app.Size, created: created}
	p.nOffsets, p.nTimes = w.app.Counts()
	p.log[0], p.offsets[0], p.times[0] = len(w.buf), len(w.offsets), len(w.times)
	w.pieces = append(w.pieces, p)
}

// finishPiece notes how far the current piece goes, not counting the last n bytes of the buffer.
func (w *appendWork) finishPiece(n int) {
	p := &w.pieces[len(w.pieces)-1]
	p.app = w.app
	p.log[1], p.offsets[1], p.times[1] = len(w.buf)-n, len(w.offsets), len(w.times)
}

// place decides where the batch of n bytes at the end of the buffer goes: here, or into a new segment.
func (l *Log) place(w *appendWork, h *record.Header, n int, sums segment.Sums, now int64) error {
	c := &l.o.Config
	if h.BaseOffset > math.MaxInt64-1-storage.Offset(h.LastOffsetDelta) {
		return fmt.Errorf("%s: %w: there is no offset behind %d", l.o.TP, storage.ErrOutOfRange, w.app.Next-1)
	}
	if w.app.MustRoll(int64(n), h.MaxTimestamp, h.LastOffset(), c.SegmentBytes, c.SegmentMs, now) {
		w.finishPiece(n)
		base := w.app.Next // not the batch's, where offsets are left out: to recovery a gap between segments is a segment that was lost
		if h.LastOffset()-base > index.MaxRelative {
			base = h.BaseOffset
		}
		w.app = l.newSegment(base).NewAppender(now)
		w.piece(true)
		w.pieces[len(w.pieces)-1].producers = l.producersAt(w)
		w.pieces[len(w.pieces)-1].log[0] -= n
	}
	return w.app.Add(h, sums, &w.offsets, &w.times)
}

// producersAt returns the producers at the place that an append has reached, for good; nil where none are kept.
func (l *Log) producersAt(w *appendWork) *producers {
	if w.producers != nil {
		return w.producers.clone()
	}
	return l.producers
}

// Append implements storage.Partition.
func (l *Log) Append(ctx context.Context, records []storage.Record, batchBytes int) (storage.Appended, error) {
	return l.append(ctx, func(w *appendWork, now int64) error { return l.stageRecords(w, records, batchBytes, now) })
}

// AppendBatches implements storage.Partition.
func (l *Log) AppendBatches(ctx context.Context, batches [][]byte, more bool) (a storage.Appended, taken int, err error) {
	a, err = l.append(ctx, func(w *appendWork, now int64) (err error) {
		taken, err = l.stageBatches(w, batches, more, now)
		return err
	})
	return a, taken, err
}

// append stages, writes and publishes, and then tells who waits for it.
func (l *Log) append(ctx context.Context, stage func(w *appendWork, now int64) error) (storage.Appended, error) {
	if err := l.ready(ctx); err != nil {
		return storage.Appended{}, err
	}
	a, rolled, err := l.appendLocked(ctx, stage)
	if err != nil {
		return storage.Appended{}, err
	}
	if a.First < a.Next {
		l.watch.wake()
	}
	if rolled && l.env.Seal != nil {
		l.env.Seal(l)
	}
	return a, nil
}

func (l *Log) appendLocked(ctx context.Context, stage func(w *appendWork, now int64) error) (a storage.Appended, rolled bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusedLocked(); err != nil {
		return a, false, err
	}
	if ctx.Err() != nil {
		return a, false, context.Cause(ctx)
	}
	if err := l.takeLocked(); err != nil {
		return a, false, err
	}
	a.First = l.active.Next
	w, now := l.begin(), l.env.Now().UnixMilli()
	if err := stage(w, now); err != nil {
		return a, false, err
	}
	if len(w.buf) > 0 {
		if err := l.commit(w, now); err != nil {
			return a, false, err
		}
	}
	a.Next = l.active.Next
	return a, len(w.pieces) > 1, nil
}

// stageRecords encodes records into batches.
func (l *Log) stageRecords(w *appendWork, records []storage.Record, batchBytes int, now int64) error {
	epoch, err := l.epochLocked()
	if err != nil {
		return err
	}
	limit := min(batchBytes, int(l.o.Config.MaxMessageBytes))
	for i := 0; i < len(records); {
		start := len(w.buf)
		w.batch.Begin(w.buf, w.app.Next, epoch)
		var sums segment.Sums
		for ; i < len(records); i++ {
			r := &records[i]
			if w.batch.Count() > 0 && w.batch.SizeWith(r) > limit {
				break
			}
			w.batch.Add(r)
			sums.Records++
			sums.KeyBytes += int64(len(r.Key))
			sums.ValueBytes += int64(len(r.Value))
		}
		h := w.batch.Header()
		w.buf = w.batch.Finish()
		n := len(w.buf) - start
		if int64(n) > l.o.Config.MaxMessageBytes {
			return l.tooLarge(int64(n))
		}
		if err := l.place(w, &h, n, sums, now); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) tooLarge(n int64) error {
	return fmt.Errorf("%s: %w: a batch of %d bytes, max.message.bytes is %d", l.o.TP, storage.ErrTooLarge, n, l.o.Config.MaxMessageBytes)
}

// stageBatches checks batches and takes them over with new offsets; with more to come only those whose transactions have ended.
func (l *Log) stageBatches(w *appendWork, batches [][]byte, more bool, now int64) (taken int, err error) {
	if l.o.Exact {
		return len(batches), l.stageExact(w, batches, now)
	}
	left, open, err := l.leftOut(w, batches)
	if err != nil {
		return 0, err
	}
	if more {
		batches = batches[:open]
	}
	epoch, err := l.epochLocked()
	if err != nil {
		return 0, err
	}
	for i, b := range batches {
		if left[i] {
			continue
		}
		if err := l.stageBatch(w, b, epoch, now); err != nil {
			return 0, fmt.Errorf("batch %d of the request: %w", i, err)
		}
	}
	return len(batches), nil
}

func (l *Log) stageBatch(w *appendWork, b []byte, epoch int32, now int64) error {
	if int64(len(b)) > l.o.Config.MaxMessageBytes {
		return l.tooLarge(int64(len(b)))
	}
	_, sums, err := w.reader.Validate(b)
	if err != nil {
		return invalid(err)
	}
	start := len(w.buf)
	w.buf = append(w.buf, b...)
	record.Rebase(w.buf[start:], w.app.Next, epoch, true)
	h, err := record.ParseHeader(w.buf[start:])
	if err != nil {
		return invalid(err)
	}
	return l.place(w, &h, len(b), segment.Sums(sums), now)
}

func invalidBatch(i int, err error) error {
	return fmt.Errorf("batch %d of the request: %w", i, invalid(err))
}

// invalid says what is wrong with bytes that were given. It does not wrap the decoder's error: nothing on disk is damaged.
func invalid(err error) error { return fmt.Errorf("%w: %s", storage.ErrInvalidRecord, err.Error()) }

// leftOut tells which of the batches are left out, control batches and the data of transactions that an ABORT among them ends, and which is the first
// whose transaction does not end among them.
func (l *Log) leftOut(w *appendWork, batches [][]byte) (out []bool, open int, err error) {
	out = make([]bool, len(batches))
	pending := map[int64][]int{} // producer id -> data batches of its open transaction
	for i, b := range batches {
		h, err := record.ParseHeader(b)
		if err != nil {
			return nil, 0, invalidBatch(i, err)
		}
		switch {
		case h.Attributes.Control():
			out[i] = true
			if h.Count == 0 {
				continue
			}
			kind, err := controlType(&w.reader, b)
			if err != nil {
				return nil, 0, invalidBatch(i, err)
			}
			if kind == record.Abort {
				for _, j := range pending[h.ProducerID] {
					out[j] = true
				}
			}
			delete(pending, h.ProducerID)
		case h.Attributes.Transactional():
			pending[h.ProducerID] = append(pending[h.ProducerID], i)
		}
	}
	open = len(batches)
	for _, list := range pending {
		open = min(open, list[0])
	}
	return out, open, nil
}

func controlType(r *record.Reader, b []byte) (record.ControlType, error) {
	if _, _, err := r.Validate(b); err != nil {
		return 0, err
	}
	if err := r.Reset(b); err != nil {
		return 0, err
	}
	var rec storage.Record
	if ok, err := r.Next(&rec); !ok || err != nil {
		return 0, err
	}
	c, err := record.ParseControl(&rec)
	return c.Type, err
}

// epochLocked is the leader epoch that a batch carries: the last of leader-epoch-checkpoint. A log without any gets epoch 0 from its next offset on.
func (l *Log) epochLocked() (int32, error) {
	if e, ok := l.epochs.Last(); ok {
		return e.Epoch, nil
	}
	l.epochs, _ = l.epochs.Assign(0, l.active.Next)
	if err := l.writeEpochs(); err != nil {
		l.epochs = nil
		return 0, err
	}
	return 0, nil
}

// commit writes what was staged and publishes it. After an error the files are as they were, or the log is poisoned.
func (l *Log) commit(w *appendWork, now int64) error {
	w.finishPiece(0)
	for i := range w.pieces {
		if err := l.writePiece(w, i); err != nil {
			l.rollBack(w, i, err)
			return fmt.Errorf("%s: append: %w", l.o.TP, err)
		}
	}
	old := l.whole
	s := &snapshot{log: l, closed: old.closed, start: old.start, generation: old.generation, modified: now}
	for i := range w.pieces[:len(w.pieces)-1] {
		v := w.pieces[i].app.View()
		s.closed = append(s.closed[:len(s.closed):len(s.closed)], &v)
		l.open = append(l.open, &closedSegment{view: v, next: v.Next})
	}
	l.active = w.app
	if w.producers != nil {
		l.producers = w.producers
	}
	l.snapshotRolls(w)
	s.active, s.end = l.active.View(), l.active.Next
	l.noteUnsealedLocked()
	if err := l.publishWritten(context.Background(), s); err != nil {
		l.report(l.o.Dir, "appended records are not shown: "+err.Error())
	}
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	return nil
}

func (l *Log) writePiece(w *appendWork, i int) error {
	p := &w.pieces[i]
	seg := p.app.Segment()
	if p.created {
		if err := l.gapBehind(w, i); err != nil {
			return err
		}
		l.syncer.names.Add(1)
		if err := seg.Create(l.owner); err != nil {
			return err
		}
	}
	err := seg.Write(&segment.Piece{
		Log: w.buf[p.log[0]:p.log[1]], Pos: p.pos,
		Offsets: w.offsets[p.offsets[0]:p.offsets[1]], NOffsets: p.nOffsets,
		Times: w.times[p.times[0]:p.times[1]], NTimes: p.nTimes,
	})
	if err == nil {
		err = l.writeTxns(p)
	}
	if err != nil || i == len(w.pieces)-1 {
		return err
	}
	return l.closeSegment(&p.app)
}

// gapBehind is called before the segment of piece i is made. Where offsets are left out before it what is in front goes to stable storage first: recovery cannot
// tell that its end is missing.
func (l *Log) gapBehind(w *appendWork, i int) error {
	if i == 0 || w.pieces[i-1].app.Next == w.pieces[i].app.Segment().Base {
		return nil
	}
	if err := w.pieces[i-1].app.Segment().SyncLog(); err != nil {
		l.poisonLocked(err)
		return err
	}
	return l.env.FS.SyncDir(l.o.Dir)
}

// closeSegment writes the closing entry of the time index.
func (l *Log) closeSegment(a *segment.Appender) error {
	b, err := a.Closing()
	if err != nil || b == nil {
		return err
	}
	offsets, times := a.Counts()
	return a.Segment().Write(&segment.Piece{Times: b, NOffsets: offsets, NTimes: times, Pos: a.Size})
}

// rollBack brings the files back to what is published, after piece i could not be written.
func (l *Log) rollBack(w *appendWork, i int, cause error) {
	for ; i >= 0; i-- {
		p := &w.pieces[i]
		var err error
		if p.created {
			err = p.app.Segment().Remove()
		} else {
			err = p.app.Segment().Cut(p.pos, p.nOffsets, p.nTimes)
			if err == nil && p.txnsWritten {
				err = p.app.Segment().CutTxns(p.txnsAt)
			}
		}
		if err != nil {
			l.poisonLocked(fmt.Errorf("a failed append could not be taken back: %w (%w)", err, cause))
			return
		}
	}
}

// CheckAppend implements storage.Partition.
func (l *Log) CheckAppend(_ context.Context, r *storage.Record) error {
	l.mu.Lock()
	err := l.refusedLocked()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	n := int64(record.SizeOf(r))
	if n > l.o.Config.MaxMessageBytes {
		return l.tooLarge(n)
	}
	u, err := l.env.FS.Usage(l.o.Dir)
	if err != nil {
		return err
	}
	if u.Avail < n+roomForIndexes {
		return fmt.Errorf("%s: %d bytes left: %w", l.o.Dir, u.Avail, syscall.ENOSPC)
	}
	return nil
}

// roomForIndexes is what an append may need beside the bytes of its batch: a block for each index.
const roomForIndexes = 8 << 10
