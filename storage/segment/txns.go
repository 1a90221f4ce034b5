package segment

import (
	"context"
	"slices"
	"sort"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// Txns follows the transactions of a log, batch by batch in the order of offsets.
type Txns struct {
	open    map[int64]storage.Offset // producer id -> first offset of its open transaction
	aborted []index.TxnEntry         // by the offsets of their markers
}

// Clone returns a copy that can go on by itself.
func (t *Txns) Clone() *Txns {
	c := &Txns{open: make(map[int64]storage.Offset, len(t.open)), aborted: slices.Clone(t.aborted)}
	for id, o := range t.open {
		c.open[id] = o
	}
	return c
}

// data notes a data batch.
func (t *Txns) data(h *record.Header) {
	if !h.Attributes.Transactional() {
		return
	}
	if t.open == nil {
		t.open = map[int64]storage.Offset{}
	}
	if _, ok := t.open[h.ProducerID]; !ok {
		t.open[h.ProducerID] = h.BaseOffset
	}
}

// end notes a control record that ends a transaction.
func (t *Txns) end(h *record.Header, kind record.ControlType) {
	if kind != record.Abort && kind != record.Commit {
		return
	}
	first, ok := t.open[h.ProducerID]
	if !ok {
		return
	}
	delete(t.open, h.ProducerID)
	if kind == record.Abort {
		t.aborted = append(t.aborted, index.TxnEntry{ProducerID: h.ProducerID, First: first, Last: h.LastOffset(), Stable: t.Stable(h.NextOffset())})
	}
}

// Stable is the last stable offset of a log that ends at end: the first offset of the oldest open transaction, or end.
func (t *Txns) Stable(end storage.Offset) storage.Offset {
	for _, o := range t.open {
		end = min(end, o)
	}
	return end
}

// Aborted returns the transactions that were aborted, in the order of their markers.
func (t *Txns) Aborted() []index.TxnEntry { return t.aborted[:len(t.aborted):len(t.aborted)] }

// AddTransactions tells t of the view's batches from position pos on, where a batch with at least offset low starts. A batch that cannot be read is
// passed over.
func (v *View) AddTransactions(ctx context.Context, t *Txns, pos storage.Pos, low storage.Offset) error {
	return v.walkHeaders(ctx, pos, low, func(w *batchWalk) error {
		h := &w.scan.Header
		if h.Magic < 2 {
			return nil
		}
		if !h.Attributes.Control() {
			t.data(h)
			return nil
		}
		w.eachControl(func(c record.ControlRecord) { t.end(h, c.Type) })
		return nil
	})
}

// eachControl calls fn for the control records of the batch that was found. What cannot be read is passed over.
func (w *batchWalk) eachControl(fn func(record.ControlRecord)) {
	b, err := w.scan.Batch()
	if err == nil {
		err = w.rec.Reset(b)
	}
	if err != nil {
		return
	}
	var r storage.Record
	for {
		ok, err := w.rec.Next(&r)
		if err != nil || !ok {
			return
		}
		if c, err := record.ParseControl(&r); err == nil {
			fn(c)
		}
	}
}

// Hidden says which data batches belong to aborted transactions. It is immutable; nil hides nothing.
type Hidden struct {
	byProducer map[int64][]index.TxnEntry // ascending
	all        []index.TxnEntry
}

// Hide returns what read_committed does not show of a log with these aborted transactions; nil if there are none.
func Hide(aborted []index.TxnEntry) *Hidden {
	if len(aborted) == 0 {
		return nil
	}
	h := &Hidden{byProducer: map[int64][]index.TxnEntry{}, all: aborted}
	for _, e := range aborted {
		h.byProducer[e.ProducerID] = append(h.byProducer[e.ProducerID], e)
	}
	return h
}

// batch reports whether a batch is hidden.
func (x *Hidden) batch(h *record.Header) bool {
	if x == nil || !h.Attributes.Transactional() || h.Attributes.Control() {
		return false
	}
	list := x.byProducer[h.ProducerID]
	i := sort.Search(len(list), func(i int) bool { return list[i].Last >= h.BaseOffset })
	return i < len(list) && list[i].First <= h.BaseOffset
}

// touches reports whether anything in from <= offset < to may be hidden.
func (x *Hidden) touches(from, to storage.Offset) bool {
	if x == nil {
		return false
	}
	for _, e := range x.all {
		if e.First < to && e.Last >= from {
			return true
		}
	}
	return false
}

// Committed returns the view as read_committed shows it: without what is hidden and, if stable lies in it, only up to there.
func (v *View) Committed(ctx context.Context, hidden *Hidden, stable storage.Offset) (View, error) {
	c := *v
	if hidden.touches(v.Base, v.Next) {
		c.Hidden, c.Live, c.Tail = hidden, nil, true
	}
	if stable < v.Next {
		pos, err := v.batchPos(ctx, stable, false)
		if err != nil {
			return c, err
		}
		c.Size, c.Next, c.Live, c.Tail = pos, max(stable, v.Base), nil, true
	}
	return c, nil
}

// EachProduced calls fn for the batches of producers from offset from on, in order, and with what a control batch says. Batches that cannot be read are passed
// over.
func (v *View) EachProduced(ctx context.Context, from storage.Offset, fn func(h *record.Header, c record.ControlRecord, control bool)) error {
	pos, err := v.batchPos(ctx, max(from, v.Base), false)
	if err != nil {
		return err
	}
	return v.walkHeaders(ctx, pos, v.Base, func(w *batchWalk) error {
		h := &w.scan.Header
		if h.Magic < 2 || h.ProducerID < 0 || h.BaseOffset < from {
			return nil
		}
		if !h.Attributes.Control() {
			fn(h, record.ControlRecord{}, false)
			return nil
		}
		w.eachControl(func(c record.ControlRecord) { fn(h, c, true) })
		return nil
	})
}
