package inspect

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// logDump is the state of the dump of one log.
type logDump struct {
	*dumper
	rec     record.Reader
	look    record.Reader // looks into a batch for times; rec may stand in it already
	decode  decoder
	next    storage.Offset // one above the last offset of the batch before; -1 at the start
	batches int64
	records int64
	bad     int64 // bytes in gaps and damaged batches
}

// log shows the batches of a log.
func (d *dumper) log(r io.ReaderAt) error {
	l := logDump{dumper: d, next: -1, decode: d.decoder()}
	base := d.cur.base
	if base < 0 {
		base = -1
	}
	from := d.logStart(r)
	err := WalkFrom(r, from, d.cur.size, base, func(b Batch) error {
		if d.p.err != nil || b.Pos >= d.o.PosTo {
			return errStop
		}
		if b.Gap != NoGap {
			l.gap(b)
			return nil
		}
		return l.batch(b)
	})
	if err != nil {
		return err
	}
	d.p.begin(kindTotal, "")
	d.p.num("batches", l.batches)
	if d.o.Records {
		d.p.num("records", l.records)
	}
	d.p.num("damagedBytes", l.bad)
	d.p.end()
	return nil
}

// logStart returns a position at which a batch starts and before which nothing is to be shown.
func (d *dumper) logStart(r io.ReaderAt) storage.Pos {
	if d.o.PosFrom <= 0 && d.o.From <= max(d.cur.base, 0) {
		return 0
	}
	l := d.locator(r, d.cur.size)
	defer l.close()
	from, err := l.seek(d.o.PosFrom, d.o.From)
	if err != nil {
		return 0 // it is read from the start, and the walk tells what is wrong
	}
	return from
}

// gap tells of bytes that are no batch. At the end of the last segment they are what a crash leaves or a broker at work has not filled yet.
func (l *logDump) gap(b Batch) {
	if b.End() <= l.o.PosFrom {
		return
	}
	l.next = -1
	harmless := b.Gap != GapBad && l.lastSegment()
	if !harmless {
		l.res.Damage++
	}
	if b.Gap != GapZero {
		l.bad += b.Size
	}
	l.p.begin(kindGap, "gap: ")
	l.p.only("file", l.cur.path)
	l.p.word("what", b.Gap.String())
	l.p.num("position", int64(b.Pos))
	l.p.num("size", b.Size)
	l.p.flag("damage", !harmless)
	l.p.text("reason", errorText(b.Err))
	l.p.end()
}

func (l *logDump) batch(b Batch) error {
	h := b.Header
	legacy := h.Magic < 2
	var resetErr error
	if legacy && b.Raw != nil && b.Err == nil {
		// Only its records tell the first offset of a wrapper of version 0 or 1.
		if resetErr = l.rec.Reset(b.Raw); resetErr == nil {
			h = *l.rec.Header()
		}
	}
	if b.Err == nil && h.BaseOffset >= l.o.To {
		if b.CRCOK && h.BaseOffset >= l.next {
			return errStop
		}
		return nil
	}
	expected := l.next
	if b.Err == nil {
		l.next = h.NextOffset()
	}
	if !l.selected(&b, &h) {
		return nil
	}
	l.batches++
	if legacy {
		l.legacyLine(b, &h)
	} else {
		l.batchLine(b, &h)
	}
	if !b.CRCOK || b.Err != nil {
		l.bad += b.Size
		err := b.Err
		if err == nil {
			err = record.CheckCRC(b.Raw)
		}
		l.damage(b.Pos, errorText(err))
	}
	l.checkOffsets(b, &h, expected)
	if !l.o.Records || b.Raw == nil || b.Err != nil {
		return nil //nolint:nilerr // The batch is told of already.
	}
	if !legacy {
		resetErr = l.rec.Reset(b.Raw)
	}
	if resetErr != nil {
		l.damage(b.Pos, errorText(resetErr))
		return nil
	}
	return l.recordLines(b)
}

// selected reports whether the batch reaches into what is to be shown. A damaged one does wherever its position does.
func (l *logDump) selected(b *Batch, h *record.Header) bool {
	if b.End() <= l.o.PosFrom {
		return false
	}
	if b.Err != nil || !b.CRCOK {
		return true
	}
	if h.LastOffset() < l.o.From {
		return false
	}
	if l.o.TimeFrom == math.MinInt64 && l.o.TimeTo == math.MaxInt64 {
		return true
	}
	if h.MaxTimestamp < l.o.TimeFrom {
		return false
	}
	if l.o.timed(h.MaxTimestamp) {
		return true
	}
	if h.Magic >= 2 && h.Attributes.LogAppendTime() {
		return false
	}
	return b.Raw == nil || l.holdsTimed(b.Raw)
}

