package fs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// writeHandle takes records. It is one open file description: all its descriptors, duplicates and inherited ones too, share one unfinished record.
type writeHandle struct {
	gate
	t         *Tree
	node      *viewNode // nil for the tail of a topic
	sink      sink
	format    format.Format
	writeOnly bool
	close     closing

	unfinished atomic.Bool // as split.Pending, to be seen without the gate
	lost       atomic.Bool // an unfinished record was dropped when the mount went away

	// guarded by gate
	split *format.Splitter
	end   int64            // of the last request that was taken
	recs  []storage.Record // reused
	over  error            // nothing is taken any more
	dying bool             // the last FLUSH came from a task that a signal is ending
}

func (t *Tree) newWriteHandle(ctx context.Context, s sink, topic string, f format.Format, flags uint32) (*writeHandle, error) {
	split, err := t.newSplitter(ctx, topic, f)
	if err != nil {
		return nil, err
	}
	w := &writeHandle{gate: newGate(), t: t, sink: s, format: f, writeOnly: !accessOf(flags).read, split: split}
	w.close.key = s.key()
	t.writing.Add(1)
	t.writers.add(w)
	if err := t.running(); err != nil { // Shutdown may have listed the writers before this one
		w.release()
		return nil, err
	}
	return w, nil
}

func (w *writeHandle) write(ctx context.Context, data []byte, pos int64, flags uint32) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	// An append does not wait for long, and on a disk a signal does not end a write(2) either: bash would lose a line to each SIGCHLD.
	ctx = context.WithoutCancel(ctx)
	if w.over != nil {
		return w.over
	}
	if err := w.t.running(); err != nil {
		return err
	}
	defer func() { w.unfinished.Store(w.split.Pending()) }()
	if w.format == format.Whole {
		return w.ended(w.split.WriteAt(data, pos))
	}
	if w.writeOnly && flags&syscall.O_APPEND == 0 && pos > w.end {
		// A program that skips over holes believes that the gap reads as zeros.
		w.split.Abort()
		return fmt.Errorf("%w: write at %d, but this file has been written up to %d", storage.ErrInvalidRecord, pos, w.end)
	}
	appended, err := w.take(ctx, data)
	if err != nil {
		w.split.Abort()
		return w.ended(err)
	}
	w.end = pos + int64(len(data))
	w.dying = false
	if appended && flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		return w.sink.sync(ctx)
	}
	return nil
}

// take appends the records that data completes.
func (w *writeHandle) take(ctx context.Context, data []byte) (appended bool, err error) {
	if w.format == format.Batch {
		return w.takeBatches(ctx, data)
	}
	recs, err := w.split.Split(data, w.t.now(), w.recs[:0])
	if err != nil {
		return false, err
	}
	if len(recs) > 0 {
		err = w.sink.append(ctx, recs)
		appended = true
		clear(recs)
		if cap(recs) > 1<<14 {
			recs = nil
		}
		w.recs = recs
	}
	if err == nil {
		w.split.Commit()
	}
	return appended, err
}

// holdBytes bounds what is kept of batches that wait for the end of their transaction; what is more is appended without knowing it.
const holdBytes = 32 << 20

// takeBatches appends the batches that data completes. Those of a transaction wait for its end: an aborted one is left out.
func (w *writeHandle) takeBatches(ctx context.Context, data []byte) (appended bool, err error) {
	batches, err := w.split.SplitBatches(data)
	if err != nil {
		return false, err
	}
	taken := 0
	if len(batches) > 0 {
		taken, err = w.sink.appendBatches(ctx, batches, w.split.PendingBytes() < holdBytes)
		if err != nil {
			return false, err
		}
	}
	w.split.CommitBatches(taken)
	return taken > 0, nil
}

// ended remembers an error after which the rest of a record must not become one.
func (w *writeHandle) ended(err error) error {
	if errors.Is(err, storage.ErrTooLarge) {
		w.over = err
		w.split.Drop()
	}
	return err
}

