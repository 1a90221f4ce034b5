package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// entryChunk is how many bytes of an index are read at once, a whole number of entries of every kind.
const entryChunk = 8 * 12 * 34 * 16

// entries calls fn for each entry of a file, by its position, up to zero padding. It tells of padding and of bytes that make no entry.
func (d *dumper) entries(r io.ReaderAt, size int, fn func(pos storage.Pos, b []byte) error) error {
	whole := d.cur.size / int64(size) * int64(size)
	if d.cur.size == 0 {
		d.note(-1, "no entries")
	}
	buf := make([]byte, min(entryChunk, max(whole, 0)))
	zero := make([]byte, size)
	for pos := int64(0); pos < whole; pos += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), whole-pos)]
		if n, err := r.ReadAt(b, pos); n < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		for i := 0; i < len(b); i += size {
			at := pos + int64(i)
			if e := b[i : i+size]; !bytes.Equal(e, zero) || d.cur.kind == fileTimeIndex && at == 0 && whole == int64(size) {
				if err := fn(storage.Pos(at), e); err != nil || d.p.err != nil {
					return err
				}
				continue
			}
			d.note(storage.Pos(at), fmt.Sprintf("%d bytes of padding", d.cur.size-at))
			return d.corrupt(storage.Pos(at), index.CheckPadding(r, at, d.cur.size))
		}
	}
	if rest := d.cur.size - whole; rest > 0 {
		d.damage(storage.Pos(whole), fmt.Sprintf("%d bytes behind the last whole entry", rest))
	}
	return nil
}

// logBeside opens the log of an index's segment, or tells why its entries are not compared.
func (d *dumper) logBeside() (*locator, func()) {
	none := func() {}
	if d.cur.base < 0 {
		d.note(-1, "the name does not tell the segment's base offset: offsets are relative, and not compared with the log")
		return nil, none
	}
	h, err := d.fs.OpenFile(d.cur.sibling(state.ExtLog), os.O_RDONLY, 0)
	if err != nil {
		d.note(-1, "entries are not compared with the log: "+errorText(err))
		return nil, none
	}
	i, err := h.Stat()
	if err != nil {
		_ = h.Close()
		d.note(-1, "entries are not compared with the log: "+errorText(err))
		return nil, none
	}
	l := d.locator(contextReader{d.ctx, h}, i.Size)
	return l, func() {
		l.close()
		_ = h.Close() // only read
	}
}

// offsetIndex shows an offset index and compares it with the log.
func (d *dumper) offsetIndex(r io.ReaderAt) error {
	log, done := d.logBeside()
	defer done()
	base := max(d.cur.base, 0)
	var last index.OffsetEntry
	return d.entries(r, index.OffsetEntrySize, func(pos storage.Pos, b []byte) error {
		e, err := index.Offsets{R: bytes.NewReader(b), N: 1, Base: base}.Entry(0)
		if err != nil {
			d.damage(pos, "negative offset or position")
			return nil //nolint:nilerr // It is told of.
		}
		before := last
		last = e
		if e.Offset < d.o.From || e.Offset >= d.o.To || e.Pos < d.o.PosFrom || e.Pos >= d.o.PosTo {
			return nil
		}
		d.p.begin(kindIndex, "")
		d.p.num("offset", int64(e.Offset))
		d.p.num("position", int64(e.Pos))
		d.p.end()
		if pos > 0 && (e.Offset <= before.Offset || e.Pos <= before.Pos) {
			d.damage(pos, fmt.Sprintf("offset %d at %d is not above the entry before, offset %d at %d", e.Offset, e.Pos, before.Offset, before.Pos))
			return nil
		}
		if log == nil {
			return nil
		}
		return d.compareOffset(log, pos, e)
	})
}

// maxAppend is how far behind an entry's position the batch of its offset may lie where older brokers made one entry for what was appended at once.
const maxAppend = 64 << 20

// compareOffset compares an entry with the batch that it points at.
func (d *dumper) compareOffset(log *locator, pos storage.Pos, e index.OffsetEntry) error {
	h, err := log.header(e.Pos)
	switch {
	case errors.Is(err, errNoBatch):
		d.damage(pos, fmt.Sprintf("no batch starts at %d of the log", e.Pos))
		return nil
	case err != nil:
		return err
	case h.LastOffset() == e.Offset:
		return nil
	}
	at, found := e.Pos, h
	for err == nil && found.LastOffset() < e.Offset && at-e.Pos < maxAppend {
		at += storage.Pos(found.Size())
		found, err = log.header(at)
	}
	if h.BaseOffset <= e.Offset && err == nil && found.LastOffset() >= e.Offset {
		if at == e.Pos {
			d.note(pos, fmt.Sprintf("index offset: %d, log offset: %d; usable: the offset is inside the batch", e.Offset, h.LastOffset()))
		} else {
			d.note(pos, fmt.Sprintf("index offset: %d, log offset: %d; usable: an older broker's entry for batches appended together", e.Offset, h.LastOffset()))
		}
		return nil
	}
	d.damage(pos, fmt.Sprintf("index offset: %d, log offset: %d", e.Offset, h.LastOffset()))
	return nil
}

