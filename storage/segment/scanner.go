package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// chunkSize is what a scanner reads ahead at a time when it needs the batches' bytes; firstChunk is the same where one record may be all that is wanted;
// headChunk when headers are enough.
const (
	chunkSize  = 256 << 10
	firstChunk = 32 << 10
	headChunk  = 16 << 10
)

var chunks = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

// errTorn ends a scan at a batch that reaches behind the end of the file, or at zeros: the log ends there unless something says that it should not.
var errTorn = errors.New("torn batch")

// Scanner walks over the batches of a log between two positions. It is for one goroutine.
type Scanner struct {
	seg  *Segment
	r    io.ReaderAt
	end  storage.Pos
	next storage.Pos    // where the next batch starts
	low  storage.Offset // no batch at next may start below this
	prev storage.Offset // what low was before the batch that Next found
	// behind is where the entry ends that the last call of Next met, if its length can be: maybe a good entry follows although it is not one.
	behind storage.Pos

	pool *[]byte // of chunks, nil while the scanner stands still
	big  []byte  // for a batch larger than a chunk
	buf  []byte  // bytes [at, at+len) of the file
	at   storage.Pos

	// Of the batch that Next found.
	Header record.Header
	Pos    storage.Pos
}

// reset makes the scanner walk [from, end) of r. low is the smallest offset that may come.
func (s *Scanner) reset(seg *Segment, r io.ReaderAt, from, end storage.Pos, low storage.Offset) {
	s.seg, s.r, s.next, s.end, s.low, s.prev, s.Pos, s.behind = seg, r, from, end, low, low, -1, from
	s.buf, s.at = s.buf[:0], 0
}

// rest gives the buffer back. The scanner may be used again.
func (s *Scanner) rest() {
	if s.pool != nil {
		chunks.Put(s.pool)
		s.pool = nil
	}
	s.buf, s.big, s.at = nil, nil, 0
}

// fill makes bytes [pos, pos+n) available, reading up to ahead bytes at once, and returns what follows pos: fewer than n bytes at the end only.
func (s *Scanner) fill(pos storage.Pos, n, ahead int) ([]byte, error) {
	if pos >= s.at && int(pos-s.at)+n <= len(s.buf) {
		return s.buf[pos-s.at:], nil
	}
	want := int(min(int64(s.end-pos), int64(max(n, ahead))))
	if want <= 0 {
		return nil, nil
	}
	if s.pool == nil {
		s.pool = chunks.Get().(*[]byte)
	}
	b := *s.pool
	if want > len(b) {
		if want > cap(s.big) {
			s.big = make([]byte, want)
		}
		b = s.big[:want]
	}
	m, err := s.r.ReadAt(b[:want], int64(pos))
	s.buf, s.at = b[:m], pos
	if m < min(n, want) && err != nil && !errors.Is(err, io.EOF) {
		s.buf = s.buf[:0]
		return nil, err
	}
	return s.buf, nil
}

// Next goes to the next batch and reads its header as parseHeader does; it neither reads nor checks the rest. io.EOF at the end; errTorn where the last
// batch is not whole; a *storage.CorruptError where no batch starts, after which skip finds the next one.
func (s *Scanner) Next(ahead int) error {
	if s.next >= s.end {
		return io.EOF
	}
	s.behind = s.next
	b, err := s.fill(s.next, record.HeaderSize, ahead)
	if err != nil {
		return err
	}
	f, err := record.ParseFrame(b)
	switch {
	case errors.Is(err, record.ErrTruncated), errors.Is(err, record.ErrZero):
		return errTorn
	case err != nil:
		return s.corrupt(err)
	}
	if f.Size > int64(s.end-s.next) {
		if f.Offset < s.low || f.Offset > s.seg.highest() {
			return s.corrupt(fmt.Errorf("offset %d does not belong here", f.Offset))
		}
		return errTorn
	}
	s.behind += storage.Pos(f.Size)
	h, err := parseHeader(b, s.low)
	if err != nil {
		if f.Magic < 2 || !errors.Is(err, storage.ErrUnsupported) {
			return s.corrupt(err)
		}
		h = record.Header{BaseOffset: f.Offset, Length: int32(f.Size - 12), Magic: f.Magic, BaseTimestamp: -1, MaxTimestamp: -1, Count: 1}
	}
	if h.BaseOffset < s.low && h.BaseOffset >= s.prev && s.Pos >= 0 {
		// Where the batch before ends is told by its header. If nobody has verified that, it may be what is wrong.
		if _, err := s.Batch(); err != nil {
			s.low = s.prev
			return s.Next(ahead)
		}
	}
	if h.BaseOffset < s.low || h.LastOffset() > s.seg.highest() {
		return s.corrupt(fmt.Errorf("offsets %d to %d do not belong here, expected %d or more", h.BaseOffset, h.LastOffset(), s.low))
	}
	if firstKnown(&h) > s.low {
		if err := s.checkGap(&h); err != nil {
			return s.corrupt(err)
		}
	}
	s.Header, s.Pos = h, s.next
	s.next += storage.Pos(f.Size)
	s.prev, s.low = s.low, h.NextOffset()
	return nil
}

// checkGap looks at a batch that starts above the expected offset. The checksum does not cover a batch's offset: where the batch behind it starts lower,
// but not too low, the offset is what is wrong.
func (s *Scanner) checkGap(h *record.Header) error {
	b, err := s.fill(s.next+storage.Pos(h.Size()), record.FrameSize, record.FrameSize)
	if err != nil || len(b) < record.FrameSize {
		return err
	}
	if f, err := record.ParseFrame(b); err == nil && f.Offset >= s.low && f.Offset < h.NextOffset() {
		return fmt.Errorf("offset %d before a batch with offset %d", h.BaseOffset, f.Offset)
	}
	return nil
}

// highest is the largest offset that the segment can hold.
func (s *Segment) highest() storage.Offset {
	return s.Base + min(index.MaxRelative, math.MaxInt64-1-s.Base)
}

// Batch returns the whole batch that Next found, its checksum verified. It is valid until the next call.
func (s *Scanner) Batch() ([]byte, error) {
	b, err := s.raw()
	if err != nil {
		return nil, err
	}
	if err := record.CheckCRC(b); err != nil {
		return nil, s.bad(s.Pos, err)
	}
	return b, nil
}

func (s *Scanner) raw() ([]byte, error) {
	n := s.Header.Size()
	if n > maxBatchBytes {
		return nil, s.bad(s.Pos, fmt.Errorf("a batch of %d bytes is too large to be read", n))
	}
	b, err := s.fill(s.Pos, int(n), chunkSize)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) < n {
		return nil, s.bad(s.Pos, io.ErrUnexpectedEOF)
	}
	return b[:n], nil
}

func (s *Scanner) corrupt(err error) error { return s.bad(s.next, err) }

func (s *Scanner) bad(pos storage.Pos, err error) *storage.CorruptError {
	o := s.low
	if pos == s.Pos && s.next > s.Pos {
		o = s.Header.BaseOffset
	}
	return &storage.CorruptError{Path: s.seg.logPath(), Pos: pos, Offset: o, Reason: "unreadable batch", Err: err}
}

// skip goes behind the unreadable bytes at pos, where the batch that was found starts or the next should: the next call of Next is for the first place
// behind it at which a good batch starts, or for the end.
func (s *Scanner) skip(pos storage.Pos) error {
	if pos == s.Pos && s.next > pos {
		s.low = s.prev // the offsets in a damaged header are worth nothing
	}
	next, err := s.seg.resync(s.r, pos, s.behind, s.end, s.low)
	if err != nil {
		return err
	}
	s.next = next
	return nil
}
