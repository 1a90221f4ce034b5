package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// checkpointFiles are the offset checkpoints at the top.
var checkpointFiles = []string{state.RecoveryPointFile, state.LogStartFile, state.HighWatermarkFile, state.CleanerOffsetFile}

// Layout is what a log directory looks like, as far as decisions need it.
type Layout struct {
	Broker bool // it is a broker's
	Own    bool // it is ours
	Clean  bool // the marker of a clean shutdown is there, or was when the run began
	Points map[string]Points
	Parts  []*Part // in the order of their names

	catalog map[string]state.Topic
}

// Points is an offset checkpoint.
type Points struct {
	Raw []byte
	state.Checkpoint
	Err error // it cannot be parsed
}

// Part is a partition's directory.
type Part struct {
	TP       storage.TopicPartition
	Dir      string
	Own      bool // the catalogue names it
	Raft     bool
	Files    []string
	Segments []SegmentFiles   // ascending
	Moving   []storage.Offset // logs that a rename was cut short for
	Snaps    []storage.Offset // producer snapshots
	// Compacted is what a compaction that was cut short left.
	Compacted []Compacted
	TopicID   string // empty where it cannot be read
	WantID    string // what it should be, where the catalogue or the other partitions tell
	Epochs    state.Epochs
	EpochErr  error // leader-epoch-checkpoint cannot be parsed
	HasEpoch  bool

	settings settings
	// What follows is found out where it is needed.
	end     storage.Offset // of the log; -1 where unknown
	chains  []chain
	epochs  *epochPlan
	settles []storage.Offset   // segments whose indexes differ from what a recovery would make of them
	looked  bool               // settles is known
	keep    map[string][]Range // batches in damaged stretches that stay, by the log's path
	found   int64              // interval of the indexes that are there; 0 where it was not looked for
}

// Compacted is a file that a compaction made and did not move into place.
type Compacted struct {
	Name string
	Base storage.Offset
	Log  bool
	Swap bool           // it is complete, if no lower or equal one was still being written
	Next storage.Offset // of a log: behind its last batch
}

// SegmentFiles is a log and what lies beside it.
type SegmentFiles struct {
	Base storage.Offset
	Next storage.Offset // base offset of the next one; the largest offset there is for the last
	Size int64
	Ext  map[string]bool // files with its base offset
}

func (p *Part) path(base storage.Offset, ext string) string {
	return join(p.Dir, state.FileName(base, ext))
}

// segment returns the segment with a base offset and its place.
func (p *Part) segment(base storage.Offset) (int, bool) {
	return slices.BinarySearchFunc(p.Segments, base, func(s SegmentFiles, o storage.Offset) int { return int(min(max(s.Base-o, -1), 1)) })
}

func (s *SegmentFiles) options(interval int64) scanOptions {
	return scanOptions{base: s.Base, next: s.Next, interval: interval}
}

// check refuses a directory that is no log directory, before a lock or anything else is put into it.
func (d *disk) check() error {
	entries, err := d.fs.ReadDir(d.dir)
	if err != nil {
		return err
	}
	return state.CheckLogDirectory(d.fs, d.dir, entries)
}

// read looks at the top of the directory and at the partitions that are selected.
func (d *disk) read(sel []string, opt *Options) (*Layout, error) {
	entries, err := d.fs.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	l := &Layout{Points: map[string]Points{}}
	for _, e := range entries {
		switch e.Name {
		case state.MetaPropertiesFile:
			l.Broker = true
		case state.TopicsFile:
			l.Own = true
		case state.CleanMarkerFile:
			l.Clean = true
		}
	}
	l.Own = l.Own && !l.Broker
	if l.Own {
		l.catalog = d.readCatalog()
	}
	for _, name := range checkpointFiles {
		b, err := d.readOr(name, nil)
		if err != nil {
			return nil, err
		}
		if b != nil {
			p := Points{Raw: b}
			p.Checkpoint, p.Err = state.ParseCheckpoint(b)
			l.Points[name] = p
		}
	}
	ids := map[string]map[string]int{}
	for _, e := range entries {
		n, err := state.ParseDirName(e.Name)
		if err != nil || n.Kind != state.DirNormal {
			continue
		}
		if st, err := d.fs.Stat(d.path(e.Name)); err != nil || !st.IsDir() {
			continue
		}
		p := &Part{TP: n.TopicPartition, Dir: e.Name, Raft: n.Topic == state.MetadataTopic, end: -1}
		if b, err := d.readOr(join(p.Dir, state.MetadataFile), nil); err == nil && b != nil {
			p.TopicID, _ = state.ParsePartitionMetadata(b)
		}
		if p.TopicID != "" {
			if ids[n.Topic] == nil {
				ids[n.Topic] = map[string]int{}
			}
			ids[n.Topic][p.TopicID]++
		}
		if !selected(sel, p.TP) {
			continue
		}
		if err := d.readPart(l, p, opt); err != nil {
			return nil, err
		}
		l.Parts = append(l.Parts, p)
	}
	for _, p := range l.Parts {
		p.WantID = l.topicID(p.TP, ids[p.TP.Topic])
	}
	return l, nil
}

func selected(sel []string, tp storage.TopicPartition) bool {
	return len(sel) == 0 || slices.Contains(sel, tp.Topic) || slices.Contains(sel, tp.String())
}