// timeIndex shows a time index and compares it with the log.
func (d *dumper) timeIndex(r io.ReaderAt) error {
	log, done := d.logBeside()
	defer done()
	base := max(d.cur.base, 0)
	var last index.TimeEntry
	return d.entries(r, index.TimeEntrySize, func(pos storage.Pos, b []byte) error {
		e, err := index.Times{R: bytes.NewReader(b), N: 1, Base: base}.Entry(0)
		if err != nil {
			d.damage(pos, "negative offset or timestamp")
			return nil //nolint:nilerr // It is told of.
		}
		before := last
		last = e
		if e.Offset < d.o.From || e.Offset >= d.o.To || !d.o.timed(e.Timestamp) {
			return nil
		}
		d.p.begin(kindTimeIndex, "")
		d.p.num("timestamp", e.Timestamp)
		d.p.num("offset", int64(e.Offset))
		d.p.end()
		if pos > 0 && (e.Timestamp <= before.Timestamp || e.Offset < before.Offset) {
			d.damage(pos, fmt.Sprintf("timestamp %d at offset %d is not above the entry before, %d at offset %d", e.Timestamp, e.Offset, before.Timestamp, before.Offset))
			return nil
		}
		if log == nil {
			return nil
		}
		return d.compareTime(log, pos, e)
	})
}

// compareTime compares an entry with the batch that its offset is in.
func (d *dumper) compareTime(log *locator, pos storage.Pos, e index.TimeEntry) error {
	h, _, err := log.find(e.Offset)
	switch {
	case errors.Is(err, errNoBatch):
		d.damage(pos, fmt.Sprintf("no batch of the log ends at offset %d", e.Offset))
	case err != nil:
		return err
	case h.Magic == 0:
		// There are no timestamps to compare with.
	case h.BaseOffset > e.Offset:
		d.damage(pos, fmt.Sprintf("no batch of the log holds offset %d", e.Offset))
	case h.MaxTimestamp != e.Timestamp:
		d.damage(pos, fmt.Sprintf("index timestamp: %d, log timestamp: %d", e.Timestamp, h.MaxTimestamp))
	case h.LastOffset() != e.Offset && h.Magic >= 2:
		d.note(pos, fmt.Sprintf("index offset: %d, log offset: %d; usable: an older broker's entry for a record", e.Offset, h.LastOffset()))
	}
	return nil
}

// txnIndex shows the aborted transactions of a segment and compares them with the markers in the log.
func (d *dumper) txnIndex(r io.ReaderAt) error {
	log, done := d.logBeside()
	defer done()
	last := storage.Offset(-1)
	return d.entries(r, index.TxnEntrySize, func(pos storage.Pos, b []byte) error {
		list, err := index.ParseTxns(b, 0)
		if err != nil {
			var ce *storage.CorruptError
			if errors.As(err, &ce) {
				d.damage(pos, strings.TrimPrefix(ce.Reason, "entry 0: "))
				return nil
			}
			return err
		}
		e := list[0]
		before := last
		last = e.Last
		if e.Last < d.o.From || e.First >= d.o.To {
			return nil
		}
		d.p.begin(kindTxnIndex, "")
		d.p.num("version", 0)
		d.p.num("producerId", e.ProducerID)
		d.p.num("firstOffset", int64(e.First))
		d.p.num("lastOffset", int64(e.Last))
		d.p.num("lastStableOffset", int64(e.Stable))
		d.p.end()
		switch {
		case e.Last <= before:
			d.damage(pos, fmt.Sprintf("marker offset %d is not above the one before, %d", e.Last, before))
		case e.Last < d.cur.base:
			d.damage(pos, fmt.Sprintf("marker offset %d is below the base offset of the segment, %d", e.Last, d.cur.base))
		case log != nil:
			return d.compareTxn(log, pos, e)
		}
		return nil
	})
}

// compareTxn compares an entry with the marker that ended the transaction.
func (d *dumper) compareTxn(log *locator, pos storage.Pos, e index.TxnEntry) error {
	h, at, err := log.find(e.Last)
	if err != nil && !errors.Is(err, errNoBatch) {
		return err
	}
	if err != nil || h.BaseOffset > e.Last || !h.Attributes.Control() || h.ProducerID != e.ProducerID {
		d.damage(pos, fmt.Sprintf("no marker of producer %d at offset %d of the log", e.ProducerID, e.Last))
		return nil //nolint:nilerr // It is told of.
	}
	b := make([]byte, min(h.Size(), 4096)) // a marker has 78 bytes
	if n, err := log.log.ReadAt(b, int64(at)); n < len(b) {
		return err
	}
	if t, ok := markerType(b); ok && t != record.Abort {
		d.damage(pos, fmt.Sprintf("the marker at offset %d of the log is %v", e.Last, t))
	}
	return nil
}

// markerType returns the type of the control record in a batch.
func markerType(b []byte) (record.ControlType, bool) {
	var rec record.Reader
	if rec.Reset(b) != nil {
		return 0, false
	}
	var r storage.Record
	if ok, err := rec.Next(&r); !ok || err != nil {
		return 0, false
	}
	c, err := record.ParseControl(&r)
	return c.Type, err == nil
}
