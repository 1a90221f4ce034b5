package inspect

import (
	"maps"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

func (v *verifier) readCatalog() {
	const name = state.TopicsFile
	b, ok := v.readTopFile(name, CatalogSyntax)
	if !ok {
		return
	}
	wrong := func(format string, args ...any) {
		v.top.wrong(about(name, Damage, CatalogSyntax, "restore the file: the directory cannot be mounted without it", format, args...))
	}
	c, err := state.ParseTopics(b)
	if err != nil {
		wrong("%v", err)
		return
	}
	bounded := true
	for _, topic := range slices.Sorted(maps.Keys(c.Topics)) {
		t := c.Topics[topic]
		if err := t.Check(topic, v.opt.Config); err != nil {
			wrong("topic %.80q: %v", topic, err)
		}
		bounded = bounded && t.Bounded()
	}
	for _, d := range c.Deleting {
		if err := d.Check(); err != nil {
			wrong("deleting %.80q: %v", d.Dir, err)
		}
	}
	if bounded { // else there is no end to what is missing
		v.top.catalog = c
	}
}

// checkCatalog compares the catalogue with the directories.
func (v *verifier) checkCatalog() {
	c := v.top.catalog
	if c == nil || v.top.broker {
		return
	}
	deleting := map[string]bool{}
	for _, d := range c.Deleting {
		deleting[d.Dir] = true
	}
	for _, topic := range slices.Sorted(maps.Keys(c.Topics)) {
		missing, first := 0, int32(0)
		for n := range c.Topics[topic].Partitions {
			if !v.top.logs[storage.TopicPartition{Topic: topic, Partition: n}] {
				if missing == 0 {
					first = n
				}
				missing++
			}
		}
		if missing > 0 {
			v.emit(about(state.TopicsFile, Damage, CatalogMismatch, "put the directory back; a mount makes a new, empty one",
				"the directory of %s is missing (%d of the topic)", storage.TopicPartition{Topic: topic, Partition: first}, missing))
		}
	}
	for _, name := range v.top.dirs {
		d, err := state.ParseDirName(name)
		if err != nil || d.Kind != state.DirNormal {
			continue
		}
		switch t, named := c.Topics[d.Topic]; {
		case deleting[name] && (!named || d.Partition >= t.Partitions):
			v.emit(about(name, Notice, DirLeftover, "the next mount removes it", "a partition that is being deleted"))
		case !named || d.Partition >= t.Partitions:
			v.emit(about(name, Notice, CatalogMismatch, "", "%s does not name it: it is shown, but not written", state.TopicsFile))
		}
	}
}
