package segment

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// resync finds the first position behind pos at which a whole batch with a right checksum starts whose offsets fit: at least low and within the
// segment. It returns end where there is none. What was found is remembered, so that a damaged log is searched once.
//
// Where what is unreadable has a length that leads to such a batch, behind, or to the end, that is taken: bytes inside it may look like batches too.
func (s *Segment) resync(r io.ReaderAt, pos, behind, end storage.Pos, low storage.Offset) (storage.Pos, error) {
	s.mu.Lock()
	next, known := s.bad[pos]
	s.mu.Unlock()
	if known && next <= end {
		return next, nil
	}
	next, err := behind, error(nil)
	if behind <= pos || !s.goodAt(r, behind, end, low) {
		next, err = s.search(r, pos+1, end, low)
	}
	if err != nil {
		return 0, err
	}
	if next < end {
		s.mu.Lock()
		if s.bad == nil {
			s.bad = map[storage.Pos]storage.Pos{}
		}
		if len(s.bad) < 10000 {
			s.bad[pos] = next
		}
		s.mu.Unlock()
	}
	return next, nil
}

// goodAt reports whether pos is the end or a good batch starts there.
func (s *Segment) goodAt(r io.ReaderAt, pos, end storage.Pos, low storage.Offset) bool {
	if pos == end {
		return true
	}
	var head [record.HeaderSize]byte
	n, _ := r.ReadAt(head[:min(int64(len(head)), int64(end-pos))], int64(pos))
	size, err := s.goodBatch(r, head[:n], pos, end, low)
	return err == nil && size > 0
}

func (s *Segment) search(r io.ReaderAt, pos, end storage.Pos, low storage.Offset) (storage.Pos, error) {
	const window = 1 << 20
	budget := 64<<20 + 4*int64(end-pos) // of bytes to checksum: what looks like batches may overlap without end
	buf, zeros := make([]byte, window+record.HeaderSize), make([]byte, window+record.HeaderSize)
	for pos < end {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), int64(end-pos))], int64(pos))
		if n < record.FrameSize {
			if err != nil && err != io.EOF {
				return 0, err
			}
			return end, nil
		}
		starts := n - record.HeaderSize + 1 // places whose header is in buf, if it is not cut short by the end
		if storage.Pos(n) == end-pos {
			starts = n - record.FrameSize + 1
		}
		if bytes.Equal(buf[:n], zeros[:n]) { // preallocated, or a hole: there may be a lot of it
			pos += storage.Pos(max(starts, 1))
			continue
		}
		for i := range starts {
			if buf[i+16] > 2 || buf[i] != 0 {
				continue
			}
			o := storage.Offset(binary.BigEndian.Uint64(buf[i:]))
			if o < low || o > s.highest() {
				continue
			}
			size, err := s.goodBatch(r, buf[i:n], pos+storage.Pos(i), end, low)
			if err != nil {
				return 0, err
			}
			if size > 0 {
				return pos + storage.Pos(i), nil
			}
			if budget += size; budget <= 0 {
				return end, nil
			}
		}
		pos += storage.Pos(max(starts, 1))
	}
	return end, nil
}

// goodBatch returns the size of the batch at pos if it is one, or minus the number of bytes that had to be looked at to tell that it is not.
func (s *Segment) goodBatch(r io.ReaderAt, head []byte, pos, end storage.Pos, low storage.Offset) (int64, error) {
	h, err := parseHeader(head, low)
	if err != nil || h.BaseOffset < low || h.LastOffset() > s.highest() || h.Size() > int64(end-pos) || h.Size() > maxBatchBytes {
		return 0, nil //nolint:nilerr // No batch starts here.
	}
	b := head
	if int64(len(b)) < h.Size() {
		b = make([]byte, h.Size())
		if n, err := r.ReadAt(b, int64(pos)); int64(n) < h.Size() {
			if err != nil && err != io.EOF {
				return 0, err
			}
			return 0, nil
		}
	}
	if record.CheckCRC(b[:h.Size()]) != nil {
		return -h.Size(), nil //nolint:nilerr // No good batch starts here.
	}
	return h.Size(), nil
}
