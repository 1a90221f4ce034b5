package state

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

// looks bounds how many directories CheckLogDirectory looks into.
const looks = 50

// CheckLogDirectory returns storage.ErrNotLogDirectory for a directory that has something in it and nothing that a log directory has: neither
// meta.properties nor a catalogue nor a partition, nor one that is being moved or deleted.
func CheckLogDirectory(fsys vfs.FS, dir string, entries []vfs.DirEntry) error {
	var likely, strange []string // directories that have a partition's name; names that have no place in a log directory
	for _, en := range entries {
		switch {
		case en.Name == MetaPropertiesFile || en.Name == TopicsFile:
			return nil
		case ofLogDirectory(en.Name):
			continue
		}
		name, err := ParseDirName(en.Name)
		if err != nil || en.Mode.IsRegular() {
			strange = append(strange, en.Name)
			continue
		}
		at, err := fsys.Stat(filepath.Join(dir, en.Name))
		switch {
		case err != nil || !at.IsDir(): // gone in the meantime, or a file in spite of its name
			strange = append(strange, en.Name)
		case name.Kind != DirNormal:
			return nil
		case len(likely) < looks:
			likely = append(likely, en.Name)
		}
	}
	if len(likely)+len(strange) == 0 || slices.ContainsFunc(likely, func(name string) bool { return maybePartition(fsys, filepath.Join(dir, name)) }) {
		return nil
	}
	if slices.ContainsFunc(strange, ofPartition) {
		return fmt.Errorf("%s: %w: it is the directory of one partition; give the one that it lies in: %s", dir, storage.ErrNotLogDirectory, filepath.Dir(dir))
	}
	return fmt.Errorf("%s: %w: it holds no partition and other files: %s; give a log directory, or an empty one", dir, storage.ErrNotLogDirectory, some(append(strange, likely...)))
}

// ofLogDirectory reports whether a name at the top of a log directory is no sign of whose it is.
func ofLogDirectory(name string) bool {
	switch strings.TrimSuffix(name, vfs.TempSuffix) {
	case LockFile, CleanMarkerFile, RecoveryPointFile, LogStartFile, HighWatermarkFile, CleanerOffsetFile, TopicsFile, MetaPropertiesFile, RemoteCacheDir,
		LostFoundDir, "bootstrap.checkpoint":
		return true
	}
	return false
}

// maybePartition reports whether a directory holds what a partition's does, or nothing at all: there are other names that end with a number.
func maybePartition(fsys vfs.FS, dir string) bool {
	entries, err := fsys.ReadDir(dir)
	return err != nil || len(entries) == 0 || slices.ContainsFunc(entries, func(en vfs.DirEntry) bool { return ofPartition(en.Name) })
}

func ofPartition(name string) bool {
	_, _, _, segment := ParseFileName(name)
	return segment || name == MetadataFile || name == EpochsFile
}

// some names the first few of names.
func some(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
