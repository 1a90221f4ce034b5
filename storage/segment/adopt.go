package segment

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/state"
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
		if have, a.Kept, err = s.resumeIndexes(&v, &a.Appender); err != nil {
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

// txnPath is the name of the transaction index.
func (s *Segment) txnPath() string { return s.path(state.ExtTxnIndex) }

// TxnsSize returns the bytes of whole entries in the transaction index; 0 where there is none.
func (s *Segment) TxnsSize() (int64, error) {
	st, err := s.env.FS.Stat(s.txnPath())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return st.Size / index.TxnEntrySize * index.TxnEntrySize, err
}

// WriteTxns writes entries into the transaction index at a position, making the file where it is missing.
func (s *Segment) WriteTxns(b []byte, at int64, owner vfs.Owner) error {
	if at == 0 {
		f, err := s.env.FS.OpenFile(s.txnPath(), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := owner.Apply(s.env.FS, s.txnPath()); err != nil {
			return err
		}
	}
	return s.writeAt(s.txnPath(), b, at)
}

// CutTxns ends the transaction index at size, and removes one that is then empty: a segment without an aborted transaction has none.
func (s *Segment) CutTxns(size int64) error {
	if size > 0 {
		return s.truncate(s.txnPath(), size)
	}
	err := s.env.FS.Remove(s.txnPath())
	s.env.Files.Forget(s.txnPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncTxns puts the transaction index on stable storage, if there is one.
func (s *Segment) SyncTxns() error {
	there, err := vfs.Exists(s.env.FS, s.txnPath())
	if err != nil || !there {
		return err
	}
	return s.sync(s.txnPath())
}

// ReadTxns returns the bytes of the transaction index; nil where there is no file.
func (s *Segment) ReadTxns() ([]byte, error) {
	b, err := vfs.ReadFile(s.env.FS, s.txnPath(), maxTxnsBytes)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrTooBig) {
		return nil, nil
	}
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

// maxTxnsBytes bounds what is read of a transaction index: a segment full of markers has less.
const maxTxnsBytes = 1 << 30
