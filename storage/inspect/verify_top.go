package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const smallLimit = 64 << 20 // of files that are read whole

// checkpointFiles are the offset checkpoints at the top.
var checkpointFiles = []string{state.RecoveryPointFile, state.LogStartFile, state.HighWatermarkFile, state.CleanerOffsetFile}

// topDir is what lies at the top of a log directory.
type topDir struct {
	files   map[string]bool
	dirs    []string
	logs    map[storage.TopicPartition]bool
	aside   []state.DirName
	info    vfs.FileInfo
	clean   bool
	broker  bool // has meta.properties
	kraft   bool
	catalog *state.Topics

	points map[string]*state.Checkpoint // by the file's name
	bad    []Finding                    // of files at the top that cannot be read
}

// ours reports whether the directory is one that a mount writes without being asked.
func (t *topDir) ours() bool { return !t.broker && t.files[state.TopicsFile] }

// point returns what a checkpoint says of a log.
func (t *topDir) point(file string, tp storage.TopicPartition) (storage.Offset, bool) {
	c := t.points[file]
	if c == nil {
		return 0, false
	}
	return c.Get(tp)
}

// readTop reads what is at the top of the directory. Its error is that there is no log directory to be verified.
func (v *verifier) readTop() error {
	info, err := v.fsys.Stat(v.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w: it is a file", v.dir, storage.ErrNotLogDirectory)
	}
	entries, err := v.fsys.ReadDir(v.dir)
	if err != nil {
		return err
	}
	v.top = topDir{files: map[string]bool{}, logs: map[storage.TopicPartition]bool{}, points: map[string]*state.Checkpoint{}, info: info}
	t := &v.top
	for _, e := range entries {
		if v.isDir(e, e.Name) {
			t.dirs = append(t.dirs, e.Name)
			switch d, err := state.ParseDirName(e.Name); {
			case err != nil:
			case d.Kind == state.DirNormal:
				t.logs[d.TopicPartition] = true
			default:
				t.aside = append(t.aside, d)
			}
			continue
		}
		t.files[e.Name] = true
	}
	t.broker, t.clean = t.files[state.MetaPropertiesFile], t.files[state.CleanMarkerFile]
	v.sum.CleanShutdown = t.clean
	if err := state.CheckLogDirectory(v.fsys, v.dir, entries); err != nil {
		return err
	}
	for _, name := range checkpointFiles {
		v.readPoints(name)
	}
	v.readCatalog()
	v.readProperties()
	return nil
}

// isDir reports whether an entry of a directory is one, links followed; name is relative to the log directory.
func (v *verifier) isDir(e vfs.DirEntry, name string) bool {
	if e.Mode.IsDir() || e.Mode.IsRegular() {
		return e.Mode.IsDir()
	}
	info, err := v.fsys.Stat(v.path(name))
	return err == nil && info.IsDir()
}

// path turns a finding's path into one that can be opened.
func (v *verifier) path(rel string) string { return filepath.Join(v.dir, filepath.FromSlash(rel)) }

