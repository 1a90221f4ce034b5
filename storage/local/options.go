package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

const defaultMaxFiles = 512

// Options says what to open and how. FS, Dir, Now and Rand are required.
type Options struct {
	FS       vfs.FS
	Dir      string // the log directory, an absolute path
	ReadOnly bool
	Create   bool                 // make the directory and those above it; without it the directory alone is made, if its parent is there
	CacheDir string               // where size indexes of directories that may not be written are kept; "" keeps them in memory
	MaxFiles int                  // descriptors to keep open; 0 is a default
	Now      func() time.Time     // the clock
	Rand     io.Reader            // random bytes for ids; used by one goroutine at a time
	Report   func(storage.Report) // told of damage and of what was put right; may be nil; called by many goroutines
	Log      *slog.Logger         // may be nil
	// Committed hides what aborted transactions wrote and ends logs at their last stable offset.
	Committed bool
	// ReadWrite allows to append to the logs of a directory that is another's, and to delete from their start. It changes nothing for one of ours.
	ReadWrite bool
	// MetadataDirs are directories in which to look for the metadata log of a broker's cluster, after the log directory itself.
	MetadataDirs []string
	// Unreplicated are topics of a broker whose partitions are taken to have no other replica although nobody tells.
	Unreplicated []string
	// Exact takes batches as a follower does: with their producers, transactions and, where that is possible, offsets. It is for directories of ours.
	Exact    bool
	LockWait time.Duration // how long to wait for a lock that somebody holds
	// OneOfSeveral refuses a directory that is missing, or that is ours or empty and so would become ours: only what others made is shown together.
	OneOfSeveral bool

	noLoops bool // an import has no use for the background loops, and tests call their bodies themselves
}

func (o *Options) complete() error {
	switch {
	case o.FS == nil || o.Now == nil || o.Rand == nil:
		return errors.New("options: FS, Now and Rand are required")
	case o.ReadWrite && o.Exact:
		return errors.New("options: batches are not taken exactly in a directory that is another's")
	case !filepath.IsAbs(o.Dir):
		return fmt.Errorf("options: directory %q is not an absolute path", o.Dir)
	}
	o.Dir = filepath.Clean(o.Dir)
	if o.MaxFiles <= 0 {
		o.MaxFiles = defaultMaxFiles
	}
	if o.Report == nil {
		o.Report = func(storage.Report) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// cacheDir returns the directory for what is remembered of this log directory: log directories share a cache.
func (o *Options) cacheDir() string {
	if o.CacheDir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(o.Dir))
	return filepath.Join(o.CacheDir, hex.EncodeToString(sum[:8]))
}
