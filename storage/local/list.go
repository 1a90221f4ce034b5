package local

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// sighting is what was seen of the directory when it was last listed.
type sighting struct {
	info   vfs.FileInfo
	at     time.Time
	locked bool
	aside  []storage.Aside
	remote bool
}

// refresh lists the directory anew if it may have changed. Only an engine that does not write it needs that.
func (e *Engine) refresh() error {
	e.look.Lock()
	defer e.look.Unlock()
	info, err := e.o.FS.Stat(e.o.Dir)
	if err != nil {
		return fmt.Errorf("log directory: %w", err)
	}
	if e.unchanged(info) {
		return nil
	}
	return e.list()
}

func (e *Engine) unchanged(info vfs.FileInfo) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s := &e.seen
	return s.info.Still(info, s.at)
}

// list reads the directory's listing and makes the topics in it known. Logs whose directory is there as before stay as they are.
func (e *Engine) list() error {
	at := e.o.Now()
	l, err := scan(e.o.FS, e.o.Dir)
	if err != nil {
		return err
	}
	c := e.catalog
	if !e.writable {
		if c, err = readCatalog(e.o.FS, e.o.Dir); err != nil {
			return err
		}
		if err := e.loadCheckpoints(); err != nil {
			return err
		}
	}
	if l.kind != kindOwn {
		c = nil // what it says of another's directory does not count
	}
	dropped := e.know(l, c, at)
	e.letGo(dropped, fmt.Errorf("%w: its directory has been removed", storage.ErrTopicNotFound))
	return nil
}

// know replaces what is known of the topics and returns the logs that are no longer there.
func (e *Engine) know(l *listing, c *state.Topics, at time.Time) (dropped []*part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.topics
	e.topics = map[string]*topic{}
	e.seen = sighting{info: l.info, at: at, locked: l.locked, aside: l.aside, remote: l.remote}
	if !e.writable {
		e.clean = l.clean
	}
	if c != nil {
		for name, t := range c.Topics {
			e.topics[name] = newTopic(name, &t, e.reason)
		}
	}
	for tp, d := range l.dirs {
		e.knowPartLocked(tp, d, c, before)
	}
	for name, t := range before {
		for n, p := range t.parts {
			if now := e.topics[name]; now == nil || now.parts[n] != p {
				dropped = append(dropped, p)
			}
		}
	}
	return dropped
}

func (e *Engine) knowPartLocked(tp storage.TopicPartition, d vfs.FileInfo, c *state.Topics, before map[string]*topic) {
	p := &part{tp: tp, dir: filepath.Join(e.o.Dir, tp.String()), ino: d.Ino, found: d.Time(), reason: e.reason, config: storage.DefaultTopicConfig()}
	if c != nil {
		ct, named := c.Topics[tp.Topic]
		p.own = named && tp.Partition < ct.Partitions
		if p.own {
			p.id = ct.ID
			p.config, _ = ParseConfig(ct.Config) // was checked when the catalogue was read
		}
	}
	switch {
	case p.own || p.reason != "":
	case e.kind == kindOwn:
		p.reason = state.TopicsFile + " does not name it; logmount topics import makes it ours"
	case internalTopics[tp.Topic]:
		p.reason = internalReason
	}
	t := e.topics[tp.Topic]
	if t == nil {
		t = newTopic(tp.Topic, nil, p.reason)
		e.topics[tp.Topic] = t
	}
	if was := before[tp.Topic]; was != nil {
		if old := was.parts[tp.Partition]; old != nil && old.ino == d.Ino && old.id == p.id && old.own == p.own {
			p = old
		}
		if !t.own && t.info.ID == "" && !was.own {
			t.info.ID = was.info.ID
		}
	}
	t.parts[tp.Partition] = p
}
