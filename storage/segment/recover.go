package segment

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// Scanned is what a scan of a whole segment found: its state as an appender would have it, and its index files as the batches give them.
type Scanned struct {
	Appender
	Offsets, Times []byte // whole index files, the closing time entry not included
	// Bad is what ended the scan before the end of the file; nil where nothing did.
	Bad *storage.CorruptError
	// Lost reports that the scan passed over unreadable places below the durable offset.
	Lost bool
}

// Scan verifies the segment's batches from the first byte to size. At an unreadable place the scan ends if what it expects there is at or above
// durable; below that the place is damage: it is reported and passed over.
func (s *Segment) Scan(ctx context.Context, size storage.Pos, durable storage.Offset) (*Scanned, error) {
	r := &Scanned{Appender: s.NewAppender(0)}
	if size == 0 {
		return r, nil
	}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Unpin()
	w := &batchWalk{}
	w.scan.reset(s, f, 0, size, s.Base)
	defer w.scan.rest()
	for n := 0; ; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b, err := w.next()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		var ce *storage.CorruptError
		if errors.As(err, &ce) {
			if ce.Offset = w.scan.expected(ce.Pos); ce.Offset >= durable {
				r.Bad = ce
				return r, nil
			}
			r.Lost, r.lost = true, true
			s.report(ce)
			if err := w.scan.skip(ce.Pos); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		h := &w.scan.Header
		r.Size = w.scan.Pos // behind what was passed over
		if err := r.Add(h, w.sums(b), &r.Offsets, &r.Times); err != nil {
			return nil, err
		}
	}
}

// next returns the next whole batch, its checksum verified.
func (w *batchWalk) next() ([]byte, error) {
	err := w.scan.Next(chunkSize)
	if errors.Is(err, errTorn) {
		return nil, w.scan.bad(w.scan.next, err)
	}
	if err != nil {
		return nil, err
	}
	return w.scan.Batch()
}

// expected is the smallest offset that the batch at pos, found or not, could have had.
func (s *Scanner) expected(pos storage.Pos) storage.Offset {
	if pos == s.Pos && s.next > pos {
		return s.prev
	}
	return s.low
}

// Tail finds where the last whole batch of a segment ends, beginning at the last index entry that leads to a batch. It is how the end of a log is found
// that needs no recovery or may not be changed.
func (s *Segment) Tail(ctx context.Context, size storage.Pos) (v View, err error) {
	v = View{Segment: s, Size: size, Next: s.highest(), Tail: true}
	if size == 0 {
		v.Next = s.Base
		return v, nil
	}
	f, err := s.open()
	if err != nil {
		return v, err
	}
	defer f.Unpin()
	pos, low, err := v.posOf(ctx, f, s.highest())
	if err != nil {
		return v, err
	}
	for {
		end, next, err := s.validEnd(ctx, f, pos, low, size)
		if err != nil {
			return v, err
		}
		if end == pos && pos > 0 { // nothing whole behind the entry: look from the start
			pos, low = 0, s.Base
			continue
		}
		v.Size, v.Next = end, next
		return v, nil
	}
}

func (s *Segment) validEnd(ctx context.Context, f io.ReaderAt, pos storage.Pos, low storage.Offset, size storage.Pos) (storage.Pos, storage.Offset, error) {
	w := &batchWalk{}
	w.scan.reset(s, f, pos, size, low)
	defer w.scan.rest()
	end, next := pos, low
	for {
		if ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		_, err := w.next()
		var ce *storage.CorruptError
		switch {
		case err == nil:
			end, next = w.scan.next, w.scan.low
		case errors.Is(err, io.EOF):
			return end, next, nil
		case errors.As(err, &ce):
			// A whole batch with a wrong checksum may lie in the middle: what follows it decides.
			if err := w.scan.skip(ce.Pos); err != nil {
				return 0, 0, err
			}
			if w.scan.next >= size {
				return end, next, nil
			}
		default:
			return 0, 0, err
		}
	}
}

// Appender is the writing end of a segment. It is a small value: a writer copies it, adds batches to the copy, and keeps the copy once their bytes are
// in the files.
type Appender struct {
	seg     *Segment
	Size    storage.Pos
	Next    storage.Offset
	builder index.Builder
	sizes   index.SizeBuilder
	// firstMax is the largest timestamp of the first batch, from which segment.ms is counted; -1 where it has none.
	firstMax int64
	created  int64
	lost     bool // the segment has unreadable places
	Epochs   state.Epochs
}

// NewAppender returns the appender of the segment while it is empty. created is when that was, in milliseconds.
func (s *Segment) NewAppender(created int64) Appender {
	return Appender{
		seg: s, Next: s.Base, firstMax: storage.NoTimestamp, created: created,
		builder: index.NewBuilder(s.Base, s.interval, s.maxIndex),
		sizes:   index.SizeBuilder{Interval: max(s.interval, index.MinSizeInterval)},
	}
}

// Segment returns the segment that it appends to.
func (a *Appender) Segment() *Segment { return a.seg }

// Created sets when the segment was created, in milliseconds.
func (a *Appender) Created(ms int64) { a.created = ms }

// Add takes a batch that lies, or will lie, at the end of the log, and appends the index entries that it calls for.
func (a *Appender) Add(h *record.Header, sums Sums, offsets, times *[]byte) error {
	if a.Size == 0 {
		a.firstMax = h.MaxTimestamp
	}
	if err := appendEntries(&a.builder, a.seg.Base, h, a.Size, offsets, times); err != nil {
		return err
	}
	a.sizes.Add(h.BaseOffset, a.Size, sums)
	a.Size += storage.Pos(h.Size())
	a.Next = h.NextOffset()
	a.Epochs, _ = a.Epochs.Raise(h.LeaderEpoch, h.BaseOffset)
	return nil
}