// topicID says which id a partition should have: the catalogue's, else that of more than half of those that have one.
func (l *Layout) topicID(tp storage.TopicPartition, ids map[string]int) string {
	if t, ok := l.catalog[tp.Topic]; ok && tp.Partition < t.Partitions {
		return t.ID
	}
	all := 0
	for _, n := range ids {
		all += n
	}
	for id, n := range ids {
		if 2*n > all {
			return id
		}
	}
	return ""
}

func (d *disk) readCatalog() map[string]state.Topic {
	b, err := d.readOr(state.TopicsFile, nil)
	if err != nil {
		return nil
	}
	c, err := state.ParseTopics(b)
	if err != nil {
		return nil // it is reported by those who verify it
	}
	return c.Topics
}

func (d *disk) readPart(l *Layout, p *Part, opt *Options) error {
	if t, ok := l.catalog[p.TP.Topic]; ok && p.TP.Partition < t.Partitions {
		p.Own = true
		p.settings = settings{interval: usualInterval, maxIndex: 10 << 20, sizes: true}
		if opt.Config != nil {
			if c, err := opt.Config(t.Config); err == nil {
				p.settings.interval, p.settings.maxIndex = c.IndexIntervalBytes, c.SegmentIndexBytes
			}
		}
	} else {
		p.settings = settings{interval: -1, maxIndex: 10 << 20}
	}
	if opt.Interval > 0 {
		p.settings.interval = opt.Interval
	}
	if opt.MaxIndex > 0 {
		p.settings.maxIndex = opt.MaxIndex
	}
	entries, err := d.fs.ReadDir(d.path(p.Dir))
	if err != nil {
		return err
	}
	beside := map[storage.Offset]map[string]bool{}
	for _, e := range entries {
		if e.Mode.IsDir() {
			continue
		}
		p.Files = append(p.Files, e.Name)
		if name, ok := strings.CutSuffix(e.Name, state.SuffixMoving); ok {
			if base, ok := state.ParseLogName(name); ok {
				p.Moving = append(p.Moving, base)
			}
			continue
		}
		base, ext, suffix, ok := state.ParseFileName(e.Name)
		if ok && (suffix == state.SuffixCleaned || suffix == state.SuffixSwap) {
			p.Compacted = append(p.Compacted, Compacted{Name: e.Name, Base: base, Log: ext == state.ExtLog, Swap: suffix == state.SuffixSwap})
		}
		if !ok || suffix != "" {
			continue
		}
		if ext == state.ExtSnapshot {
			p.Snaps = append(p.Snaps, base)
			continue
		}
		if beside[base] == nil {
			beside[base] = map[string]bool{}
		}
		beside[base][ext] = true
	}
	if err := d.readSegments(p, beside); err != nil {
		return err
	}
	b, err := d.readOr(join(p.Dir, state.EpochsFile), nil)
	if err != nil {
		return err
	}
	p.HasEpoch = b != nil
	p.Epochs, p.EpochErr = state.ParseEpochs(b)
	return nil
}

func (d *disk) readSegments(p *Part, beside map[storage.Offset]map[string]bool) error {
	for base, ext := range beside {
		if !ext[state.ExtLog] {
			continue
		}
		st, err := d.fs.Stat(d.path(p.path(base, state.ExtLog)))
		if err != nil {
			return err
		}
		p.Segments = append(p.Segments, SegmentFiles{Base: base, Size: st.Size, Ext: ext, Next: maxOffset})
	}
	slices.SortFunc(p.Segments, func(a, b SegmentFiles) int { return int(min(max(a.Base-b.Base, -1), 1)) })
	for i := range p.Segments {
		if i+1 < len(p.Segments) {
			p.Segments[i].Next = p.Segments[i+1].Base
		}
	}
	return nil
}

// part returns a partition by the name of its directory.
func (l *Layout) part(dir string) *Part {
	for _, p := range l.Parts {
		if p.Dir == dir {
			return p
		}
	}
	return nil
}

// point returns what a checkpoint says of a log.
func (l *Layout) point(file string, tp storage.TopicPartition) (storage.Offset, bool) {
	c, ok := l.Points[file]
	if !ok || c.Err != nil {
		return 0, false
	}
	return c.Get(tp)
}

// endOf finds where a log ends, by its last segment.
func (d *disk) endOf(ctx context.Context, p *Part) error {
	if p.end >= 0 || len(p.Segments) == 0 {
		return nil
	}
	g := p.Segments[len(p.Segments)-1]
	r, err := d.scanSegment(ctx, &scanner{}, p.Dir, g, g.options(0))
	if err != nil {
		return fmt.Errorf("%s: %w", p.path(g.Base, state.ExtLog), err)
	}
	p.end = max(r.next, g.Base)
	return nil
}

// replay returns the transactions that are open at the start of segment i: from the newest snapshot at a segment's start that can be read, or else from the
// start of the log, the segments between are read.
func (d *disk) replay(ctx context.Context, p *Part, i int) (*txns, error) {
	from, t := 0, newTxns(nil)
	for j := i; j >= 0; j-- {
		b, err := d.readOr(p.path(p.Segments[j].Base, state.ExtSnapshot), nil)
		if err != nil && !errors.Is(err, storage.ErrCorrupt) {
			return nil, err
		}
		if entries, err := state.DecodeSnapshot(b); b != nil && err == nil {
			from, t = j, newTxns(entries)
			break
		}
	}
	for j := from; j < i; j++ {
		g := p.Segments[j]
		if _, err := d.scanSegment(ctx, &scanner{txns: t}, p.Dir, g, g.options(0)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.path(g.Base, state.ExtLog), err)
		}
	}
	return t, nil
}
