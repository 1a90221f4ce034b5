package repair

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const markerLimit = 4096

// session is a log directory that nobody else writes to.
type session struct {
	*disk
	lock   vfs.Lock
	marker []byte // taken away; nil where it was not
}

// open locks a log directory.
func open(d *disk) (*session, error) {
	lock, err := d.fs.Lock(d.path(state.LockFile), 0o644)
	if err != nil {
		return nil, err
	}
	s := &session{disk: d, lock: lock}
	owner, err := d.ownerOf(".")
	if err == nil {
		err = owner.Apply(d.fs, d.path(state.LockFile))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("files cannot be given to the owner of the directory: %w", err), s.close())
	}
	return s, nil
}

func (s *session) close() error { return s.lock.Release() }

// held makes sure that the lock is still ours.
func (s *session) held() error {
	if s.lock.Ours() {
		return nil
	}
	return fmt.Errorf("%s: %w: the file is not ours any more", s.path(state.LockFile), storage.ErrLocked)
}

// takeMarker takes the marker of a clean shutdown away, durably, and remembers it.
func (s *session) takeMarker() error {
	if s.marker != nil {
		return nil
	}
	b, err := vfs.ReadFile(s.fs, s.path(state.CleanMarkerFile), markerLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, vfs.ErrTooBig):
		b = state.FormatCleanMarker(state.UnknownBrokerEpoch) // only that it is there counts
	case err != nil:
		return err
	}
	if err := s.fs.Remove(s.path(state.CleanMarkerFile)); err != nil {
		return err
	}
	s.marker = append([]byte{}, b...)
	return s.syncDir(".")
}

// putMarker puts the marker back where there was one.
func (s *session) putMarker() error {
	if s.marker == nil {
		return nil
	}
	return s.write(state.CleanMarkerFile, s.marker)
}
