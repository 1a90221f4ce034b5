package local

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/partition"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// makePartDir makes the directory of a partition, with an empty first segment and the topic's id, durably.
func (e *Engine) makePartDir(dir, id string) error {
	if err := e.o.FS.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if e.owner != nil {
		if err := e.owner.Apply(e.o.FS, dir); err != nil {
			return err
		}
	}
	return e.fillDir(dir, id)
}

// fillDir puts into the directory of a partition what is missing there. The id comes last: a directory that has it is complete.
func (e *Engine) fillDir(dir, id string) error {
	info, err := e.o.FS.Stat(dir)
	if err != nil {
		return err
	}
	owner := vfs.OwnerOf(info)
	has, err := e.hasLog(dir)
	if err != nil {
		return err
	}
	if !has {
		if err := partition.Create(e.env, dir, owner); err != nil {
			return err
		}
	}
	if err := e.o.FS.SyncDir(dir); err != nil {
		return err
	}
	return vfs.WriteFile(e.o.FS, filepath.Join(dir, state.MetadataFile), state.FormatPartitionMetadata(id), 0o644, &owner)
}

func (e *Engine) hasLog(dir string) (bool, error) {
	entries, err := e.o.FS.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, en := range entries {
		if _, ok := state.ParseLogName(en.Name); ok {
			return true, nil
		}
	}
	return false, nil
}

// makePartDirs makes the directories of partitions from to to-1 of a topic durably.
func (e *Engine) makePartDirs(name, id string, from, to int32) error {
	for n := from; n < to; n++ {
		tp := storage.TopicPartition{Topic: name, Partition: n}
		if err := e.makePartDir(filepath.Join(e.o.Dir, tp.String()), id); err != nil {
			return err
		}
	}
	return e.o.FS.SyncDir(e.o.Dir)
}

// finishDeletions removes the directories that the catalogue lists as deleted, and then the list. It needs Engine.change.
func (e *Engine) finishDeletions() error {
	if len(e.catalog.Deleting) == 0 {
		return nil
	}
	for _, d := range e.catalog.Deleting {
		if err := e.moveAway(d); err != nil {
			return err
		}
	}
	if err := e.o.FS.SyncDir(e.o.Dir); err != nil {
		return err
	}
	for _, d := range e.catalog.Deleting {
		if err := e.removeTree(filepath.Join(e.o.Dir, d.As)); err != nil {
			return err
		}
	}
	if err := e.o.FS.SyncDir(e.o.Dir); err != nil {
		return err
	}
	c := e.catalog.Clone()
	c.Deleting = nil
	return e.writeCatalog(c)
}

// moveAway renames a deleted directory, so that a topic of that name can be made again.
func (e *Engine) moveAway(d state.Deletion) error {
	name, err := state.ParseDirName(d.Dir)
	if err != nil {
		return err
	}
	if t, ok := e.catalog.Topics[name.Topic]; ok && name.Partition < t.Partitions {
		return nil // the name belongs to a topic made since
	}
	from, to := filepath.Join(e.o.Dir, d.Dir), filepath.Join(e.o.Dir, d.As)
	if err := e.o.FS.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e.files.ForgetUnder(from)
	return nil
}

// removeTree removes a directory with all that is in it; it is no error if it is not there.
func (e *Engine) removeTree(dir string) error {
	entries, err := e.o.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, en := range entries {
		name := filepath.Join(dir, en.Name)
		if en.Mode.IsDir() {
			err = e.removeTree(name)
		} else {
			err = e.o.FS.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := e.o.FS.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