// MustRoll reports whether a batch of n bytes belongs into a new segment: kafka-format's roll conditions.
func (a *Appender) MustRoll(n, maxTimestamp int64, last storage.Offset, segmentBytes, segmentMs, now int64) bool {
	if a.Size == 0 {
		return last-a.seg.Base > index.MaxRelative
	}
	waited := now - a.created
	if a.firstMax >= 0 {
		waited = maxTimestamp - a.firstMax
	}
	return int64(a.Size) > segmentBytes-n || waited > segmentMs || a.builder.Full() || last-a.seg.Base > index.MaxRelative
}

// View returns what the segment holds as far as the appender knows.
func (a *Appender) View() View {
	offsets, times := a.builder.Counts()
	ts, _ := a.builder.MaxTimestamp()
	return View{Segment: a.seg, Size: a.Size, Next: a.Next, Live: &Live{
		Offsets: offsets, Times: times, MaxTimestamp: ts,
		Sizes: Table{Entries: a.sizes.Entries(), Total: a.sizes.Total(), next: a.Next, lost: a.lost},
	}}
}

// Closing returns the bytes of the time index entry that closes the segment; none where it needs none.
func (a *Appender) Closing() ([]byte, error) {
	te, ok := a.builder.Close()
	if !ok {
		return nil, nil
	}
	return index.AppendTimeEntry(nil, a.seg.Base, te)
}

// Counts returns the entries in the two index files.
func (a *Appender) Counts() (offsets, times int) { return a.builder.Counts() }

// Resume makes the appender of a segment that was closed in order: its last batches are read from the last index entry on, its sums come from the size
// index. ok is false where the files do not agree; then Scan must do.
func (s *Segment) Resume(ctx context.Context, size storage.Pos) (a Appender, times int, ok bool, err error) {
	v, err := s.Tail(ctx, size)
	if err != nil || v.Size != size {
		return a, 0, false, err
	}
	h, whole, err := v.readSizes()
	if err != nil || (whole == nil && size > 0) || (size > 0 && h.NextOffset != v.Next) {
		return a, 0, false, err
	}
	a = s.NewAppender(0)
	if size == 0 {
		return a, 0, true, nil
	}
	_, entries, err := index.DecodeSizes(whole, s.Base)
	if err != nil {
		return a, 0, false, nil //nolint:nilerr // Derived: the log is scanned instead.
	}
	a.sizes = index.ResumeSizes(max(s.interval, index.MinSizeInterval), entries, h.Total)
	a.Size, a.Next = size, v.Next
	ok, times, err = s.resumeIndexes(ctx, &v, &a)
	return a, times, ok, err
}

// resumeIndexes puts the index builder as it was after the segment's batches, and says how many entries of the time index to keep.
func (s *Segment) resumeIndexes(ctx context.Context, v *View, a *Appender) (ok bool, keep int, err error) {
	info, err := v.indexInfo(ctx)
	if err != nil || info.memOffsets != nil {
		return false, 0, err
	}
	var lastOffset index.OffsetEntry
	var lastTime index.TimeEntry
	err = v.offsets(info, func(o index.Offsets) error {
		if o.N > 0 {
			if lastOffset, err = o.Entry(o.N - 1); err != nil {
				return err
			}
		}
		return v.times(info, func(t index.Times) error {
			if keep, err = index.TimesKept(o, t); err == nil && keep > 0 {
				lastTime, err = t.Entry(keep - 1)
			}
			return err
		})
	})
	if err != nil {
		return false, 0, nil // an index that cannot be read is built anew
	}
	maxTs, maxOffset := lastTime.Timestamp, lastTime.Offset
	if keep == 0 {
		maxTs, maxOffset = storage.NoTimestamp, s.Base
	}
	first := true
	err = v.eachHeader(ctx, 0, s.Base, func(h *record.Header, _ storage.Pos) error {
		a.firstMax, first = h.MaxTimestamp, false
		return errStop
	})
	if err = ignoreStop(err); err != nil || first {
		return false, 0, err
	}
	err = v.eachHeader(ctx, lastOffset.Pos, s.Base, func(h *record.Header, _ storage.Pos) error {
		if h.MaxTimestamp > maxTs {
			maxTs, maxOffset = h.MaxTimestamp, h.LastOffset()
		}
		a.Epochs, _ = a.Epochs.Raise(h.LeaderEpoch, h.BaseOffset)
		return nil
	})
	if err != nil {
		return false, 0, err
	}
	since := int64(a.Size)
	if info.offsets > 0 {
		since -= int64(lastOffset.Pos)
	}
	a.builder = index.ResumeBuilder(s.Base, s.interval, s.maxIndex, info.offsets, lastOffset, keep, lastTime, maxTs, maxOffset, since)
	return true, keep, nil
}

// WriteIndexes replaces both index files.
func (s *Segment) WriteIndexes(offsets, times []byte) error {
	if err := s.rewrite(s.indexPath(), offsets); err != nil {
		return err
	}
	if err := s.rewrite(s.timeIndexPath(), times); err != nil {
		return err
	}
	s.ForgetIndexes()
	return nil
}

func (s *Segment) rewrite(path string, b []byte) error {
	h, err := s.env.Files.Open(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer h.Unpin()
	if len(b) > 0 { // before the file is cut: a reader that has it open finds entries at all times
		if _, err := h.WriteAt(b, 0); err != nil {
			return err
		}
	}
	if err := h.Truncate(int64(len(b))); err != nil {
		return err
	}
	return h.Sync()
}
