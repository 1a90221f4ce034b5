package partition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sort"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// maxSnapshotBytes bounds what is read as a producer snapshot: a million producers.
const maxSnapshotBytes = 64 << 20

// producers is what a log knows of those who wrote to it, as a broker keeps it: the last batch of each and its open transaction.
type producers struct {
	m map[int64]state.ProducerEntry
}

func newProducers() *producers { return &producers{m: map[int64]state.ProducerEntry{}} }

func (p *producers) clone() *producers { return &producers{m: maps.Clone(p.m)} }

// entry returns a producer as it stands when a batch of its comes: a new epoch forgets the batches of the one before.
func (p *producers) entry(h *record.Header) state.ProducerEntry {
	e, ok := p.m[h.ProducerID]
	if !ok {
		e = state.ProducerEntry{ProducerID: h.ProducerID, CoordinatorEpoch: -1, TxnFirst: -1}
	}
	if !ok || e.Epoch != h.ProducerEpoch {
		e.Epoch, e.LastSequence, e.LastOffset, e.OffsetDelta, e.Timestamp = h.ProducerEpoch, -1, -1, 0, -1
	}
	return e
}

// data takes a data batch. One outside the transaction that its producer has open makes a broker stop at its next start: that is an error, and the batch is
// not taken.
func (p *producers) data(h *record.Header) error {
	if h.ProducerID < 0 {
		return nil
	}
	e := p.entry(h)
	if e.Open() && !h.Attributes.Transactional() {
		return fmt.Errorf("producer %d has a transaction open since offset %d, and the batch is outside of it", h.ProducerID, e.TxnFirst)
	}
	e.LastSequence = -1
	if h.BaseSequence >= 0 {
		e.LastSequence = int32((int64(h.BaseSequence) + int64(h.LastOffsetDelta)) & 0x7fffffff)
	}
	e.LastOffset, e.OffsetDelta, e.Timestamp = h.LastOffset(), h.LastOffsetDelta, h.MaxTimestamp
	if h.Attributes.Transactional() && !e.Open() {
		e.TxnFirst = h.BaseOffset
	}
	p.m[h.ProducerID] = e
	return nil
}

// end takes the control record of a batch and returns the transaction that it aborts, if it does.
func (p *producers) end(h *record.Header, c record.ControlRecord) (aborted index.TxnEntry, ok bool) {
	if h.ProducerID < 0 || c.Type != record.Abort && c.Type != record.Commit {
		return aborted, false
	}
	e := p.entry(h)
	first := e.TxnFirst
	e.TxnFirst, e.CoordinatorEpoch, e.Timestamp = -1, c.CoordinatorEpoch, h.MaxTimestamp
	p.m[h.ProducerID] = e
	if c.Type != record.Abort || first < 0 {
		return aborted, false
	}
	return index.TxnEntry{ProducerID: h.ProducerID, First: first, Last: h.LastOffset(), Stable: p.stable(h.NextOffset())}, true
}

// stable is the first offset of the oldest open transaction, or end.
func (p *producers) stable(end storage.Offset) storage.Offset {
	for _, e := range p.m {
		if e.Open() {
			end = min(end, e.TxnFirst)
		}
	}
	return end
}

// snapshot returns the bytes of a snapshot file.
func (p *producers) snapshot() []byte {
	list := make([]state.ProducerEntry, 0, len(p.m))
	for _, id := range slices.Sorted(maps.Keys(p.m)) {
		list = append(list, p.m[id])
	}
	return state.EncodeSnapshot(list)
}

// replayed is what the batches of a stretch of a log did.
type replayed struct {
	p *producers
	// aborted are the transactions that ended there, and where the marker of each stands.
	aborted []index.TxnEntry
}

// replay takes the batches of views from offset from on.
func (p *producers) replay(ctx context.Context, views []*segment.View, from storage.Offset) (*replayed, error) {
	r := &replayed{p: p}
	for _, v := range views {
		if v.Next <= from {
			continue
		}
		err := v.EachProduced(ctx, from, func(h *record.Header, c record.ControlRecord, control bool) {
			if !control {
				_ = p.data(h) // it is in the log already
				return
			}
			if e, ok := p.end(h, c); ok {
				r.aborted = append(r.aborted, e)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// snapshots returns the offsets of the producer snapshots in a listing, ascending.
func snapshots(entries []vfs.DirEntry) []storage.Offset {
	var list []storage.Offset
	for _, e := range entries {
		if base, ext, suffix, ok := state.ParseFileName(e.Name); ok && ext == state.ExtSnapshot && suffix == "" {
			list = append(list, base)
		}
	}
	slices.Sort(list)
	return list
}

// loadSnapshot reads the newest producer snapshot at or below an offset that can be read and says up to where it goes; an empty one at start where there is
// none.
func (l *Log) loadSnapshot(entries []vfs.DirEntry, start, limit storage.Offset) (*producers, storage.Offset, error) {
	list := snapshots(entries)
	for i := sort.Search(len(list), func(i int) bool { return list[i] > limit }) - 1; i >= 0 && list[i] > start; i-- {
		path := l.path(state.FileName(list[i], state.ExtSnapshot))
		b, err := vfs.ReadFile(l.env.FS, path, maxSnapshotBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil && !errors.Is(err, vfs.ErrTooBig) {
			return nil, 0, err
		}
		var all []state.ProducerEntry
		if err == nil {
			all, err = state.DecodeSnapshot(b)
		}
		if err != nil {
			l.report(path, err.Error()+": an older one is used")
			continue
		}
		p := newProducers()
		for _, e := range all {
			p.m[e.ProducerID] = e
		}
		return p, list[i], nil
	}
	return newProducers(), start, nil
}

// writeSnapshot writes the producers as they are at offset o. It is synced before it gets its name.
func (l *Log) writeSnapshot(p *producers, o storage.Offset) error {
	if o == 0 && len(p.m) == 0 {
		return nil // a log that begins needs none
	}
	path := l.path(state.FileName(o, state.ExtSnapshot))
	if err := vfs.WriteFile(l.env.FS, path, p.snapshot(), 0o644, &l.owner); err != nil {
		return fmt.Errorf("producer snapshot: %w", err)
	}
	return nil
}

// tidySnapshots removes snapshots that say nothing any more: those behind the end, and those before it that belong to no segment.
func (l *Log) tidySnapshots(s *snapshot) error {
	entries, err := l.env.FS.ReadDir(l.o.Dir)
	if err != nil {
		return err
	}
	for _, o := range snapshots(entries) {
		if o == s.end || o < s.end && s.at(s.find(o)).Base == o {
			continue
		}
		if err := l.env.FS.Remove(l.path(state.FileName(o, state.ExtSnapshot))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
