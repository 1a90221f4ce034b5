package local

import (
	"fmt"

	"github.com/logmount/logmount/storage"
)

// Status implements storage.Engine.
func (e *Engine) Status() storage.EngineStatus {
	if !e.writable && e.open() == nil {
		_ = e.refresh() // what was seen last is told where the directory cannot be read now
	}
	st := storage.EngineStatus{Topics: len(e.names()), OpenFiles: e.files.Len(), Clean: e.startedClean(), List: []storage.PartitionStatus{}}
	st.Aside, st.Remote = e.notShown()
	there := map[storage.TopicPartition]bool{}
	for _, p := range e.parts() {
		st.Partitions++
		there[p.tp] = true
		l := p.opened()
		if l == nil {
			continue
		}
		st.Opened++
		s := l.Status()
		if !p.own {
			s.Remote = e.points.remote(p.tp, s.Start, st.Remote)
		}
		st.List = append(st.List, s)
	}
	st.Missing = e.points.missing(there)
	return st
}

func (e *Engine) startedClean() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.clean
}

// notShown returns what lies in the directory beside the topics.
func (e *Engine) notShown() (aside []storage.Aside, remote bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return append([]storage.Aside{}, e.seen.aside...), e.seen.remote
}

// remote says what of a log, which starts at first on this disk, is elsewhere. A broker that has deleted segments writes down the new start up to a
// minute later; without the traces of remote storage nobody can tell the two.
func (c *checkpoints) remote(tp storage.TopicPartition, first storage.Offset, traces bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	start, has := c.start.Get(tp)
	if !has || start >= first {
		return ""
	}
	where := "in remote storage"
	if !traces {
		where = "in remote storage or deleted a moment ago"
	}
	return fmt.Sprintf("offsets %d to %d are %s", start, first-1, where)
}

// missing counts the logs that the files name and that are not there.
func (c *checkpoints) missing(there map[storage.TopicPartition]bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := map[storage.TopicPartition]bool{}
	for _, f := range []*checkpoint{&c.recovery, &c.start} {
		for tp := range f.All() {
			if !there[tp] {
				gone[tp] = true
			}
		}
	}
	return len(gone)
}
