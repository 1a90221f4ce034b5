package inspect

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// catalogFile is what Verify wants to know of the catalogue of topics.
type catalogFile struct {
	Version int `json:"version"`
	Topics  map[string]struct {
		ID         string            `json:"id"`
		Partitions int32             `json:"partitions"`
		Config     map[string]string `json:"config"`
	} `json:"topics"`
	Deleting []struct {
		Dir string `json:"dir"`
		As  string `json:"as"`
	} `json:"deleting"`
}

func (v *verifier) readCatalog() {
	const name = state.TopicsFile
	b, ok := v.readTopFile(name, CatalogSyntax)
	if !ok {
		return
	}
	const repair = "restore the file: the directory cannot be mounted without it"
	var c catalogFile
	if err := json.Unmarshal(b, &c); err != nil {
		v.top.wrong(about(name, Damage, CatalogSyntax, repair, "%v", err))
		return
	}
	if c.Version != 1 {
		v.top.wrong(about(name, Damage, CatalogSyntax, repair, "version %d is not known", c.Version))
		return
	}
	for _, topic := range slices.Sorted(maps.Keys(c.Topics)) {
		t := c.Topics[topic]
		err := state.ValidTopic(topic)
		if err == nil && v.opt.Config != nil {
			err = v.opt.Config(t.Config)
		}
		if err == nil {
			_, err = state.ParseTopicID(t.ID)
		}
		if err != nil {
			v.top.wrong(about(name, Damage, CatalogSyntax, repair, "topic %.80q: %v", topic, err))
		}
		if t.Partitions < 1 || t.Partitions > state.MaxPartitions {
			v.top.wrong(about(name, Damage, CatalogSyntax, repair, "topic %.80q has %d partitions", topic, t.Partitions))
			return
		}
	}
	v.top.catalog = &c
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
