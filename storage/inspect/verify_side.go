package inspect

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// side is an open file of entries beside a log, read forward.
type side struct {
	path string
	f    vfs.File
	size int64
	n    int // entries before the padding
	in   *bufio.Reader
}

// next reads the next entry into b; false at the end. A file that ends early, or cannot be read, is err.
func (s *side) next(b []byte) (bool, error) {
	if s.n == 0 {
		return false, nil
	}
	s.n--
	_, err := io.ReadFull(s.in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil // it has been cut meanwhile
	}
	return err == nil, err
}

// openSide opens an index file; nil where it is missing or cannot be read.
func (c *segCheck) openSide(ext string, entry int, count func(io.ReaderAt, int64) (int, error)) *side {
	s := &side{path: c.path(ext)}
	f, err := c.v.fsys.OpenFile(c.v.path(s.path), os.O_RDONLY, 0)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || c.s.files[ext] {
			c.r.failed(s.path, err)
		}
		return nil
	}
	s.f = f
	st, err := f.Stat()
	if err == nil {
		s.size = st.Size
		s.n, err = count(f, s.size)
	}
	if err != nil {
		c.r.failed(s.path, err)
		_ = f.Close() // only read
		return nil
	}
	s.in = bufio.NewReaderSize(io.NewSectionReader(f, 0, int64(s.n)*int64(entry)), 16<<10)
	return s
}

// openSides opens what lies beside the log and notes what is missing.
func (c *segCheck) openSides() {
	has := c.s.files
	if has[state.ExtIndex] {
		if s := c.openSide(state.ExtIndex, index.OffsetEntrySize, index.CountOffsets); s != nil {
			c.offsets = &offsetCheck{side: s}
			c.checkLength(s, index.OffsetEntrySize, IndexLength, IndexPadding)
			c.offsets.advance(c)
		}
	}
	if has[state.ExtTimeIndex] {
		if s := c.openSide(state.ExtTimeIndex, index.TimeEntrySize, index.CountTimes); s != nil {
			c.times = newTimeCheck(s)
			c.checkLength(s, index.TimeEntrySize, TimeIndexLength, TimeIndexPadding)
			c.times.advance(c)
		}
	}
	const rebuild = "remove " + state.ExtIndex + " and " + state.ExtTimeIndex + ": a start builds both"
	switch {
	case !has[state.ExtIndex] && has[state.ExtTimeIndex] && c.p.adopt, !has[state.ExtIndex]:
		c.r.add(about(c.path(state.ExtIndex), Notice, IndexMissing, "the next start builds it", "there is no %s", state.ExtIndex))
	case !has[state.ExtTimeIndex]:
		c.r.add(about(c.path(state.ExtTimeIndex), noticeIf(c.recovers && !c.p.adopt), TimeIndexMissing, rebuild,
			"there is no %s, and a broker does not build one where %s is there: searches by time and retention go wrong", state.ExtTimeIndex, state.ExtIndex))
	}
	if has[state.ExtSizeIndex] {
		c.openSizes()
	}
	c.openTxns()
}

func (c *segCheck) closeSides() {
	if c.offsets != nil {
		_ = c.offsets.side.f.Close() // only read
	}
	if c.times != nil {
		_ = c.times.side.f.Close()
	}
}

// checkLength looks at what lies behind the entries of an index.
func (c *segCheck) checkLength(s *side, entry int64, length, padding What) {
	used := int64(s.n) * entry
	if s.size%entry != 0 {
		c.r.add(about(s.path, noticeIf(c.recovers), length, rebuildIndexes, "%d bytes are not a whole number of entries", s.size))
	}
	if used >= s.size-s.size%entry {
		return
	}
	if err := index.CheckPadding(s.f, used, s.size); err != nil {
		f := about(s.path, Damage, padding, rebuildIndexes, "%v", index.At(s.path, err))
		f.Pos = posIn(err)
		c.r.add(f)
		return
	}
	if c.recovers || c.p.raft {
		return // preallocated while the segment is written to
	}
	f := about(s.path, Damage, padding, rebuildIndexes, "%d bytes of zeros behind the entries of a closed index count as entries", s.size-used)
	f.Pos = posOf(used)
	c.r.add(f)
}

const rebuildIndexes = "remove .index and .timeindex of the segment: the next start builds both"