// read returns a small file whole; ok is false where it is missing.
func (v *verifier) read(rel string) (b []byte, ok bool, err error) {
	b, err = vfs.ReadFile(v.fsys, v.path(rel), smallLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// wrong notes a file at the top that cannot be read or understood.
func (t *topDir) wrong(f Finding) { t.bad = append(t.bad, f) }

// readTopFile reads a file at the top; an error that keeps it from being read is remembered.
func (v *verifier) readTopFile(name string, what What) ([]byte, bool) {
	b, ok, err := v.read(name)
	if errors.Is(err, vfs.ErrTooBig) {
		v.top.wrong(about(name, Damage, what, "", "%v", err))
		return nil, false
	}
	if err != nil {
		f, rest := unreadable(name, err)
		if rest != nil {
			v.errs = append(v.errs, rest)
		} else {
			v.top.wrong(f)
		}
		return nil, false
	}
	return b, ok
}

func (v *verifier) readPoints(name string) {
	b, ok := v.readTopFile(name, CheckpointForm)
	if !ok {
		return
	}
	c, err := state.ParseCheckpoint(b)
	if err != nil {
		v.top.wrong(about(name, Damage, CheckpointForm, "remove the file, or write it anew: a broker takes the directory offline", "%v", err))
		return
	}
	v.top.points[name] = &c
}

func (v *verifier) readProperties() {
	b, ok := v.readTopFile(state.MetaPropertiesFile, PropertiesWrong)
	if !ok {
		return
	}
	const name = state.MetaPropertiesFile
	m, err := state.ParseMetaProperties(b)
	const repair = "restore the file from the other log directories of the broker"
	if err != nil {
		v.top.wrong(about(name, Damage, PropertiesWrong, repair, "%v", err))
		return
	}
	v.top.kraft = m.Version == 1
	switch {
	case m.Version == 1 && m.ClusterID == "":
		v.top.wrong(about(name, Damage, PropertiesWrong, repair, "cluster.id is missing"))
	case m.NodeID < 0:
		v.top.wrong(about(name, Damage, PropertiesWrong, repair, "there is no node.id, or it is negative"))
	}
	if m.DirectoryID != "" {
		if _, err := state.ParseTopicID(m.DirectoryID); err != nil || strings.HasPrefix(m.DirectoryID, "AAAAAAAAAAAAAAAA") {
			v.top.wrong(about(name, Damage, PropertiesWrong, "remove the line: a broker makes a new id", "directory.id %.40q is not one that a directory can have", m.DirectoryID))
		}
	}
}

// selected returns the partitions to be verified, in the order of their names.
func (v *verifier) selected() ([]storage.TopicPartition, error) {
	used := make([]bool, len(v.opt.Select))
	var out []storage.TopicPartition
	for tp := range v.top.logs {
		take := len(used) == 0
		for i, s := range v.opt.Select {
			if s == tp.Topic || s == tp.String() {
				take, used[i] = true, true
			}
		}
		if take {
			out = append(out, tp)
		}
	}
	for i, ok := range used {
		if !ok {
			return nil, fmt.Errorf("%s: %w", v.opt.Select[i], storage.ErrTopicNotFound)
		}
	}
	slices.SortFunc(out, func(a, b storage.TopicPartition) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	return out, nil
}

// checkTop emits what is wrong at the top. With a selection that is what makes the checkpoints unreadable, and no more.
func (v *verifier) checkTop() {
	v.emitAll(v.top.bad)
	switch locked, err := v.fsys.Locked(v.path(state.LockFile)); {
	case err != nil:
		v.emit(about(state.LockFile, Notice, Locked, "", "somebody may have it locked and be writing to the directory, which cannot be told (%v): what grows meanwhile is not verified", err))
	case locked:
		v.emit(about(state.LockFile, Notice, Locked, "", "somebody has it locked and may be writing to the directory: what grows meanwhile is not verified"))
	}
	if !v.top.clean && len(v.top.logs) > 0 && (v.top.broker || v.top.ours()) {
		v.emit(about(state.CleanMarkerFile, Notice, NotClean, "the next start recovers the logs", "the directory is in use or was not closed in order"))
	}
	if len(v.opt.Select) > 0 {
		return
	}
	v.checkNames()
	for _, name := range checkpointFiles {
		v.checkLines(name)
	}
	v.checkCatalog()
}

// checkLines emits the lines of a checkpoint that lead nowhere.
func (v *verifier) checkLines(name string) {
	c := v.top.points[name]
	if c == nil {
		return
	}
	const repair = "remove the line; the count in line 2 goes down by one"
	for _, line := range c.Unusable() {
		v.emit(about(name, Notice, CheckpointLine, repair, "the line %.80q cannot be used; it counts as offset 0", line))
	}
	for tp := range c.All() {
		if !v.top.logs[tp] {
			v.emit(about(name, Notice, CheckpointLine, repair, "it names %.300s, which is not there", tp))
		}
	}
}

// strangeSeverity is how bad a name is that a broker stops at: a collection of copies is nobody's log directory yet.
func (v *verifier) strangeSeverity() Severity {
	return noticeIf(!v.top.broker && !v.top.ours() && !v.opt.Adopt)
}

func (v *verifier) checkNames() {
	same := map[string]string{}
	for _, name := range v.top.dirs {
		if name == state.RemoteCacheDir {
			continue
		}
		d, err := state.ParseDirName(name)
		switch {
		case err != nil && name == state.LostFoundDir && !v.top.broker && !v.opt.Adopt:
			v.emit(about(name, Notice, DirName, "use a directory below the top of the file system before a broker adopts it", "a broker does not start with it"))
		case err != nil:
			v.emit(about(name, v.strangeSeverity(), DirName, "move the directory elsewhere", "not the name of a partition: a broker does not start with it"))
		case d.Kind != state.DirNormal:
			v.emit(about(name, noticeIf(!v.opt.Adopt), DirLeftover, "remove it if it is not wanted", "a partition that is %s", kindWord(d.Kind)))
		default:
			flat := strings.ReplaceAll(d.Topic, ".", "_")
			if other, ok := same[flat]; ok && other != d.Topic {
				v.emit(about(name, Notice, NameCollision, "", "a broker takes the topic for the same as %s in its metrics, and would not have created both", other))
			}
			same[flat] = d.Topic
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.top.files)) {
		if strings.HasSuffix(name, vfs.TempSuffix) {
			v.emit(about(name, Notice, FileLeftover, "remove it", "left by a write that was interrupted"))
		}
	}
}

func kindWord(k state.DirKind) string {
	switch k {
	case state.DirDelete:
		return "being deleted"
	case state.DirStray:
		return "not wanted by the controller"
	case state.DirFuture:
		return "being moved here"
	case state.DirNormal:
	}
	return ""
}

// join makes the path of a file in a partition's directory, relative to the log directory.
func join(dir, name string) string { return path.Join(dir, name) }
