package inspect

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// partPlan is a partition as its directory and the small files tell, before a log is read.
type partPlan struct {
	tp       storage.TopicPartition
	dir      string // relative to the log directory
	clean    bool
	recovery storage.Offset // what lies below is on stable storage
	start    storage.Offset // log start, as checkpointed
	raft     bool
	compacts bool // a cleaner has been here
	adopt    bool

	segments []segPlan
	results  []chan *segReport
	epochs   state.Epochs
	noEpochs bool // the file is missing or empty
	snaps    []snapFile
	topicID  string

	findings []Finding
	errs     []error
}

// segPlan is a segment as the directory lists it.
type segPlan struct {
	base   storage.Offset
	next   storage.Offset // base of the next segment; the largest offset there is for the last one
	size   int64
	active bool
	files  map[string]bool  // extensions of the files that are there
	snaps  []storage.Offset // snapshots that go up to an offset inside
}

// snapFile is a producer snapshot.
type snapFile struct {
	offset  storage.Offset
	path    string
	entries []state.ProducerEntry
	ok      bool // it could be decoded
}

func (p *partPlan) add(f Finding) { p.findings = append(p.findings, f) }

// failed notes a file that could not be read.
func (p *partPlan) failed(path string, err error) {
	f, rest := unreadable(path, err)
	if rest == nil {
		p.add(f)
	} else if len(p.errs) < maxErrors {
		p.errs = append(p.errs, rest)
	}
}

// plan lists a partition's directory and reads its small files. What is found is kept in the plan: it runs beside the collector.
func (v *verifier) plan(tp storage.TopicPartition) *partPlan {
	p := &partPlan{tp: tp, dir: tp.String(), raft: tp.Topic == state.MetadataTopic, adopt: v.opt.Adopt}
	p.clean = v.top.clean && !p.raft // the metadata log is never closed in order
	p.recovery, _ = v.top.point(state.RecoveryPointFile, tp)
	p.start, _ = v.top.point(state.LogStartFile, tp)
	if o, ok := v.top.point(state.CleanerOffsetFile, tp); ok && o > 0 {
		p.compacts = true
	}
	v.planEpochs(p)
	v.planMetadata(p)
	if err := v.planFiles(p); err != nil {
		p.failed(p.dir, err)
		return p
	}
	p.results = make([]chan *segReport, len(p.segments))
	for i := range p.results {
		p.results[i] = make(chan *segReport, 1)
	}
	return p
}

func (v *verifier) planEpochs(p *partPlan) {
	name := join(p.dir, state.EpochsFile)
	b, ok, err := v.read(name)
	if err != nil && !errors.Is(err, vfs.ErrTooBig) {
		p.failed(name, err)
		return
	}
	if err == nil && ok {
		p.epochs, err = state.ParseEpochs(b)
	}
	if err != nil {
		p.add(about(name, Damage, EpochsSyntax, "remove the file: it is rebuilt from the batches", "%v", err))
		return
	}
	p.noEpochs = len(p.epochs) == 0
}

func (v *verifier) planMetadata(p *partPlan) {
	name := join(p.dir, state.MetadataFile)
	b, ok, err := v.read(name)
	switch {
	case errors.Is(err, vfs.ErrTooBig):
		p.add(about(name, Damage, MetadataSyntax, "", "%v", err))
	case err != nil:
		p.failed(name, err)
	case !ok:
		p.add(about(name, noticeIf(!p.adopt), MetadataMissing, "write it with the topic's id: without it a broker sets the partition aside as stray", "there is no %s", state.MetadataFile))
	default:
		if p.topicID, err = state.ParsePartitionMetadata(b); err != nil {
			p.add(about(name, Damage, MetadataSyntax, "write it anew with the topic's id", "%v", err))
		}
	}
}

// listLogs returns the sizes of the logs of a partition.
func (v *verifier) listLogs(dir string) []int64 {
	var out []int64
	entries, err := v.fsys.ReadDir(v.path(dir))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if _, ok := state.ParseLogName(e.Name); ok {
			if st, err := v.fsys.Stat(v.path(join(dir, e.Name))); err == nil {
				out = append(out, st.Size)
			}
		}
	}
	return out
}

// planFiles sorts the names in a partition's directory.
func (v *verifier) planFiles(p *partPlan) error {
	entries, err := v.fsys.ReadDir(v.path(p.dir))
	if err != nil {
		return err
	}
	beside := map[storage.Offset]map[string]bool{}
	for _, e := range entries {
		name := join(p.dir, e.Name)
		if v.isDir(e, name) {
			p.add(about(name, noticeIf(!p.adopt), FileUnknown, "move it elsewhere", "a directory inside a partition; brokers leave it alone until the topic is deleted"))
			continue
		}
		base, ext, suffix, ok := state.ParseFileName(e.Name)
		if !ok || suffix != "" {
			p.strangeFile(name, e.Name, v.strangeSeverity())
			continue
		}
		if ext == state.ExtSnapshot {
			p.snaps = append(p.snaps, v.planSnapshot(p, name, base))
			continue
		}
		if beside[base] == nil {
			beside[base] = map[string]bool{}
		}
		beside[base][ext] = true
		if p.adopt {
			v.checkOwner(p, name)
		}
	}
	v.planSegments(p, beside)
	return nil
}

