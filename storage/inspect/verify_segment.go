package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

const (
	maxOffset = storage.Offset(math.MaxInt64)
	// maxSegment is the largest log of a segment.
	maxSegment = 1<<31 - 1
	// maxFindings is how many findings about one log are told one by one.
	maxFindings = 1000
	// progressStep is how many bytes are read between two calls of Progress.
	progressStep = 8 << 20
	// unknownTime is no timestamp of a record.
	unknownTime = math.MinInt64
)

// segReport is what checking a segment found.
type segReport struct {
	findings []Finding
	more     [2]int // findings left out, by severity
	errs     []error

	read             int64
	batches, records int64
	bad              int // damaged stretches
	gaps             int // places where offsets are missing
	gap              Finding
	compacted        bool // something tells of compaction
	legacy           bool
	any              bool // there is a good batch
	next             storage.Offset
	firstEpoch       int32 // -1 where no batch has one
	lastEpoch        int32
	hasEpochs        bool
	maxTimestamp     int64

	producers *producers // nil where there were too many
	mid       map[storage.Offset]*producers
	txns      []index.TxnEntry // of the file
	txnsRead  bool             // the file could be read, or is not there
	adopt     adoptReport
}

// add notes a finding, or counts it where there are too many.
func (r *segReport) add(f Finding) {
	if len(r.findings) >= maxFindings {
		r.more[f.Severity]++
		return
	}
	r.findings = append(r.findings, f)
}

func (r *segReport) failed(path string, err error) {
	f, rest := unreadable(path, err)
	if rest == nil {
		r.add(f)
	} else if len(r.errs) < maxErrors {
		r.errs = append(r.errs, rest)
	}
}

// segCheck is the checking of one segment.
type segCheck struct {
	v      *verifier
	p      *partPlan
	s      *segPlan
	r      *segReport
	log    string // path
	reader *record.Reader
	file   io.ReaderAt
	size   int64

	// recovers says that the next start rebuilds what lies beside the log: it was not closed in order.
	recovers bool

	low     storage.Offset // no batch may start below
	holes   bool           // the last thing before low was a damaged stretch
	bad     stretchState
	goodEnd storage.Pos // behind the last good batch
	told    map[What]int

	offsets  *offsetCheck
	times    *timeCheck
	sizes    *sizeCheck
	ctl      record.ControlRecord // of the control batch at hand
	txn      int                  // entry of the transaction index that comes next
	txnWrong tally
	epoch    int // entry of the plan's epochs that holds the present offset; -1 is before the first
}

// checkSegment verifies one segment: its log, and the files beside it against the log.
func (v *verifier) checkSegment(ctx context.Context, p *partPlan, i int, reader *record.Reader) *segReport {
	s := &p.segments[i]
	r := &segReport{next: s.base, firstEpoch: -1, lastEpoch: -1, maxTimestamp: storage.NoTimestamp}
	c := &segCheck{v: v, p: p, s: s, r: r, reader: reader, low: s.base, epoch: -1, told: map[What]int{}}
	c.log = c.path(state.ExtLog)
	c.recovers = !p.clean && (s.active || s.next > p.recovery)
	r.producers = newProducers()
	r.mid = map[storage.Offset]*producers{}
	// The files beside the log are opened first: one that grows meanwhile is then never ahead of the log.
	defer c.closeSides()
	c.openSides()
	f, err := v.fsys.OpenFile(v.path(c.log), os.O_RDONLY, 0)
	if err != nil {
		r.failed(c.log, err)
		return r
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
		r.failed(c.log, err)
		return r
	}
	size := st.Size
	if size > maxSegment {
		r.add(about(c.log, Damage, SegmentSize, "split it", "a log of %d bytes; no segment is larger than 2 GiB", size))
	}
	c.walk(ctx, f, size)
	return r
}

func (c *segCheck) path(ext string) string { return join(c.p.dir, state.FileName(c.s.base, ext)) }

// walk goes over the log.
func (c *segCheck) walk(ctx context.Context, f vfs.File, size int64) {
	c.file, c.size = contextReader{ctx, f}, size
	seen := storage.Pos(0)
	err := Walk(c.file, size, c.s.base, func(b Batch) error {
		c.batch(&b)
		if b.End()-seen >= progressStep {
			c.v.progress(int64(b.End() - seen))
			seen = b.End()
		}
		return nil
	})
	if err != nil {
		c.r.failed(c.log, err)
	}
	c.v.progress(size - int64(seen))
	c.r.read = size
	c.r.next = c.low
	c.closing(size, err == nil)
}

