package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const (
	catalogVersion = 1
	catalogLimit   = 64 << 20
)

// MaxPartitions is how many partitions a topic may have.
const MaxPartitions = state.MaxPartitions

// catalog is the content of state.TopicsFile. It is not changed once written; a change makes a copy.
type catalog struct {
	Version  int                     `json:"version"`
	Topics   map[string]catalogTopic `json:"topics"`
	Deleting []deletion              `json:"deleting,omitempty"`
}

type catalogTopic struct {
	ID         string            `json:"id"`
	Partitions int32             `json:"partitions"`
	Config     map[string]string `json:"config,omitempty"`
	Created    time.Time         `json:"created"`
}

// deletion is a directory of a deleted topic that is on its way out: it has its old name, or the new one, or is gone already.
type deletion struct {
	Dir string `json:"dir"` // orders-0
	As  string `json:"as"`  // orders-0.<32 hexadecimal digits>-delete
}

func newCatalog() *catalog {
	return &catalog{Version: catalogVersion, Topics: map[string]catalogTopic{}}
}

func (c *catalog) clone() *catalog {
	return &catalog{Version: c.Version, Topics: maps.Clone(c.Topics), Deleting: slices.Clone(c.Deleting)}
}

// parseCatalog reads the file strictly: what it names is created and removed.
func parseCatalog(b []byte) (*catalog, error) {
	c := newCatalog()
	c.Version = 0
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	if c.Version != catalogVersion {
		return nil, fmt.Errorf("version %d: %w", c.Version, storage.ErrUnsupported)
	}
	if c.Topics == nil {
		c.Topics = map[string]catalogTopic{}
	}
	for name, t := range c.Topics {
		if err := t.check(name); err != nil {
			return nil, fmt.Errorf("topic %.80q: %w: %w", name, storage.ErrCorrupt, err)
		}
	}
	for _, d := range c.Deleting {
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("deleting %.80q: %w: %w", d.Dir, storage.ErrCorrupt, err)
		}
	}
	return c, nil
}

func (t *catalogTopic) check(name string) error {
	if err := state.ValidTopic(name); err != nil {
		return err
	}
	if _, err := state.ParseTopicID(t.ID); err != nil {
		return err
	}
	if t.Partitions < 1 || t.Partitions > MaxPartitions {
		return fmt.Errorf("%d partitions", t.Partitions)
	}
	_, err := ParseConfig(t.Config)
	return err
}

func (d *deletion) check() error {
	from, err := state.ParseDirName(d.Dir)
	if err != nil {
		return err
	}
	as, err := state.ParseDirName(d.As)
	if err != nil {
		return err
	}
	if from.Kind != state.DirNormal || as.Kind != state.DirDelete {
		return errors.New("the names are not those of a deletion")
	}
	return nil
}

func (c *catalog) format() ([]byte, error) {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", state.TopicsFile, err)
	}
	return append(b, '\n'), nil
}

// readCatalog returns the catalogue of a directory, or nil where there is none.
func readCatalog(fsys vfs.FS, dir string) (*catalog, error) {
	name := filepath.Join(dir, state.TopicsFile)
	b, err := vfs.ReadFile(fsys, name, catalogLimit)
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
func (e *Engine) writeCatalog(c *catalog) error {
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

func (e *Engine) putCatalog(c *catalog) error {
	b, err := c.format()
	if err != nil {
		return err
	}
	return vfs.WriteFile(e.o.FS, filepath.Join(e.o.Dir, state.TopicsFile), b, 0o644, e.owner)
}