// planSegments makes the plan of each segment, in ascending order.
func (v *verifier) planSegments(p *partPlan, beside map[storage.Offset]map[string]bool) {
	var bases []storage.Offset
	for base := range beside {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	for _, base := range bases {
		files := beside[base]
		if !files[state.ExtLog] {
			for _, ext := range []string{state.ExtIndex, state.ExtTimeIndex, state.ExtTxnIndex, state.ExtSizeIndex} {
				if files[ext] {
					p.add(about(join(p.dir, state.FileName(base, ext)), Notice, FileOrphan, "remove it; a start does so too", "there is no log with that base offset"))
				}
			}
			continue
		}
		name := join(p.dir, state.FileName(base, state.ExtLog))
		st, err := v.fsys.Stat(v.path(name))
		if err != nil {
			p.failed(name, err)
			continue
		}
		p.segments = append(p.segments, segPlan{base: base, size: st.Size, files: files, next: maxOffset})
	}
	if len(p.segments) == 0 {
		p.add(about(p.dir, noticeIf(!p.clean), LogMissing, "put the files back; a start makes an empty log", "the partition has no log"))
		return
	}
	for i := range p.segments {
		s := &p.segments[i]
		if i+1 < len(p.segments) {
			s.next = p.segments[i+1].base
		}
		s.active = i+1 == len(p.segments)
		for _, f := range p.snaps {
			if f.ok && f.offset > s.base && f.offset < s.next && len(s.snaps) < maxMidSnapshots {
				s.snaps = append(s.snaps, f.offset)
			}
		}
	}
}

func (v *verifier) planSnapshot(p *partPlan, name string, o storage.Offset) snapFile {
	s := snapFile{offset: o, path: name}
	b, ok, err := v.read(name)
	if err != nil && !errors.Is(err, vfs.ErrTooBig) {
		p.failed(name, err)
		return s
	}
	if err == nil && !ok {
		p.failed(name, fs.ErrNotExist)
		return s
	}
	if err == nil {
		s.entries, err = state.DecodeSnapshot(b)
	}
	if err != nil {
		p.add(about(name, noticeIf(!p.clean), SnapshotSyntax, "remove it; the one before is used, or the log is read", "%v", err))
		return s
	}
	s.ok = true
	return s
}

func (v *verifier) checkOwner(p *partPlan, name string) {
	st, err := v.fsys.Stat(v.path(name))
	if err != nil || st.UID == v.top.info.UID && st.GID == v.top.info.GID {
		return
	}
	p.add(about(name, Damage, FileOwner, "chown it to the owner of the directory",
		"belongs to %d:%d, the directory to %d:%d: one file that it cannot open stops a broker", st.UID, st.GID, v.top.info.UID, v.top.info.GID))
}

// numbered are the endings whose names a broker parses as a number, and stops where they are none.
var numbered = []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex, state.ExtTxnIndex, state.ExtSnapshot, state.SuffixCleaned, state.SuffixSwap}

// partitionFiles are the files of a partition that belong to no segment.
var partitionFiles = map[string]bool{state.EpochsFile: true, state.MetadataFile: true, "quorum-state": true}

// strangeFile says what a file is for that is not one of a segment's.
func (p *partPlan) strangeFile(path, name string, strange Severity) {
	head, _, _ := strings.Cut(name, ".")
	_, err := strconv.ParseInt(head, 10, 64)
	isNumber := err == nil
	hasEnding := func(list []string) bool {
		return slices.ContainsFunc(list, func(e string) bool { return strings.HasSuffix(name, e) })
	}
	switch {
	case partitionFiles[name]:
	case p.raft && (strings.HasSuffix(name, ".checkpoint") || strings.HasSuffix(name, ".checkpoint.part") || strings.HasSuffix(name, ".checkpoint.deleted")):
	case strings.HasSuffix(name, state.SuffixDeleted):
		p.add(about(path, Notice, FileLeftover, "remove it; a start does so too", "waits to be removed"))
	case strings.HasSuffix(name, state.SuffixTorn):
		p.add(about(path, Notice, FileTorn, "remove it once nobody wants to look at it", "moved aside by a recovery"))
	case strings.HasSuffix(name, state.SuffixQuarantine):
		p.add(about(path, Notice, FileTorn, "remove it once nobody wants to look at it", "taken out of a log by a repair"))
	case strings.HasSuffix(name, state.SuffixMoving):
		p.add(about(path, Notice, FileLeftover, "repair again", "left by a repair that was interrupted"))
	case strings.HasSuffix(name, state.SuffixTemp):
		p.add(about(path, Notice, FileLeftover, "remove it", "left by a write that was interrupted"))
	case hasEnding(numbered) && !isNumber:
		p.add(about(path, strange, FileName, "move it elsewhere", "there is no number before the first dot: a broker does not start with it"))
	case strings.HasSuffix(name, state.SuffixCleaned):
		p.add(about(path, noticeIf(!p.adopt), FileLeftover, "remove it; a broker does so too", "the output of a compaction that was interrupted"))
	case strings.HasSuffix(name, state.SuffixSwap):
		p.add(about(path, noticeIf(!p.adopt), FileLeftover, "let a broker finish it, or move it elsewhere", "the output of a compaction that was not moved in: a broker replaces the files that it covers"))
	case strings.HasSuffix(name, state.ExtLog):
		p.add(about(path, strange, FileName, "rename it so that the number has 20 digits", "the number has not 20 digits: a broker makes an empty segment beside it"))
	case hasEnding(numbered):
		p.add(about(path, Notice, FileName, "remove it", "the number has not 20 digits: nobody reads it"))
	default:
		p.add(about(path, noticeIf(!p.adopt), FileUnknown, "move it elsewhere", "has no place in a partition's directory; brokers leave it alone"))
	}
}
