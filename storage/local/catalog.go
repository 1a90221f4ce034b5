package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// MaxPartitions is how many partitions a topic may have.
const MaxPartitions = state.MaxPartitions

// parseCatalog reads the file strictly: what it names is created and removed.
func parseCatalog(b []byte) (*state.Topics, error) {
	c, err := state.ParseTopics(b)
	if err != nil {
		return nil, err
	}
	for name, t := range c.Topics {
		if err := t.Check(name, CheckConfig); err != nil {
			return nil, fmt.Errorf("topic %.80q: %w: %w", name, storage.ErrCorrupt, err)
		}
	}
	for _, d := range c.Deleting {
		if err := d.Check(); err != nil {
			return nil, fmt.Errorf("deleting %.80q: %w: %w", d.Dir, storage.ErrCorrupt, err)
		}
	}
	return c, nil
}

// readCatalog returns the catalogue of a directory, or nil where there is none.
func readCatalog(fsys vfs.FS, dir string) (*state.Topics, error) {
	name := filepath.Join(dir, state.TopicsFile)
	b, err := vfs.ReadFile(fsys, name, state.MaxTopicsBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := parseCatalog(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// writeCatalog makes c durable and then the engine's catalogue. It needs Engine.change. A failure before the file got its name leaves the old one as it
// was. One behind that is put right by writing the old one again; if that cannot be done either, nobody knows which of the two the next start will find,
// and topics do not change until it could be done: see settleDoubt.
func (e *Engine) writeCatalog(c *state.Topics) error {
	err := e.putCatalog(c)
	if err == nil {
		e.catalog, e.doubt = c, nil
		return nil
	}
	if e.catalog == nil || !errors.Is(err, vfs.ErrNotDurable) {
		return err
	}
	if e.doubt = e.putCatalog(e.catalog); e.doubt != nil {
		reason := fmt.Sprintf("topics cannot be made or deleted for now, %s may be out of date: %v", state.TopicsFile, e.doubt)
		e.report(e.o.Dir, reason)
		e.o.Log.Error("the catalogue of topics is in doubt", "dir", e.o.Dir, "err", e.doubt)
	}
	return err
}

// settleDoubt makes the catalogue on disk the engine's again if it may be another, and takes back a topic whose making failed. It needs Engine.change.
func (e *Engine) settleDoubt() error {
	if e.doubt != nil {
		if err := e.putCatalog(e.catalog); err != nil {
			return fmt.Errorf("%s may be out of date: %w", state.TopicsFile, err)
		}
		e.doubt = nil
	}
	if e.refusal() == nil {
		refuseAll(e.doubted, nil)
	}
	e.doubted = nil
	if e.halfMade != nil {
		return e.undo(e.halfMade)
	}
	return nil
}

func (e *Engine) putCatalog(c *state.Topics) error {
	b, err := c.Format()
	if err != nil {
		return err
	}
	return vfs.WriteFile(e.o.FS, filepath.Join(e.o.Dir, state.TopicsFile), b, 0o644, e.owner)
}
