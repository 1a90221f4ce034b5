package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
)

// foreign is the state of a log that is another's and may be appended to. It is shown as it lies there. Before the first append it is examined, which writes
// nothing; what the append needs beyond its own bytes is done with it: until then not a byte of the log or of the files beside it changes.
type foreign struct {
	taken atomic.Bool // something has been written

	gate     chan struct{} // held during the examination; guards what follows, the plan until the examination is done and by Log.mu from then on
	examined bool
	refusal  error // why it must not be appended to; set with Log.mu held too
	plan     plan
}

// plan is what is to be done before the first append.
type plan struct {
	rewrites  []rewrite // indexes that are replaced
	sync      []*segment.Segment
	kept      int          // entries of the active segment's time index
	epochs    bool         // leader-epoch-checkpoint is written
	seen      state.Epochs // of batches that it may not tell of yet
	producers *producers
}

// rewrite replaces the indexes of a segment.
type rewrite struct {
	seg            *segment.Segment
	offsets, times []byte
}

// repairHint is how a foreign log is put right: nothing of it is cut without being asked for.
const repairHint = "start its broker, or see logmount repair --apply"

// loadForeign shows what is there.
func (l *Log) loadForeign(ctx context.Context) error {
	l.observer = newObserver()
	if err := l.look(ctx); err != nil {
		return err
	}
	l.whole, l.observer = l.observer.whole, nil
	l.foreign = &foreign{gate: make(chan struct{}, 1)}
	l.syncer.set(l.o.RecoveryPoint)
	return nil
}

// ready examines a log of another's, the first time, and returns why it must not be appended to. It needs no lock of the log: until it is done nobody
// appends.
func (l *Log) ready(ctx context.Context) error {
	f := l.foreign
	if f == nil {
		return nil
	}
	if err := pass(ctx, f.gate); err != nil {
		return err
	}
	defer func() { <-f.gate }()
	if !f.examined {
		why, err := l.examine(ctx, &f.plan)
		if err != nil {
			return fmt.Errorf("%s: examine: %w", l.o.TP, err)
		}
		f.examined = true
		if why != "" {
			f.plan = plan{}
			l.refuseForeign(fmt.Errorf("%s: %w: %s", l.o.TP, storage.ErrReadOnly, why))
			l.report(l.o.Dir, "appends are refused: "+why)
		}
	}
	return f.refusal
}

// refuseForeign says why the log must not be appended to. Others than those who wait at the gate read that too, with the lock held.
func (l *Log) refuseForeign(err error) {
	l.mu.Lock()
	l.foreign.refusal = err
	l.mu.Unlock()
}

// takeLocked makes a log of another's, which ready has let pass, take the first byte. The lock is held.
func (l *Log) takeLocked() error {
	f := l.foreign
	if f == nil || f.taken.Load() {
		return nil
	}
	if err := l.carryOut(&f.plan); err != nil {
		return fmt.Errorf("%s: take over: %w", l.o.TP, err)
	}
	l.producers = f.plan.producers
	l.syncer.set(l.whole.end)
	f.plan = plan{}
	f.taken.Store(true)
	l.env.Log.Info("appending to a log of another's", "topic", l.o.TP.Topic, "partition", l.o.TP.Partition, "end", int64(l.whole.end))
	return nil
}

