package partition

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// stageExact takes batches as a follower does: all of them, with their producers and transactions. A batch keeps its offsets where the log has not reached
// them; else it gets the next ones. Only its epoch becomes the log's own.
func (l *Log) stageExact(w *appendWork, batches [][]byte, now int64) error {
	epoch, err := l.epochLocked()
	if err != nil {
		return err
	}
	w.producers = l.producers.clone()
	for i, b := range batches {
		if int64(len(b)) > l.o.Config.MaxMessageBytes {
			return l.tooLarge(int64(len(b)))
		}
		h, sums, err := w.reader.Validate(b)
		if err != nil {
			return invalidBatch(i, err)
		}
		start := len(w.buf)
		w.buf = append(w.buf, b...)
		record.Rebase(w.buf[start:], max(h.BaseOffset, w.app.Next), epoch, false)
		if h, err = record.ParseHeader(w.buf[start:]); err != nil {
			return invalidBatch(i, err)
		}
		if h.Attributes.Control() {
			sums = record.Sums{} // nobody sees them
		}
		if err := l.place(w, &h, len(b), segment.Sums(sums), now); err != nil {
			return err
		}
		if err := w.produced(&h); err != nil {
			return invalidBatch(i, err)
		}
	}
	return nil
}

// produced notes the batch that the reader stands before, in the piece that it was put into.
func (w *appendWork) produced(h *record.Header) error {
	if h.ProducerID < 0 {
		return nil
	}
	if !h.Attributes.Control() {
		return w.producers.data(h)
	}
	var r storage.Record
	for {
		ok, err := w.reader.Next(&r)
		if err != nil || !ok {
			return err
		}
		c, err := record.ParseControl(&r)
		if err != nil {
			return err
		}
		if e, aborted := w.producers.end(h, c); aborted {
			p := &w.pieces[len(w.pieces)-1]
			p.txns = index.AppendTxnEntry(p.txns, e)
		}
	}
}

// writeTxns writes what a piece adds to its segment's transaction index.
func (l *Log) writeTxns(p *staged) error {
	if len(p.txns) == 0 {
		return nil
	}
	seg := p.app.Segment()
	at, err := seg.TxnsSize()
	if err != nil {
		return err
	}
	p.txnsAt, p.txnsWritten = at, true
	if at == 0 {
		l.syncer.names.Add(1)
	}
	return seg.WriteTxns(p.txns, at, l.owner)
}

// snapshotRolls writes the producers as they were where new segments begin. They are derived: without one they are worked out again.
func (l *Log) snapshotRolls(w *appendWork) {
	for i := range w.pieces[1:] {
		p := &w.pieces[i+1]
		if p.producers == nil {
			continue
		}
		if err := l.writeSnapshot(p.producers, p.app.Segment().Base); err != nil {
			l.report(l.o.Dir, err.Error())
		}
	}
}

// loadProducers works out what the log knows of its producers, where that is kept: for exact batches, and in a log that came with it. What recovery has
// looked through gets its transaction indexes as the batches say.
func (l *Log) loadProducers(ctx context.Context, list []found, recovered bool) error {
	entries, err := l.env.FS.ReadDir(l.o.Dir)
	if err != nil {
		return err
	}
	if !l.o.Exact && !slices.ContainsFunc(entries, producerFile) {
		return nil
	}
	if err := l.removeOrphanTxns(list, entries); err != nil {
		return err
	}
	limit, first := l.active.Next, len(list)
	if recovered {
		first = l.firstRecovered(list)
		limit = min(limit, list[first].seg.Base)
	}
	base, from, err := l.loadSnapshot(entries, max(l.o.LogStart, list[0].seg.Base), limit)
	if err != nil {
		return err
	}
	r, err := base.replay(ctx, views(list, &l.active), from)
	if err != nil {
		return err
	}
	l.producers = r.p
	for i := first; i < len(list); i++ {
		next := storage.Offset(1<<63 - 1)
		if i+1 < len(list) {
			next = list[i+1].seg.Base
		}
		if err := l.putTxns(list[i].seg, r.aborted, next); err != nil {
			return err
		}
	}
	return nil
}

// removeOrphanTxns removes transaction indexes without a log: a segment that gets their base offset would inherit them.
func (l *Log) removeOrphanTxns(list []found, entries []vfs.DirEntry) error {
	have := map[storage.Offset]bool{}
	for _, f := range list {
		have[f.seg.Base] = true
	}
	for _, e := range entries {
		base, ext, suffix, ok := state.ParseFileName(e.Name)
		if !ok || suffix != "" || ext != state.ExtTxnIndex || have[base] {
			continue
		}
		if err := l.env.FS.Remove(l.path(e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// producerFile reports whether a file tells of producers.
func producerFile(e vfs.DirEntry) bool {
	_, ext, suffix, ok := state.ParseFileName(e.Name)
	return ok && suffix == "" && (ext == state.ExtSnapshot || ext == state.ExtTxnIndex)
}

// putTxns makes a segment's transaction index say what markers below next the segment holds.
func (l *Log) putTxns(seg *segment.Segment, aborted []index.TxnEntry, next storage.Offset) error {
	var want []byte
	for _, e := range aborted {
		if e.Last >= seg.Base && e.Last < next {
			want = index.AppendTxnEntry(want, e)
		}
	}
	have, err := seg.ReadTxns()
	if err != nil || bytes.Equal(have, want) && (have == nil) == (want == nil) {
		return err
	}
	if err := seg.CutTxns(0); err != nil {
		return err
	}
	if len(want) > 0 {
		if err := seg.WriteTxns(want, 0, l.owner); err != nil {
			return err
		}
		if err := seg.SyncTxns(); err != nil {
			return err
		}
	}
	l.note(fmt.Sprintf("the transaction index of segment %d was made anew", seg.Base))
	return l.env.FS.SyncDir(l.o.Dir)
}

// keepsTxns reports whether there may be transaction indexes.
func (l *Log) keepsTxns() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers != nil
}

// closeProducers writes the snapshot with which a log begins the next time.
func (l *Log) closeProducers() error {
	if l.producers == nil {
		return nil
	}
	if err := l.active.Segment().SyncTxns(); err != nil {
		return err
	}
	if err := l.writeSnapshot(l.producers, l.active.Next); err != nil {
		return err
	}
	return l.tidySnapshots(l.whole)
}
