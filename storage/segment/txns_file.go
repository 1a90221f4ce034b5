package segment

import (
	"errors"
	"io/fs"
	"os"

	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

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
