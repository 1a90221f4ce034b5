package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// Import makes topics of a copy ours, all of them where none is named, and returns their names. The directory becomes one of ours. Each topic must have its
// partitions from 0 on without holes, and each of those must be whole from its recovery point on; if one is not, nothing changes.
//
// A broker's directory is storage.ErrReadOnly. A topic that is ours already is storage.ErrTopicExists, an internal one of brokers storage.ErrNotPermitted,
// where it is named.
func Import(ctx context.Context, o Options, names ...string) (imported []string, err error) {
	o.ReadWrite, o.ReadOnly, o.Exact, o.noLoops = true, false, false, true
	if err := o.complete(); err != nil {
		return nil, err
	}
	l, err := scan(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	if l.kind == kindBroker {
		return nil, fmt.Errorf("%s: %w: %s; copy the partitions elsewhere first", o.Dir, storage.ErrReadOnly, l.whose())
	}
	e, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}()
	if !e.writable {
		return nil, fmt.Errorf("%s: %w: %s", o.Dir, storage.ErrReadOnly, e.reason)
	}
	if len(names) == 0 {
		names = e.importable()
	}
	return names, e.takeIn(ctx, names)
}

// importable returns the topics that are neither ours nor internal ones of brokers, nor hidden in a mount by their name.
func (e *Engine) importable() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(e.topics)) {
		if !e.topics[name].own && !internalTopics[name] && name != storage.ControlName {
			names = append(names, name)
		}
	}
	return names
}

// takeIn makes topics ours.
func (e *Engine) takeIn(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	e.change <- struct{}{}
	defer func() { <-e.change }()
	c := state.NewTopics()
	if e.catalog != nil {
		c = e.catalog.Clone()
	}
	ids := map[string]string{}
	for _, name := range names {
		t, err := e.checkImport(ctx, name)
		if err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
		c.Topics[name], ids[name] = *t, t.ID
	}
	if err := e.settleImported(ids); err != nil {
		return err
	}
	for name, t := range c.Topics {
		if ids[name] == "" {
			continue
		}
		if err := e.identify(name, &t); err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	return e.writeCatalog(c)
}

// checkImport finds out whether a topic can be ours, and what the catalogue is to say of it. It writes nothing.
func (e *Engine) checkImport(ctx context.Context, name string) (*state.Topic, error) {
	if internalTopics[name] {
		return nil, fmt.Errorf("%w: %s", storage.ErrNotPermitted, internalReason)
	}
	if err := CheckTopicName(name); err != nil {
		return nil, err
	}
	parts, err := e.foreignParts(name)
	if err != nil {
		return nil, err
	}
	t := &state.Topic{Partitions: int32(len(parts)), Created: e.o.Now().UTC().Round(0)}
	for _, p := range parts {
		if err := e.checkWhole(ctx, p); err != nil {
			return nil, err
		}
		id, err := e.idOf(p)
		if err != nil {
			return nil, err
		}
		if id != "" && t.ID != "" && id != t.ID {
			return nil, fmt.Errorf("%w: partition %d is of topic id %s, others of %s", storage.ErrCorrupt, p.tp.Partition, id, t.ID)
		}
		t.ID = max(t.ID, id)
	}
	if t.ID == "" {
		t.ID, err = state.NewTopicID(e.o.Rand)
	}
	return t, err
}

// settleImported puts what is there of topics on stable storage and has the recovery points say so. A log that is ours is cut from its recovery point on where
// offsets are missing between two segments, as something that was lost; a log that was compacted has such gaps.
func (e *Engine) settleImported(topics map[string]string) error {
	points := map[storage.TopicPartition]storage.Offset{}
	for name := range topics {
		parts, err := e.foreignParts(name)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if points[p.tp], err = e.settleLog(p); err != nil {
				return fmt.Errorf("partition %s: %w", p.tp, err)
			}
		}
	}
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	for tp, o := range points {
		e.points.recovery.Set(tp, o)
	}
	return e.putLocked(&e.points.recovery, state.RecoveryPointFile)
}

// settleLog syncs the files of a log and returns where it ends.
func (e *Engine) settleLog(p *part) (storage.Offset, error) {
	entries, err := e.o.FS.ReadDir(p.dir)
	if err != nil {
		return 0, err
	}
	for _, en := range entries {
		if _, _, suffix, ok := state.ParseFileName(en.Name); !ok || suffix != "" {
			continue
		}
		f, err := e.o.FS.OpenFile(filepath.Join(p.dir, en.Name), os.O_RDWR, 0)
		if err != nil {
			return 0, err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return 0, err
		}
	}
	if err := e.o.FS.SyncDir(p.dir); err != nil {
		return 0, err
	}
	l, err := e.logOf(e.ctx, p)
	if err != nil {
		return 0, err
	}
	s, err := l.Snapshot(e.ctx)
	if err != nil {
		return 0, err
	}
	return s.End(), nil
}

// foreignParts returns the partitions of a topic that is not ours, which are 0 to n-1.
func (e *Engine) foreignParts(name string) ([]*part, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t, err := e.topicLocked(name)
	if err != nil {
		return nil, err
	}
	if t.own {
		return nil, storage.ErrTopicExists
	}
	var parts []*part
	for i, n := range slices.Sorted(maps.Keys(t.parts)) {
		if int(n) != i {
			return nil, fmt.Errorf("%w: partition %d is missing", storage.ErrNotPermitted, i)
		}
		parts = append(parts, t.parts[n])
	}
	if len(parts) > MaxPartitions {
		return nil, fmt.Errorf("%w: %d partitions, at most %d are allowed", storage.ErrInvalidName, len(parts), MaxPartitions)
	}
	return parts, nil
}

// checkWhole looks through a log from its recovery point on, as recovery would, and refuses what recovery would cut.
func (e *Engine) checkWhole(ctx context.Context, p *part) error {
	if tiered, err := e.tiered(p); err != nil || tiered {
		if err == nil {
			err = fmt.Errorf("partition %s: %w: its first records are in remote storage", p.tp, storage.ErrReadOnly)
		}
		return err
	}
	recovery, start := e.points.of(p.tp)
	l, err := partition.Open(ctx, e.env, partition.Options{
		TP: p.tp, Dir: p.dir, Config: p.config, Writable: true, Foreign: true, RecoveryPoint: recovery, LogStart: start,
	})
	if err != nil {
		return err
	}
	return errors.Join(l.Writable(ctx), l.Close(ctx))
}

// idOf returns the topic id that a partition's directory tells; none where the file is missing.
func (e *Engine) idOf(p *part) (string, error) {
	b, err := vfs.ReadFile(e.o.FS, filepath.Join(p.dir, state.MetadataFile), metadataLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	id, err := state.ParsePartitionMetadata(b)
	if err != nil {
		return "", fmt.Errorf("partition %s: %w", p.tp, err)
	}
	return id, nil
}

// identify writes the topic id where a partition has none.
func (e *Engine) identify(name string, t *state.Topic) error {
	for n := range t.Partitions {
		dir := filepath.Join(e.o.Dir, storage.TopicPartition{Topic: name, Partition: n}.String())
		path := filepath.Join(dir, state.MetadataFile)
		there, err := vfs.Exists(e.o.FS, path)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		info, err := e.o.FS.Stat(dir)
		if err != nil {
			return err
		}
		owner := vfs.OwnerOf(info)
		if err := vfs.WriteFile(e.o.FS, path, state.FormatPartitionMetadata(t.ID), 0o644, &owner); err != nil {
			return err
		}
	}
	return nil
}