// batch takes the next batch or gap of the log.
func (c *segCheck) batch(b *Batch) {
	if b.Gap != NoGap || b.Err != nil || !b.CRCOK {
		why := b.Err
		if why == nil {
			why = crcError(*b)
		}
		c.stretch(b, kindOf(b, why), why)
		return
	}
	h := b.Header
	c.crossing(h.BaseOffset)
	var sums record.Sums
	var maxTs int64
	err := c.reader.Reset(b.Raw)
	if err == nil {
		h = *c.reader.Header() // of an older version it knows the first offset only now
		sums, maxTs, err = c.records(&h)
	}
	if why := Misplaced(c.file, &h, b.End(), Place{Base: c.s.base, Low: c.low, Next: c.s.next}); why != nil {
		c.stretch(b, BatchOffset, why)
		return
	}
	if err != nil {
		c.settle(-1)
		c.stretch(b, BatchRecords, err)
		c.bad.sealed = true
		c.low, c.goodEnd = max(c.low, h.NextOffset()), b.End() // the header is covered by the checksum
		return
	}
	if h.BaseOffset > c.low && !c.holes {
		c.missing(&h, b.Pos)
	}
	c.take(b, &h, sums, maxTs)
}

// kindOf says what kind of damage a walk has found.
func kindOf(b *Batch, why error) What {
	switch {
	case b.Gap == GapTorn:
		return TornTail
	case b.Gap == GapZero:
		return LogZeros
	case errors.Is(why, record.ErrCRC):
		return BatchCRC
	case b.Gap == GapBad:
		return BatchFrame
	}
	return BatchHeader
}

// stretchState is a damaged stretch of the log whose end has not been seen.
type stretchState struct {
	on     bool
	sealed bool // nothing can be added to it
	from   storage.Pos
	end    storage.Pos
	offset storage.Offset
	what   What
	why    error
}

// stretch begins a damaged stretch of the log with a batch or gap, or adds it to the one that ends there.
func (c *segCheck) stretch(b *Batch, what What, why error) {
	c.holes = true
	if s := &c.bad; s.on && !s.sealed && s.end == b.Pos {
		s.end = b.End()
		return
	}
	c.settle(-1)
	c.bad = stretchState{on: true, from: b.Pos, end: b.End(), offset: c.low, what: what, why: why}
	c.r.bad++
}

// settle tells of the damaged stretch that has ended. next is the first offset of the good batch behind it, or -1.
func (c *segCheck) settle(next storage.Offset) {
	s := &c.bad
	if !s.on {
		return
	}
	s.on = false
	f := Finding{Path: c.log, Pos: s.from, End: s.end, Offset: s.offset, Next: next, What: s.what, Severity: Damage, Detail: fmt.Sprint(s.why)}
	last := int64(s.end) == c.size && !s.sealed
	above := !c.p.clean && s.offset >= c.p.recovery
	switch {
	case last && above && c.s.active:
		if f.Severity = Notice; s.what != LogZeros {
			f.What = TornTail
		}
		f.Repair = "the next start cuts the log here"
	case above && !s.sealed:
		f.Repair = "copy the directory before the next start: it cuts the log here and moves aside what follows"
	case last && c.s.active:
		f.Repair = "cut the log here"
	default:
		f.Repair = "cut the bytes out, or leave them: readers pass over them with an error"
	}
	c.r.add(f)
}

// missing notes that offsets are missing before a batch.
func (c *segCheck) missing(h *record.Header, pos storage.Pos) {
	if c.r.gaps == 0 {
		c.r.gap = about(c.log, Notice, OffsetGap, "", "offsets %d to %d are missing", c.low, h.BaseOffset-1).at(pos, c.low)
		c.r.gap.Next = h.BaseOffset
	}
	c.r.gaps++
}

// take hands a good batch to all the checks.
func (c *segCheck) take(b *Batch, h *record.Header, sums record.Sums, maxTs int64) {
	r := c.r
	r.batches++
	r.records += sums.Records
	r.any = true
	c.settle(h.BaseOffset)
	c.checkHeader(b, h, sums, maxTs)
	if h.Magic < 2 {
		r.legacy = true
	} else {
		c.checkEpoch(h, b.Pos)
		c.checkProducer(h, b.Pos, sums)
	}
	if c.offsets != nil {
		c.offsets.take(c, h, b.Pos)
	}
	r.maxTimestamp = max(r.maxTimestamp, h.MaxTimestamp)
	if c.times != nil {
		c.times.take(c, h)
	}
	if c.sizes != nil {
		c.sizes.take(h, b.Pos, visible(h, sums))
	}
	c.adopts(h, b.Pos)
	c.low, c.goodEnd, c.holes = h.NextOffset(), b.End(), false
}

