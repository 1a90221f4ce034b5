package segment

import (
	"context"
	"math"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

// Adopted is a segment that somebody else has written and closed in order, as an appender would have it.
type Adopted struct {
	Appender
	// Kept is how many entries of the time index stay: the closing one goes, and so does the padding of an index that was allocated ahead.
	Kept int
	// Rewrite says that an index is missing or cannot be used, so that both are to be replaced by Offsets and Times.
	Rewrite        bool
	Offsets, Times []byte
}

// Adopt makes the appender of a segment that was closed in order. Nothing is written. ok is false where its log does not end with a whole batch.
func (s *Segment) Adopt(ctx context.Context, size storage.Pos) (a *Adopted, ok bool, err error) {
	v, err := s.Tail(ctx, size)
	if err != nil {
		return nil, false, err
	}
	if v.Size != size {
		return nil, false, nil
	}
	a = &Adopted{}
	complete, err := s.indexed()
	if err != nil {
		return nil, false, err
	}
	have := false
	if complete {
		if a.Appender, a.Kept, have, err = s.Resume(ctx, size); err != nil || have {
			return a, err == nil, err
		}
	}
	// Places that cannot be read stay where they are: nobody looks for the end of the log there.
	r, err := s.Scan(ctx, size, math.MaxInt64)
	if err != nil {
		return nil, false, err
	}
	if r.Size != size {
		return nil, false, nil
	}
	whole := r.Appender
	a.Appender = whole
	if size > 0 && complete {
		if have, a.Kept, err = s.resumeIndexes(ctx, &v, &a.Appender); err != nil {
			return nil, false, err
		}
	}
	if !have {
		a.Appender, a.Rewrite, a.Offsets, a.Times = whole, true, r.Offsets, r.Times
		_, a.Kept = whole.Counts()
	}
	return a, true, nil
}

// indexed reports whether both index files are there.
func (s *Segment) indexed() (bool, error) {
	for _, path := range []string{s.indexPath(), s.timeIndexPath()} {
		if there, err := vfs.Exists(s.env.FS, path); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// GiveTo gives the log and its indexes to their owner.
func (s *Segment) GiveTo(owner vfs.Owner) error {
	for _, path := range []string{s.logPath(), s.indexPath(), s.timeIndexPath()} {
		if err := owner.Apply(s.env.FS, path); err != nil {
			return err
		}
	}
	return nil
}
