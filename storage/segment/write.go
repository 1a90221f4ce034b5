package segment

import (
	"os"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
)

// Piece is what one append adds to one segment: bytes for the log at Pos and entries for the index files behind the ones that are there.
type Piece struct {
	Log            []byte
	Pos            storage.Pos
	Offsets, Times []byte
	NOffsets       int // entries in the files before
	NTimes         int
}

// Write writes a piece: the log first, then the indexes. After an error Cut brings the files back.
func (s *Segment) Write(p *Piece) error {
	if err := s.writeAt(s.logPath(), p.Log, int64(p.Pos)); err != nil {
		return err
	}
	if err := s.writeAt(s.indexPath(), p.Offsets, int64(p.NOffsets)*index.OffsetEntrySize); err != nil {
		return err
	}
	return s.writeAt(s.timeIndexPath(), p.Times, int64(p.NTimes)*index.TimeEntrySize)
}

func (s *Segment) writeAt(path string, b []byte, pos int64) error {
	if len(b) == 0 {
		return nil
	}
	h, err := s.env.Files.Open(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer h.Unpin()
	_, err = h.WriteAt(b, pos)
	return err
}

// Cut truncates the files to what an appender knows of: size bytes of log and so many entries in the indexes.
func (s *Segment) Cut(size storage.Pos, offsets, times int) error {
	if err := s.truncate(s.logPath(), int64(size)); err != nil {
		return err
	}
	if err := s.truncate(s.indexPath(), int64(offsets)*index.OffsetEntrySize); err != nil {
		return err
	}
	return s.truncate(s.timeIndexPath(), int64(times)*index.TimeEntrySize)
}

func (s *Segment) truncate(path string, size int64) error {
	h, err := s.env.Files.Open(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer h.Unpin()
	st, err := h.Stat()
	if err != nil || st.Size <= size {
		return err
	}
	return h.Truncate(size)
}

// SyncLog puts the log on stable storage.
func (s *Segment) SyncLog() error { return s.sync(s.logPath()) }

// SyncAll puts the log and its indexes on stable storage.
func (s *Segment) SyncAll() error {
	for _, path := range []string{s.logPath(), s.indexPath(), s.timeIndexPath()} {
		if err := s.sync(path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Segment) sync(path string) error {
	h, err := s.env.Files.Open(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer h.Unpin()
	return h.Sync()
}

// ForgetFiles lets go of cached descriptors of files that are gone, or others under the same names now.
func (s *Segment) ForgetFiles() {
	for _, path := range []string{s.logPath(), s.indexPath(), s.timeIndexPath(), s.sizesPath()} {
		s.env.Files.Forget(path)
	}
}
