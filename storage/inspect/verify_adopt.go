package inspect

import (
	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// place is where something was seen first, and how often.
type place struct {
	n      int
	pos    storage.Pos
	offset storage.Offset
	value  int64
}

func (p *place) see(pos storage.Pos, o storage.Offset, value int64) {
	if p.n == 0 {
		p.pos, p.offset, p.value = pos, o, value
	}
	p.n++
}

// adoptReport is what would hurt a broker that adopts a segment.
type adoptReport struct {
	producer, txn, noEpoch, highEpoch, old place
}

// adopts looks at a batch as a broker of another cluster would have to.
func (c *segCheck) adopts(h *record.Header, pos storage.Pos) {
	if !c.p.adopt {
		return
	}
	a := &c.r.adopt
	if h.Magic < 2 {
		a.old.see(pos, h.BaseOffset, int64(h.Magic))
		return
	}
	if h.Attributes.Transactional() || h.Attributes.Control() {
		a.txn.see(pos, h.BaseOffset, h.ProducerID)
	} else if h.ProducerID >= 0 {
		a.producer.see(pos, h.BaseOffset, h.ProducerID)
	}
	if h.LeaderEpoch < 0 {
		a.noEpoch.see(pos, h.BaseOffset, -1)
	} else if last, ok := c.p.epochs.Last(); ok && h.LeaderEpoch > last.Epoch {
		a.highEpoch.see(pos, h.BaseOffset, int64(h.LeaderEpoch))
	}
}

// findings tells what was seen in a segment.
func (a *adoptReport) findings(log string, emit func(Finding)) {
	tell := func(p *place, what What, repair, format string) {
		if p.n > 0 {
			f := about(log, Damage, what, repair, format, p.n, p.value)
			emit(f.at(p.pos, p.offset))
		}
	}
	const rewrite = "write the log anew as plain batches: cat FROM/tail.batch > TO/tail.batch between two mounts leaves out what belongs to producers and transactions"
	tell(&a.producer, AdoptProducer, rewrite, "%d batches of idempotent producers, the first of id %d: the cluster gives the same ids again, and drops what they write as duplicates")
	tell(&a.txn, AdoptTxn, rewrite, "%d transactional or control batches, the first of producer %d: the transactions are unknown to the cluster")
	tell(&a.noEpoch, AdoptEpoch, rewrite, "%d batches with leader epoch %d: followers refuse them")
	tell(&a.highEpoch, AdoptEpoch, rewrite, "%d batches with a leader epoch above the last of leader-epoch-checkpoint, the first with %d: replicas cut the log for ever")
	tell(&a.old, AdoptFormat, rewrite, "%d entries of an old format, the first of version %d")
}
