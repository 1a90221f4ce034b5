package repair

import (
	"path/filepath"

	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// Locate tells a log directory from the directory of one partition: of that it returns the log directory that it lies in, its name, and whether that is a
// directory which somebody may have locked. A collection of rescued partitions is not.
func Locate(fsys vfs.FS, dir string) (data string, partition []string, lock bool, err error) {
	name := filepath.Base(dir)
	if !partitionName(name) {
		return dir, nil, true, nil
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return "", nil, false, err
	}
	holds := false
	for _, e := range entries {
		if _, ok := state.ParseLogName(e.Name); ok {
			holds = true
		}
	}
	if !holds {
		return dir, nil, true, nil
	}
	data = filepath.Dir(dir)
	for _, f := range []string{state.MetaPropertiesFile, state.TopicsFile, state.LockFile, state.RecoveryPointFile} {
		there, err := vfs.Exists(fsys, filepath.Join(data, f))
		if err != nil {
			return "", nil, false, err
		}
		lock = lock || there
	}
	return data, []string{name}, lock, nil
}

func partitionName(name string) bool {
	n, err := state.ParseDirName(name)
	return err == nil && n.Kind == state.DirNormal
}