// flush tells what the last close could not tell any more, and keeps the unfinished record: it need not be the last.
func (w *writeHandle) flush(ctx context.Context, pid uint32) error {
	if !w.unfinished.Load() {
		w.alive()
		return w.lostErr()
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if !w.split.Pending() || w.over != nil {
		w.alive()
		return w.lostErr()
	}
	w.dying = w.losesWhenKilled() && w.t.dying(pid)
	w.t.settle.flush(&w.close)
	if w.format == format.Batch {
		_, err := w.split.FinalBatches()
		return err
	}
	r, err := w.split.Final(w.t.now())
	if err != nil || r == nil {
		return err
	}
	return w.sink.check(ctx, r)
}

// lostErr tells a close what became of the record that it was to end.
func (w *writeHandle) lostErr() error {
	if w.lost.Load() {
		return errStopping
	}
	return nil
}

// losesWhenKilled reports whether half a record would be taken for a whole one.
func (w *writeHandle) losesWhenKilled() bool {
	return w.format == format.Whole || w.format == format.JSON || w.format == format.Batch
}

// alive implements user: a FLUSH before was not the last.
func (w *writeHandle) alive() { w.t.settle.alive(&w.close) }

// closing implements closer.
func (w *writeHandle) closing() {
	if w.unfinished.Load() {
		w.t.settle.release(&w.close)
	}
}

// release makes the unfinished record one. There is nobody left to tell of a failure, so it is reported.
func (w *writeHandle) release() {
	defer w.t.settle.done(&w.close)
	w.finish(context.Background(), "", false)
	w.t.writers.remove(w)
	w.t.writing.Add(-1)
	if w.node != nil {
		w.node.writers.Add(-1)
	}
}

// stop ends the handle while a program still has it open. Of a format in which half a record looks like a whole one, what is unfinished is dropped;
// unless it is known that no more was to come: a close is waited for that is under way.
func (w *writeHandle) stop(ctx context.Context) {
	if !w.losesWhenKilled() {
		w.finish(ctx, "", false)
		return
	}
	for try := 1; ; try++ {
		w.t.settle.waitFor(ctx, &w.close)
		if w.finish(ctx, "the mount went away while it was being written", try < stopTries) || ctx.Err() != nil {
			return
		}
	}
}

// stopTries bounds how often the end of the mount waits for closes of one handle: a program may close duplicates of a descriptor for ever.
const stopTries = 50

// finish ends the handle: what is unfinished becomes a record, unless there is a reason to drop it, and nothing more is taken. A
// patient one reports false, and has done nothing, where a close is under way, which has been told that all is well.
func (w *writeHandle) finish(ctx context.Context, cut string, patient bool) bool {
	if err := w.lock(ctx); err != nil {
		return true
	}
	defer w.unlock()
	if patient && w.t.settle.changing(&w.close) != nil {
		return false
	}
	defer w.unfinished.Store(false)
	defer w.split.Drop()
	if w.over == nil {
		w.over = errStopping
	}
	if !w.split.Pending() {
		return true
	}
	size := w.split.PendingBytes()
	reason := ""
	switch {
	case w.split.Torn():
		reason = "a write that held more of it was refused"
	case w.dying:
		reason = "its writer was killed"
	case cut != "":
		reason = cut
	default:
		if err := w.appendFinal(ctx); err != nil {
			reason = err.Error()
		}
	}
	if reason != "" {
		w.lost.Store(true) // before unfinished is cleared
		w.t.report(w.sink.path(), fmt.Sprintf("an unfinished record of %d bytes was dropped: %s", size, reason))
	}
	return true
}

func (w *writeHandle) appendFinal(ctx context.Context) error {
	if w.format == format.Batch {
		batches, err := w.split.FinalBatches()
		if len(batches) > 0 {
			if _, aerr := w.sink.appendBatches(ctx, batches, false); aerr != nil {
				return aerr
			}
		}
		return err
	}
	r, err := w.split.Final(w.t.now())
	if err != nil || r == nil {
		return err
	}
	return w.sink.append(ctx, []storage.Record{*r})
}

// truncate is for what is still being written: cp(1) ends a file that ends with a hole in this way. The log itself cannot be cut.
func (w *writeHandle) truncate(ctx context.Context, size uint64) error {
	if w.format != format.Whole || size > 1<<62 {
		return errNotAllowed
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.over != nil {
		return w.over
	}
	err := w.split.Truncate(int64(size))
	w.unfinished.Store(w.split.Pending())
	return w.ended(err)
}

func (w *writeHandle) takesBatches() bool { return w.format == format.Batch }

// writerSet knows the open writers, for Shutdown.
type writerSet struct {
	mu sync.Mutex // guards m; a leaf
	m  map[*writeHandle]struct{}
}

func newWriterSet() *writerSet { return &writerSet{m: make(map[*writeHandle]struct{})} }

func (s *writerSet) add(w *writeHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[w] = struct{}{}
}

func (s *writerSet) remove(w *writeHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, w)
}

func (s *writerSet) list() []*writeHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*writeHandle, 0, len(s.m))
	for w := range s.m {
		out = append(out, w)
	}
	return out
}
