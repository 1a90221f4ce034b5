package repair

import (
	"context"
	"fmt"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// usualInterval is Kafka's default of index.interval.bytes.
const usualInterval = 4096

// IndexOptions say which indexes to rebuild and how.
type IndexOptions struct {
	Select   []string // topics, or partitions spelt topic-partition; none is all of them
	Check    bool     // compare, and write nothing
	Sizes    bool     // size indexes alone
	Interval int64    // index.interval.bytes; 0 is the topic's, or what the indexes that are there were made with
	MaxIndex int64    // segment.index.bytes; 0 is the topic's, or Kafka's default
	Config   func(map[string]string) (storage.TopicConfig, error)
	NoLock   bool // the directory is no log directory: nobody but us would lock it
}

// IndexResult tells of the indexes of one segment.
type IndexResult struct {
	Log      string         `json:"log"` // path relative to the log directory
	Base     storage.Offset `json:"base"`
	Batches  int            `json:"batches"`
	Interval int64          `json:"interval"`         // that the indexes were built with
	Found    bool           `json:"found"`            // the interval was found out from the offset index that was there, and is not the usual one
	Differ   []string       `json:"differ,omitempty"` // files that were missing or other than they should be
	Written  bool           `json:"written"`
	Damaged  string         `json:"damaged,omitempty"` // why the log holds more than good batches
}

// Index rebuilds the indexes beside logs by the rule that recovery follows, or compares them. It writes only files that differ. The results come in the order
// of partitions and segments. Names in Select that nothing has are storage.ErrTopicNotFound, a directory that somebody holds storage.ErrLocked,
// what is no log directory storage.ErrNotLogDirectory.
func Index(ctx context.Context, fsys vfs.FS, dir string, opt IndexOptions, emit func(IndexResult)) (err error) {
	d := &disk{fs: fsys, dir: dir}
	o := Options{Interval: opt.Interval, MaxIndex: opt.MaxIndex, Config: opt.Config}
	if err := d.check(); err != nil {
		return err
	}
	if !opt.Check && !opt.NoLock {
		s, err := open(d)
		if err != nil {
			return err
		}
		defer func() { err = firstOf(err, s.close()) }()
	}
	l, err := d.read(opt.Select, &o)
	if err != nil {
		return err
	}
	if err := allFound(opt.Select, l); err != nil {
		return err
	}
	for _, p := range l.Parts {
		if opt.Sizes && !p.Own {
			if len(opt.Select) > 0 {
				return fmt.Errorf("%s: %w: size indexes lie beside logs of ours alone", p.Dir, storage.ErrNotPermitted)
			}
			continue
		}
		if err := d.indexPart(ctx, l, p, &opt, emit); err != nil {
			return err
		}
	}
	return nil
}

func firstOf(err, then error) error {
	if err != nil {
		return err
	}
	return then
}

// allFound makes sure that every name of a selection is there.
func allFound(sel []string, l *Layout) error {
	for _, s := range sel {
		found := false
		for _, p := range l.Parts {
			found = found || s == p.TP.Topic || s == p.Dir
		}
		if !found {
			return fmt.Errorf("%s: %w", s, storage.ErrTopicNotFound)
		}
	}
	return nil
}

// indexPart rebuilds or compares the indexes of a partition.
func (d *disk) indexPart(ctx context.Context, l *Layout, p *Part, opt *IndexOptions, emit func(IndexResult)) error {
	if len(p.Segments) == 0 {
		return nil
	}
	t, err := d.replay(ctx, p, 0)
	if err != nil {
		return err
	}
	for i, g := range p.Segments {
		sc := &scanner{txns: t, sums: p.settings.sizes}
		r, err := d.scanSegment(ctx, sc, p.Dir, g, g.options(p.settings.interval))
		if err != nil {
			return fmt.Errorf("%s: %w", p.path(g.Base, state.ExtLog), err)
		}
		st := p.settings
		res := IndexResult{Log: p.path(g.Base, state.ExtLog), Base: g.Base, Batches: len(r.batches)}
		if st.interval < 0 {
			st.interval = usualInterval
			if b := d.boundsOf(p.Dir, g, r); b.ok() {
				st.interval = b.pick(usualInterval)
				res.Found = st.interval != usualInterval
			}
		}
		res.Interval = st.interval
		if r.bad > 0 {
			res.Damaged = fmt.Sprintf("%d places without a good batch, the first at byte %d: %s", r.bad, r.badAt, r.why)
		}
		want, err := r.derive(g.Base, st)
		if err != nil {
			return fmt.Errorf("%s: %w", res.Log, err)
		}
		if opt.Sizes {
			want = derived{state.ExtSizeIndex: want[state.ExtSizeIndex]}
		}
		growing := i == len(p.Segments)-1 && (!l.Clean || p.Raft)
		if res.Differ, err = d.differing(p, g.Base, want, growing); err != nil {
			return err
		}
		if len(res.Differ) > 0 && !opt.Check {
			if err := d.writeDerived(p, g.Base, want); err != nil {
				return err
			}
			res.Written = true
		}
		emit(res)
	}
	return nil
}

// differing lists the names of derived files that are not as they should be.
func (d *disk) differing(p *Part, base storage.Offset, want derived, growing bool) ([]string, error) {
	var out []string
	for _, ext := range derivedExts {
		b, ok := want[ext]
		if !ok || ext == state.ExtSizeIndex && !p.Own {
			continue
		}
		got, err := d.readOr(p.path(base, ext), nil)
		if err != nil {
			return nil, err
		}
		if !same(ext, got, b, growing) {
			out = append(out, state.FileName(base, ext))
		}
	}
	return out, nil
}

// writeDerived makes derived files as they should be; those that are so already are left alone.
func (d *disk) writeDerived(p *Part, base storage.Offset, want derived) error {
	for _, ext := range derivedExts {
		b, ok := want[ext]
		if !ok || ext == state.ExtSizeIndex && !p.Own {
			continue
		}
		name := p.path(base, ext)
		got, err := d.readOr(name, nil)
		if err != nil {
			return err
		}
		switch {
		case same(ext, got, b, false):
			if b != nil {
				err = d.sync(name)
			}
		case b == nil:
			err = d.remove(name)
		default:
			err = d.write(name, b)
		}
		if err != nil {
			return err
		}
	}
	return d.syncDir(p.Dir)
}
