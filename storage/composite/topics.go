package composite

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/logmount/logmount/storage"
)

// Topics implements storage.Engine. A list that might lack something is an error.
func (e *Engine) Topics(ctx context.Context) ([]storage.TopicInfo, error) {
	if len(e.parts) == 1 {
		return e.parts[0].Topics(ctx)
	}
	all := map[string]storage.TopicInfo{}
	for _, p := range e.parts {
		topics, err := p.Topics(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range topics {
			if known, ok := all[t.Name]; ok {
				t = merged(known, t)
			}
			all[t.Name] = t
		}
	}
	var out []storage.TopicInfo
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out, nil
}

// Topic implements storage.Engine. Where an engine fails it tells what the others know of the topic.
func (e *Engine) Topic(ctx context.Context, name string) (storage.TopicInfo, error) {
	var info storage.TopicInfo
	var err error
	found := false
	for _, p := range e.parts {
		t, terr := p.Topic(ctx, name)
		switch {
		case terr != nil && ctx.Err() != nil:
			return storage.TopicInfo{}, terr
		case terr != nil && err == nil:
			err = terr
		case terr != nil:
			err = worse(err, terr)
		case found:
			info = merged(info, t)
		default:
			info, found = t, true
		}
	}
	if !found {
		return storage.TopicInfo{}, err
	}
	return info, nil
}

// merged puts together what two engines have of a topic.
func merged(a, b storage.TopicInfo) storage.TopicInfo {
	a.ID = first(a.ID, b.ID)
	a.Partitions = append(slices.Clone(a.Partitions), b.Partitions...)
	slices.Sort(a.Partitions)
	a.Partitions = slices.Compact(a.Partitions)
	a.Writable, a.Reason = a.Writable && b.Writable, first(a.Reason, b.Reason)
	if a.Created.IsZero() || !b.Created.IsZero() && b.Created.Before(a.Created) {
		a.Created = b.Created
	}
	if b.Modified.After(a.Modified) {
		a.Modified = b.Modified
	}
	if a.Config == nil {
		a.Config = b.Config
	}
	return a
}

// Status implements storage.Engine.
func (e *Engine) Status() storage.EngineStatus {
	st := e.parts[0].Status()
	if len(e.parts) == 1 {
		return st
	}
	for _, p := range e.parts[1:] {
		s := p.Status()
		st.Topics += s.Topics
		st.Partitions += s.Partitions
		st.Opened += s.Opened
		st.OpenFiles += s.OpenFiles
		st.Clean = st.Clean && s.Clean
		st.Remote = st.Remote || s.Remote
		st.Missing += s.Missing
		st.List = append(st.List, s.List...)
		st.Aside = append(st.Aside, s.Aside...)
	}
	slices.SortStableFunc(st.List, func(a, b storage.PartitionStatus) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	if all, err := e.Topics(context.Background()); err == nil { // one that is spread counts once
		st.Topics = len(all)
	}
	return st
}