func visible(h *record.Header, s record.Sums) index.Sums {
	if h.Attributes.Control() {
		return index.Sums{}
	}
	return index.Sums{Records: s.Records, KeyBytes: s.KeyBytes, ValueBytes: s.ValueBytes}
}

// records decodes all records of the batch that the reader has been reset to.
func (c *segCheck) records(h *record.Header) (s record.Sums, maxTs int64, err error) {
	var rec storage.Record
	maxTs = unknownTime
	for {
		ok, err := c.reader.Next(&rec)
		if !ok {
			return s, maxTs, err
		}
		s.Records++
		s.KeyBytes += int64(len(rec.Key))
		s.ValueBytes += int64(len(rec.Value))
		maxTs = max(maxTs, rec.Timestamp)
		if h.Attributes.Control() {
			if err := c.control(&rec); err != nil {
				return s, maxTs, err
			}
		}
	}
}

// checkHeader looks at what the header says of the records.
func (c *segCheck) checkHeader(b *Batch, h *record.Header, sums record.Sums, maxTs int64) {
	a := h.Attributes
	if h.Magic >= 2 && (int64(h.Count) <= int64(h.LastOffsetDelta) || a.HasDeleteHorizon()) {
		c.r.compacted = true
	}
	switch {
	case sums.Records == 0 || a.LogAppendTime() || h.Magic == 0 || maxTs == h.MaxTimestamp:
	case maxTs > h.MaxTimestamp:
		c.once(about(c.log, Damage, BatchTimestamp, "write the batch anew: a search by time misses the record",
			"a record has timestamp %d, the header says that none is above %d", maxTs, h.MaxTimestamp).at(b.Pos, h.BaseOffset))
	default:
		c.once(about(c.log, Notice, BatchTimestamp, "", "the header's largest timestamp is %d, the records' %d", h.MaxTimestamp, maxTs).at(b.Pos, h.BaseOffset))
	}
	if h.Magic < 2 {
		return
	}
	const known = record.AttrLogAppendTime | record.AttrTransactional | record.AttrControl | record.AttrDeleteHorizon | 7
	switch {
	case a&^known != 0:
		c.once(about(c.log, Notice, BatchAttributes, "", "attributes %#04x", uint16(a)).at(b.Pos, h.BaseOffset))
	case a.Transactional() && h.ProducerID < 0:
		c.once(about(c.log, Damage, BatchProducer, "", "transactional, but without a producer id").at(b.Pos, h.BaseOffset))
	case a.Control() && a.Codec() != record.None:
		c.once(about(c.log, Damage, BatchControl, "", "a compressed control batch").at(b.Pos, h.BaseOffset))
	case a.Control() && a.Transactional() && sums.Records > 1:
		c.once(about(c.log, Damage, BatchControl, "", "%d records in a transaction marker", sums.Records).at(b.Pos, h.BaseOffset))
	}
}

// once tells the first finding of a kind, and at the end how often there were others.
func (c *segCheck) once(f Finding) {
	key := f.What + What(f.Severity.String())
	if n := c.told[key]; n == 0 {
		c.told[key] = 1
		c.r.add(f)
		return
	}
	c.told[key]++
}

// many completes the details of findings that were told once.
func (c *segCheck) many() {
	for i := range c.r.findings {
		f := &c.r.findings[i]
		if n := c.told[f.What+What(f.Severity.String())]; n > 1 {
			f.Detail += fmt.Sprintf("; %d such places in the file", n)
			delete(c.told, f.What+What(f.Severity.String()))
		}
	}
}

// closing ends the checks that go along with the log. whole says that the log was read to its end.
func (c *segCheck) closing(size int64, whole bool) {
	if !whole {
		return
	}
	c.settle(-1)
	c.crossing(maxOffset)
	if c.offsets != nil {
		c.offsets.finish(c)
	}
	if c.times != nil {
		c.times.finish(c)
	}
	if c.sizes != nil {
		c.sizes.finish(c, size)
	}
	c.finishTxns()
	c.many()
	for sev, n := range c.r.more {
		if n > 0 {
			c.r.findings = append(c.r.findings, about(c.log, Severity(sev), MoreFindings, "", "%d more findings of this severity", n))
		}
	}
}
