package local

import (
	"fmt"
	"io/fs"
	"path/filepath"

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
	kind   kind
	dirs   map[storage.TopicPartition]vfs.FileInfo
	empty  bool // neither a catalogue nor a partition
	clean  bool // the marker of a clean shutdown is there
	locked bool // a .lock is there: somebody may be writing
	info   vfs.FileInfo
	aside  []storage.Aside
	remote bool // a broker with remote storage has been here
}

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
	l := &listing{dirs: map[storage.TopicPartition]vfs.FileInfo{}, info: info}
	var broker, catalogued bool
	for _, en := range entries {
		switch en.Name {
		case state.MetaPropertiesFile:
			broker = true
		case state.TopicsFile:
			catalogued = true
		case state.CleanMarkerFile:
			l.clean = true
		case state.LockFile:
			l.locked = true
		case state.RemoteCacheDir:
			l.remote = true
		}
		name, err := state.ParseDirName(en.Name)
		if err != nil || en.Mode.IsRegular() {
			continue
		}
		at, err := fsys.Stat(filepath.Join(dir, en.Name))
		switch {
		case err != nil || !at.IsDir(): // gone in the meantime, or a file in spite of its name
		case name.Kind == state.DirNormal:
			l.dirs[name.TopicPartition] = at
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
	default:
		if err := state.CheckLogDirectory(fsys, dir, entries); err != nil {
			return nil, err
		}
		if len(l.dirs)+len(l.aside) > 0 {
			l.kind = kindCopy
		}
	}
	return l, nil
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
		return "it holds partitions that are not ours (there is no " + state.TopicsFile + ")"
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