// take is takeLocked for who does not hold the lock.
func (l *Log) take(ctx context.Context) error {
	if err := l.ready(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked()
}

// carryOut does what was planned. It may be repeated.
func (l *Log) carryOut(p *plan) error {
	for _, r := range p.rewrites {
		if err := r.seg.WriteIndexes(r.offsets, r.times); err != nil {
			return err
		}
		if err := r.seg.GiveTo(l.owner); err != nil {
			return err
		}
	}
	for _, seg := range p.sync {
		if err := seg.SyncAll(); err != nil {
			return err
		}
	}
	// From here on readers go by what the appender knows of the indexes, so that they can be cut.
	s := *l.whole
	s.active = l.active.View()
	if err := l.publishWritten(context.Background(), &s); err != nil {
		return err
	}
	l.active.Segment().ForgetIndexes()
	offsets, _ := l.active.Counts()
	if err := l.active.Segment().Cut(l.active.Size, offsets, p.kept); err != nil {
		return err
	}
	if p.epochs {
		if err := l.writeEpochs(); err != nil {
			return err
		}
	}
	return l.env.FS.SyncDir(l.o.Dir)
}

// Checkpointed reports whether the checkpoints are to say where the log is: it is ours, or has been written here.
func (l *Log) Checkpointed() bool {
	return l.o.Writable && (l.foreign == nil || l.foreign.taken.Load())
}

// examine finds out why a log of another's must not be appended to, or how it is to be done. It writes nothing. The gate is held.
func (l *Log) examine(ctx context.Context, p *plan) (why string, err error) {
	entries, err := l.env.FS.ReadDir(l.o.Dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if _, _, suffix, ok := state.ParseFileName(e.Name); ok && (suffix == state.SuffixSwap || suffix == state.SuffixCleaned) {
			return "a compaction was cut short (" + e.Name + "): " + repairHint, nil
		}
	}
	s := l.whole
	list := make([]found, 0, s.len())
	for i := range s.len() {
		f, err := l.find(s.at(i).Segment)
		if errors.Is(err, fs.ErrNotExist) {
			return s.at(i).Path() + " is not there: " + repairHint, nil
		}
		if err != nil {
			return "", err
		}
		list = append(list, f)
	}
	if l.o.Clean {
		why, err = l.examineClean(ctx, list, p)
	} else {
		why, err = l.examineUnclean(ctx, list, p)
	}
	if why != "" || err != nil {
		return why, err
	}
	end := l.active.Next
	if l.o.LogStart > end {
		return fmt.Sprintf("its checkpointed start %d lies above its end %d: %s", l.o.LogStart, end, repairHint), nil
	}
	l.active.Created(list[len(list)-1].modified)
	if err := l.examineEpochs(ctx, list, p); err != nil {
		return "", err
	}
	start := max(l.o.LogStart, list[0].seg.Base)
	base, from, err := l.loadSnapshot(entries, start, end)
	if err != nil {
		return "", err
	}
	r, err := base.replay(ctx, views(list, &l.active), from)
	if err != nil {
		return "", err
	}
	p.producers = r.p
	return "", nil
}

// views returns the views of all segments.
func views(list []found, active *segment.Appender) []*segment.View {
	return append(closedViews(list), ptr(active.View()))
}

// examineClean looks at the end of a log that was closed in order.
func (l *Log) examineClean(ctx context.Context, list []found, p *plan) (why string, err error) {
	last := list[len(list)-1]
	a, ok, err := last.seg.Adopt(ctx, last.size)
	if err != nil {
		return "", err
	}
	if !ok {
		return last.seg.Path() + " does not end with a whole batch: " + repairHint, nil
	}
	l.active, p.kept = a.Appender, a.Kept
	if a.Rewrite {
		p.rewrites = append(p.rewrites, rewrite{last.seg, a.Offsets, a.Times})
	}
	return "", nil
}

// examineUnclean checks a log that nobody closed from its recovery point on. Where all is whole to the end it may go on; its indexes are made anew, since
// nobody knows how much of them reached the disk.
func (l *Log) examineUnclean(ctx context.Context, list []found, p *plan) (why string, err error) {
	for i := l.firstRecovered(list); i < len(list); i++ {
		f := &list[i]
		r, err := f.seg.Scan(ctx, f.size, l.o.RecoveryPoint)
		if err != nil {
			return "", err
		}
		switch {
		case r.Bad != nil:
			return fmt.Sprintf("%s: no whole batch at position %d, offset %d, of a log that was not closed in order: %s", f.seg.Path(), r.Bad.Pos, r.Bad.Offset, repairHint), nil //nolint:nilerr // what was found is the answer
		case r.Lost || r.Size != f.size:
			return f.seg.Path() + " is damaged, and its broker would cut it there: " + repairHint, nil
		}
		l.active = r.Appender
		p.seen = append(p.seen, r.Epochs...)
		if _, p.kept = l.active.Counts(); i < len(list)-1 {
			closing, err := l.active.Closing()
			if err != nil {
				return "", err
			}
			r.Times = append(r.Times, closing...)
		}
		p.rewrites = append(p.rewrites, rewrite{f.seg, r.Offsets, r.Times})
		p.sync = append(p.sync, f.seg)
	}
	return "", nil
}

// examineEpochs reads the leader epochs; where the file has none it is to be made from the batches. An entry at the very end stays: its leader was elected and
// had nothing to write yet.
func (l *Log) examineEpochs(ctx context.Context, list []found, p *plan) error {
	l.epochs = nil
	if err := l.loadEpochs(); err != nil {
		return err
	}
	if len(l.epochs) == 0 {
		if err := l.rebuildEpochs(ctx, list); err != nil {
			return err
		}
		p.epochs = len(l.epochs) > 0
	}
	p.epochs = l.raiseEpochs(p.seen) || p.epochs
	if cut, was := l.epochs.TruncateFrom(l.active.Next + 1); was {
		l.epochs, p.epochs = cut, true
	}
	return nil
}
