package local

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// kind is whose directory it is.
type kind int

const (
	kindOwn    kind = iota // ours, or empty and about to be
	kindBroker             // a broker's
	kindCopy               // partition directories and neither: copies, rescues
)

// listing is what lies at the top of a log directory.
type listing struct {
	kind    kind
	dirs    map[storage.TopicPartition]uint64 // inodes of the partitions' directories
	empty   bool                              // neither a catalogue nor a partition
	clean   bool                              // the marker of a clean shutdown is there
	locked  bool                              // a .lock is there: somebody may be writing
	info    vfs.FileInfo
	strange []string // names that have no place in a log directory
	aside   []storage.Aside
	remote  bool // a broker with remote storage has been here
}

// ownNames are files that are no sign of whose directory it is.
var ownNames = map[string]bool{
	state.LockFile: true, state.CleanMarkerFile: true, state.RecoveryPointFile: true, state.LogStartFile: true, state.HighWatermarkFile: true,
	state.CleanerOffsetFile: true, "bootstrap.checkpoint": true, CatalogFile: true, state.MetaPropertiesFile: true,
	"lost+found": true, remoteCache: true,
}

// remoteCache is the directory in which a broker keeps indexes of segments that it has moved to remote storage.
const remoteCache = "remote-log-index-cache"

// looks bounds how many directories are looked into to tell whether names of a partition's form are partitions.
const looks = 50

// scan looks at the top of a directory. Inside the directories there it looks only where nothing else tells that it is a log directory.
func scan(fsys vfs.FS, dir string) (*listing, error) {
	info, err := fsys.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w: it is a file", dir, storage.ErrNotLogDirectory)
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &listing{dirs: map[storage.TopicPartition]uint64{}, info: info}
	var broker, catalogued bool
	var likely []string // the first of those that have a partition's name
	for _, en := range entries {
		switch en.Name {
		case state.MetaPropertiesFile:
			broker = true
		case CatalogFile:
			catalogued = true
		case state.CleanMarkerFile:
			l.clean = true
		case state.LockFile:
			l.locked = true
		case remoteCache:
			l.remote = true
		}
		if ownNames[strings.TrimSuffix(en.Name, vfs.TempSuffix)] {
			continue
		}
		name, err := state.ParseDirName(en.Name)
		if err != nil || en.Mode.IsRegular() {
			l.strange = append(l.strange, en.Name)
			continue
		}
		at, err := fsys.Stat(filepath.Join(dir, en.Name))
		switch {
		case err != nil || !at.IsDir(): // gone in the meantime, or a file in spite of its name
			l.strange = append(l.strange, en.Name)
		case name.Kind == state.DirNormal:
			l.dirs[name.TopicPartition] = at.Ino
			if len(likely) < looks {
				likely = append(likely, en.Name)
			}
		default:
			l.aside = append(l.aside, storage.Aside{Path: filepath.Join(dir, en.Name), Kind: name.Kind.String(), Topic: name.Topic, Partition: name.Partition})
		}
	}
	l.empty = !catalogued && len(l.dirs) == 0
	switch {
	case broker:
		l.kind = kindBroker
	case catalogued:
		l.kind = kindOwn
	case len(l.aside) > 0 || anyPartition(fsys, dir, likely):
		l.kind = kindCopy
	case len(l.strange)+len(likely) > 0:
		return nil, l.noLogs(dir, likely)
	}
	return l, nil
}

// anyPartition reports whether one of the directories holds what a partition's does, or nothing at all: there are other names that end with a number.
func anyPartition(fsys vfs.FS, dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		entries, err := fsys.ReadDir(filepath.Join(dir, name))
		return err != nil || len(entries) == 0 || slices.ContainsFunc(entries, func(en vfs.DirEntry) bool { return ofPartition(en.Name) })
	})
}

func ofPartition(name string) bool {
	_, _, _, segment := state.ParseFileName(name)
	return segment || name == state.MetadataFile || name == state.EpochsFile
}

// noLogs says why a directory with something in it is no log directory.
func (l *listing) noLogs(dir string, likely []string) error {
	if slices.ContainsFunc(l.strange, ofPartition) {
		return fmt.Errorf("%s: %w: it is the directory of one partition; give the one that it lies in: %s", dir, storage.ErrNotLogDirectory, filepath.Dir(dir))
	}
	return fmt.Errorf("%s: %w: it holds no partition and other files: %s; choose an empty directory", dir, storage.ErrNotLogDirectory, some(append(l.strange, likely...)))
}

// some names the first few of names.
func some(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// reason says why a directory is not written, and how it can be.
func (l *listing) reason(o *Options) string {
	switch {
	case o.ReadOnly:
		return "opened read-only"
	case o.ReadWrite:
		return ""
	case l.kind == kindBroker:
		return l.whose() + "; --read-write appends to the logs of one that has stopped"
	case l.kind == kindCopy:
		return l.whose() + "; logmount topics import makes topics ours, --read-write appends to them as they are"
	}
	return ""
}

// whose says what kind of another's directory it is.
func (l *listing) whose() string {
	switch l.kind {
	case kindBroker:
		return "it is a broker's log directory (" + state.MetaPropertiesFile + ")"
	case kindCopy:
		return "it holds partitions that are not ours (there is no " + CatalogFile + ")"
	case kindOwn:
	}
	return "it is ours"
}

// makeDir makes a missing log directory durably.
func makeDir(o *Options) error {
	there, err := vfs.Exists(o.FS, o.Dir)
	if err != nil || there {
		return err
	}
	if o.ReadOnly || o.OneOfSeveral {
		return &fs.PathError{Op: "open", Path: o.Dir, Err: fs.ErrNotExist}
	}
	if o.Create {
		return vfs.MkdirAll(o.FS, o.Dir, 0o755)
	}
	if err := o.FS.Mkdir(o.Dir, 0o755); err != nil {
		return err
	}
	return o.FS.SyncDir(filepath.Dir(o.Dir))
}
