package repair

import (
	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// txns follows the transactions of a log as a broker that recovers it does.
type txns struct {
	open map[int64]storage.Offset // producer id -> first offset of its open transaction
}

// newTxns begins with the transactions that a producer snapshot says are open.
func newTxns(entries []state.ProducerEntry) *txns {
	t := &txns{open: map[int64]storage.Offset{}}
	for i := range entries {
		if entries[i].Open() {
			t.open[entries[i].ProducerID] = entries[i].TxnFirst
		}
	}
	return t
}

// batch notes a batch and appends to list the entry that it calls for. Of a control batch r has been reset to it.
func (t *txns) batch(list []index.TxnEntry, h *record.Header, r *record.Reader) []index.TxnEntry {
	if !h.Attributes.Control() {
		if _, ok := t.open[h.ProducerID]; !ok && h.Attributes.Transactional() {
			t.open[h.ProducerID] = h.BaseOffset
		}
		return list
	}
	var rec storage.Record
	if ok, err := r.Next(&rec); err != nil || !ok {
		return list
	}
	c, err := record.ParseControl(&rec)
	if err != nil || c.Type != record.Abort && c.Type != record.Commit {
		return list
	}
	first, ok := t.open[h.ProducerID]
	if !ok {
		return list
	}
	delete(t.open, h.ProducerID)
	if c.Type == record.Commit {
		return list
	}
	stable := h.LastOffset() + 1
	for _, o := range t.open {
		stable = min(stable, o)
	}
	return append(list, index.TxnEntry{ProducerID: h.ProducerID, First: first, Last: h.LastOffset(), Stable: stable})
}