// holdsTimed reports whether a record of the batch is of a time that is to be shown: the header tells only the latest of them, and they need not be in order.
func (l *logDump) holdsTimed(raw []byte) bool {
	if l.look.Reset(raw) != nil {
		return true // and what is wrong with it is told of
	}
	var r storage.Record
	for {
		ok, err := l.look.Next(&r)
		switch {
		case err != nil:
			return true
		case !ok:
			return false
		case l.o.timed(r.Timestamp):
			return true
		}
	}
}

// checkOffsets tells of offsets that cannot be where they are; the checksum does not cover them.
func (l *logDump) checkOffsets(b Batch, h *record.Header, expected storage.Offset) {
	if b.Err != nil {
		return
	}
	switch base := l.cur.base; {
	case h.BaseOffset < expected:
		l.damage(b.Pos, fmt.Sprintf("offset %d behind a batch that ends at %d", h.BaseOffset, expected-1))
	case base >= 0 && h.BaseOffset < base:
		l.damage(b.Pos, fmt.Sprintf("offset %d is below the base offset of the segment, %d", h.BaseOffset, base))
	case base >= 0 && h.LastOffset()-base > index.MaxRelative:
		l.damage(b.Pos, fmt.Sprintf("offset %d is too far above the base offset of the segment, %d", h.LastOffset(), base))
	}
}

// timestampName says what the timestamps of a batch are. Those of format 0 have none, whatever the bit says.
func timestampName(h *record.Header) string {
	switch {
	case h.Magic == 0:
		return "NoTimestampType"
	case h.Attributes.LogAppendTime():
		return "LogAppendTime"
	}
	return "CreateTime"
}

func (l *logDump) batchLine(b Batch, h *record.Header) {
	p, a := l.p, h.Attributes
	p.begin(kindBatch, "")
	p.num("baseOffset", int64(h.BaseOffset))
	p.num("lastOffset", int64(h.LastOffset()))
	p.num("count", int64(h.Count))
	p.num("baseSequence", int64(h.BaseSequence))
	p.num("lastSequence", int64(sequence(h, h.LastOffsetDelta)))
	p.num("producerId", h.ProducerID)
	p.num("producerEpoch", int64(h.ProducerEpoch))
	p.num("partitionLeaderEpoch", int64(h.LeaderEpoch))
	p.flag("isTransactional", a.Transactional())
	p.flag("isControl", a.Control())
	p.optional("deleteHorizonMs", h.BaseTimestamp, a.HasDeleteHorizon())
	p.num("position", int64(b.Pos))
	p.only("timestampType", timestampName(h))
	p.labeled("maxTimestamp", timestampName(h), h.MaxTimestamp)
	p.num("size", b.Size)
	p.num("magic", int64(h.Magic))
	p.word("compresscodec", a.Codec().String())
	p.num("crc", int64(h.CRC))
	p.flag("isvalid", b.CRCOK && b.Err == nil)
	p.end()
}

// legacyLine shows an entry of version 0 or 1.
func (l *logDump) legacyLine(b Batch, h *record.Header) {
	p, a := l.p, h.Attributes
	p.begin(kindBatch, "")
	if h.Count > 0 && a.Codec() != record.None {
		p.num("baseOffset", int64(h.BaseOffset))
		p.num("lastOffset", int64(h.LastOffset()))
		p.num("count", int64(h.Count))
	} else {
		p.num("offset", int64(h.LastOffset()))
	}
	p.num("position", int64(b.Pos))
	p.only("timestampType", timestampName(h))
	p.labeled("maxTimestamp", timestampName(h), h.MaxTimestamp)
	p.num("size", b.Size)
	p.num("magic", int64(h.Magic))
	p.word("compresscodec", a.Codec().String())
	p.num("crc", int64(h.CRC))
	p.flag("isvalid", b.CRCOK && b.Err == nil)
	p.end()
}

// sequence returns the sequence number of the record at that offset delta; the numbers begin again at 0 above the largest.
func sequence(h *record.Header, delta int32) int32 {
	if h.BaseSequence < 0 {
		return -1
	}
	return int32((int64(h.BaseSequence) + int64(delta)) & math.MaxInt32)
}

// locator opens what finds batches in a log of that size: its offset index, if there is a usable one.
func (d *dumper) locator(log io.ReaderAt, size int64) *locator {
	l := &locator{log: log, size: size, base: d.cur.base}
	if d.cur.base < 0 {
		return l
	}
	h, err := d.fs.OpenFile(d.cur.sibling(state.ExtIndex), os.O_RDONLY, 0)
	if err != nil {
		return l // it is slower without
	}
	l.useIndex(contextReader{d.ctx, h}, h)
	return l
}
