package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const propertiesLimit = 1 << 20

// readIdentity returns whose directory it is as far as meta.properties says. One that cannot be read or understood is reported: that the file is there
// is enough to tell a broker's directory.
func readIdentity(o *Options, l *listing) state.MetaProperties {
	unknown := state.MetaProperties{NodeID: -1}
	if l.kind != kindBroker {
		return unknown
	}
	path := filepath.Join(o.Dir, state.MetaPropertiesFile)
	b, err := vfs.ReadFile(o.FS, path, propertiesLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return unknown
	}
	var m state.MetaProperties
	if err == nil {
		m, err = state.ParseMetaProperties(b)
	}
	if err != nil {
		o.Report(storage.Report{Time: o.Now(), Path: path, Reason: err.Error()})
		return unknown
	}
	return m
}

// nodeID is the number of a broker as text, empty where there is none.
func nodeID(m state.MetaProperties) string {
	if m.NodeID < 0 {
		return ""
	}
	return strconv.Itoa(int(m.NodeID))
}

// alone says why a directory of ours, or one that would become ours, is not shown together with others.
func (l *listing) alone(dir string) error {
	if l.empty {
		return fmt.Errorf("%s: %w: it is empty; is a disk not mounted there?", dir, storage.ErrNotLogDirectory)
	}
	return fmt.Errorf("%s: %w: it is logmount's own; mount it by itself", dir, storage.ErrNotPermitted)
}
