package segment

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// indexes holds what is known of a closed segment's offset and time index: how many entries may be used, and the entries themselves where they had to be
// rebuilt because a file is missing. A live segment's are known from its view.
type indexes struct {
	gate gate       // held by whoever loads
	info *indexInfo // guarded by Segment.mu
}

type indexInfo struct {
	offsets, times int
	memOffsets     []byte // entries rebuilt in memory; nil = in the file
	memTimes       []byte
	// maxTimestamp is the largest timestamp of the segment, or unknownTimestamp.
	maxTimestamp int64
}

// unknownTimestamp stands for a largest timestamp that only a scan could tell.
const unknownTimestamp = 1<<63 - 1

// indexInfo returns what may be used of the index files, loading or rebuilding them at the first call.
func (v *View) indexInfo(ctx context.Context) (*indexInfo, error) {
	s := v.Segment
	if v.Live != nil {
		return &indexInfo{offsets: v.Live.Offsets, times: v.Live.Times, maxTimestamp: v.Live.MaxTimestamp}, nil
	}
	s.mu.Lock()
	info := s.indexes.info
	s.mu.Unlock()
	if info != nil {
		return info, nil
	}
	if err := s.enter(ctx, &s.indexes.gate); err != nil {
		return nil, err
	}
	defer s.leave(&s.indexes.gate)
	s.mu.Lock()
	info = s.indexes.info
	s.mu.Unlock()
	if info != nil {
		return info, nil
	}
	info, err := v.loadIndexes(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.indexes.info = info
	s.mu.Unlock()
	return info, nil
}

func (v *View) loadIndexes(ctx context.Context) (*indexInfo, error) {
	info := &indexInfo{maxTimestamp: unknownTimestamp}
	n, err := v.count(v.indexPath(), func(r io.ReaderAt, size int64) (int, error) { return index.CountOffsets(r, size) })
	if errors.Is(err, fs.ErrNotExist) {
		return v.rebuildIndexes(ctx)
	}
	if err != nil {
		return nil, err
	}
	info.offsets = n
	info.times, err = v.count(v.timeIndexPath(), func(r io.ReaderAt, size int64) (int, error) { return index.CountTimes(r, size) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = nil // without a time index the offset index serves
	if info.times > 0 && !v.Tail {
		err = v.withTimes(info, func(t index.Times) error {
			e, err := t.Entry(info.times - 1)
			if err == nil {
				info.maxTimestamp = e.Timestamp
			}
			return err
		})
	}
	return info, err
}

// ForgetIndexes makes the next reader look at the index files again.
func (s *Segment) ForgetIndexes() {
	s.mu.Lock()
	s.indexes.info = nil
	s.mu.Unlock()
}

func (v *View) count(path string, n func(io.ReaderAt, int64) (int, error)) (int, error) {
	h, err := v.env.Files.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer h.Unpin()
	st, err := h.Stat()
	if err != nil {
		return 0, err
	}
	return n(h, st.Size)
}

// rebuildIndexes builds both indexes in memory from the log's batch headers.
func (v *View) rebuildIndexes(ctx context.Context) (*indexInfo, error) {
	info := &indexInfo{memOffsets: []byte{}, memTimes: []byte{}, maxTimestamp: -1}
	b := index.NewBuilder(v.Base, max(v.interval, 4096), v.maxIndex)
	err := v.eachHeader(ctx, 0, v.Base, func(h *record.Header, pos storage.Pos) error {
		return appendEntries(&b, v.Base, h, pos, &info.memOffsets, &info.memTimes)
	})
	if err != nil {
		return nil, err
	}
	if te, ok := b.Close(); ok {
		if info.memTimes, err = index.AppendTimeEntry(info.memTimes, v.Base, te); err != nil {
			return nil, err
		}
	}
	info.offsets, info.times = len(info.memOffsets)/index.OffsetEntrySize, len(info.memTimes)/index.TimeEntrySize
	info.maxTimestamp, _ = b.MaxTimestamp()
	return info, nil
}

// appendEntries adds one batch to a builder and the entries that it calls for to the two indexes.
func appendEntries(b *index.Builder, base storage.Offset, h *record.Header, pos storage.Pos, offsets, times *[]byte) error {
	addOffset, oe, addTime, te := b.Add(h.LastOffset(), h.MaxTimestamp, pos, h.Size())
	var err error
	if addOffset {
		if *offsets, err = index.AppendOffsetEntry(*offsets, base, oe); err != nil {
			return err
		}
	}
	if addTime {
		*times, err = index.AppendTimeEntry(*times, base, te)
	}
	return err
}

// eachHeader calls fn with the header of each batch from pos on, until fn returns errStop.
func (v *View) eachHeader(ctx context.Context, pos storage.Pos, low storage.Offset, fn func(h *record.Header, pos storage.Pos) error) error {
	return v.walkHeaders(ctx, pos, low, func(w *batchWalk) error { return fn(&w.scan.Header, w.scan.Pos) })
}

// Epochs returns the leader epochs that the batches carry.
func (v *View) Epochs(ctx context.Context) (state.Epochs, error) {
	var out state.Epochs
	err := v.eachHeader(ctx, 0, v.Base, func(h *record.Header, _ storage.Pos) error {
		if h.Magic >= 2 {
			out, _ = out.Raise(h.LeaderEpoch, h.BaseOffset)
		}
		return nil
	})
	return out, err
}

// headAhead is how much to read at once when only headers are wanted: nothing but the header where batches are large.
func (s *Scanner) headAhead() int {
	if s.Pos >= 0 && s.Header.Size() > headChunk/2 {
		return record.HeaderSize
	}
	return headChunk
}

// withOffsets calls fn with the offset index. Where an entry that fn reads makes no sense it goes on as if there were none: whoever asks begins further up.
func (v *View) withOffsets(info *indexInfo, fn func(index.Offsets) error) error {
	return hint(v.offsets(info, fn))
}

// withTimes is withOffsets for the time index.
func (v *View) withTimes(info *indexInfo, fn func(index.Times) error) error {
	return hint(v.times(info, fn))
}

// hint forgives what is wrong in an index: the log itself tells.
func hint(err error) error {
	if errors.Is(err, storage.ErrCorrupt) {
		return nil
	}
	return err
}

func (v *View) offsets(info *indexInfo, fn func(index.Offsets) error) error {
	if info.memOffsets != nil {
		return fn(index.Offsets{R: bytes.NewReader(info.memOffsets), N: info.offsets, Base: v.Base})
	}
	if info.offsets == 0 {
		return fn(index.Offsets{R: bytes.NewReader(nil), Base: v.Base})
	}
	h, err := v.env.Files.Open(v.indexPath(), os.O_RDONLY, 0)
	if err != nil {
		return missing(err, v.logPath())
	}
	defer h.Unpin()
	return shorter(h, info.offsets, index.OffsetEntrySize, func(n int) error { return fn(index.Offsets{R: h, N: n, Base: v.Base}) })
}

// shorter calls fn with the number of entries that an index is known to have. Where the file turns out to be shorter it calls it again with what there is: who
// begins to write a log of another's trims its indexes, and has perhaps written to them again before they are looked at here.
func shorter(h *vfs.Handle, n int, size int64, fn func(n int) error) error {
	const tries = 4
	for i := 0; ; i++ {
		err := fn(n)
		if i == tries || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		st, serr := h.Stat()
		if serr != nil {
			return err
		}
		n = int(min(int64(n), st.Size/size))
	}
}

func (v *View) times(info *indexInfo, fn func(index.Times) error) error {
	if info.memTimes != nil {
		return fn(index.Times{R: bytes.NewReader(info.memTimes), N: info.times, Base: v.Base})
	}
	if info.times == 0 {
		return fn(index.Times{R: bytes.NewReader(nil), Base: v.Base})
	}
	h, err := v.env.Files.Open(v.timeIndexPath(), os.O_RDONLY, 0)
	if err != nil {
		return missing(err, v.logPath())
	}
	defer h.Unpin()
	return shorter(h, info.times, index.TimeEntrySize, func(n int) error { return fn(index.Times{R: h, N: n, Base: v.Base}) })
}

// missing turns the absence of a file that was there before into what it means: the segment has been deleted.
func missing(err error, path string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return gone(path)
	}
	return err
}

// posOf returns a position at which a batch starts and before which no batch holds o or a later offset, near the batch that does, and the smallest
// offset that can stand there. An entry of the index that does not lead to the batch that it names is passed over.
func (v *View) posOf(ctx context.Context, log io.ReaderAt, o storage.Offset) (storage.Pos, storage.Offset, error) {
	if o <= v.Base {
		return 0, v.Base, nil
	}
	info, err := v.indexInfo(ctx)
	if err != nil {
		return 0, 0, err
	}
	pos, low := storage.Pos(0), v.Base
	err = v.withOffsets(info, func(x index.Offsets) error {
		for bound, tries := o, 0; tries < 8; tries++ {
			e, i, err := x.Floor(bound)
			if err != nil || i < 0 {
				return err
			}
			if h, ok := v.headerAt(log, e.Pos); ok && firstKnown(&h) <= e.Offset && h.BaseOffset <= o {
				pos, low = e.Pos, h.BaseOffset
				return nil
			}
			bound = e.Offset - 1
		}
		return nil // an index that is wrong so often is worth nothing
	})
	return pos, low, err
}

// headerAt reads the header of the batch that should start at pos.
func (v *View) headerAt(log io.ReaderAt, pos storage.Pos) (record.Header, bool) {
	var b [record.HeaderSize]byte
	if pos < 0 || pos >= v.Size {
		return record.Header{}, false
	}
	n, _ := log.ReadAt(b[:min(int64(len(b)), int64(v.Size-pos))], int64(pos))
	f, err := record.ParseFrame(b[:n])
	if err != nil || f.Size > int64(v.Size-pos) || f.Offset < v.Base || f.Offset > v.highest() {
		return record.Header{}, false
	}
	h, err := parseHeader(b[:n], v.Base)
	return h, err == nil
}
