package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/state"
)

// maxRawLines is how many lines of a file that makes no sense are shown.
const maxRawLines = 10000

// small shows a file that is read as a whole.
func (d *dumper) small(r io.ReaderAt) error {
	b, err := readSmall(r, d.cur.size)
	if err != nil {
		return d.corrupt(-1, err)
	}
	switch d.cur.kind {
	case fileProducers:
		return d.producers(b)
	case fileSizeIndex:
		return d.sizes(b)
	case fileOffsets:
		err = d.checkpoint(b)
	case fileEpochs:
		err = d.epochs(b)
	case fileMetadata:
		err = d.metadata(b)
	case fileProperties:
		err = d.properties(b)
	case fileMarker:
		d.marker(b)
	case fileCatalog:
		err = d.catalog(b)
	case fileJSON:
		err = d.object(b)
	case fileLog, fileIndex, fileTimeIndex, fileTxnIndex, fileUnknown: // are not small
	}
	if err == nil {
		return nil
	}
	d.lines(b)
	return d.corrupt(-1, err)
}

// lines shows a text file as it is.
func (d *dumper) lines(b []byte) {
	n := 0
	for line := range strings.Lines(string(b)) {
		if n++; n > maxRawLines {
			d.note(-1, "more lines are not shown")
			return
		}
		d.p.begin(kindLine, "")
		d.p.num("line", int64(n))
		d.p.text("text", strings.TrimRight(line, "\r\n"))
		d.p.end()
	}
}

func (d *dumper) producers(b []byte) error {
	list, err := state.DecodeSnapshot(b)
	for i := range list {
		e := &list[i]
		if e.LastOffset >= 0 && (e.LastOffset < d.o.From || e.LastOffset >= d.o.To) {
			continue
		}
		p := d.p
		p.begin(kindProducer, "")
		p.num("producerId", e.ProducerID)
		p.num("producerEpoch", int64(e.Epoch))
		p.num("coordinatorEpoch", int64(e.CoordinatorEpoch))
		p.optional("currentTxnFirstOffset", int64(e.TxnFirst), e.Open())
		p.num("lastTimestamp", e.Timestamp)
		if e.LastOffset >= 0 {
			first := int64(e.LastSequence) - int64(e.OffsetDelta)
			if first < 0 && e.LastSequence >= 0 {
				first += 1 << 31 // the numbers began again at 0 within the batch
			}
			p.num("firstSequence", first)
			p.num("lastSequence", int64(e.LastSequence))
			p.num("lastOffset", int64(e.LastOffset))
			p.num("offsetDelta", int64(e.OffsetDelta))
		}
		p.end()
	}
	if err == nil && len(list) == 0 {
		d.note(-1, "no producers")
	}
	return d.corrupt(-1, err)
}

func (d *dumper) sizes(b []byte) error {
	base := d.cur.base
	if base < 0 && len(b) >= index.SizeHeaderSize {
		// Its own word is all there is.
		for _, c := range b[16:24] {
			base = base<<8 | storage.Offset(c)
		}
	}
	h, entries, err := index.DecodeSizes(b, base)
	if err != nil {
		return d.corrupt(-1, err)
	}
	p := d.p
	p.begin(kindSizes, "")
	p.num("version", 1)
	p.num("baseOffset", int64(h.Base))
	p.num("nextOffset", int64(h.NextOffset))
	p.num("logSize", h.LogSize)
	p.num("firstPosition", int64(h.FirstPos))
	p.num("lastPosition", int64(h.LastPos))
	p.num("firstCrc", int64(h.FirstCRC))
	p.num("lastCrc", int64(h.LastCRC))
	p.num("records", h.Total.Records)
	p.num("keyBytes", h.Total.KeyBytes)
	p.num("valueBytes", h.Total.ValueBytes)
	p.num("maxTimestamp", h.MaxTimestamp)
	p.num("entries", int64(h.N))
	p.end()
	for i := range entries {
		e := &entries[i]
		if e.Offset < d.o.From || e.Offset >= d.o.To || e.Pos < d.o.PosFrom || e.Pos >= d.o.PosTo {
			continue
		}
		p.begin(kindSizeIndex, "")
		p.num("offset", int64(e.Offset))
		p.num("position", int64(e.Pos))
		p.num("records", e.Before.Records)
		p.num("keyBytes", e.Before.KeyBytes)
		p.num("valueBytes", e.Before.ValueBytes)
		p.end()
	}
	return nil
}

func (d *dumper) checkpoint(b []byte) error {
	c, err := state.ParseCheckpoint(b)
	if err != nil {
		return err
	}
	for tp, o := range c.All() {
		d.p.begin(kindCheckpoint, "")
		d.p.word("topic", tp.Topic)
		d.p.num("partition", int64(tp.Partition))
		d.p.num("offset", int64(o))
		d.p.end()
	}
	for _, line := range c.Unusable() {
		d.damage(-1, "partition or offset is not a number: "+line)
	}
	return nil
}

func (d *dumper) epochs(b []byte) error {
	list, err := state.ParseEpochs(b)
	for _, e := range list {
		d.p.begin(kindEpoch, "")
		d.p.num("epoch", int64(e.Epoch))
		d.p.num("startOffset", int64(e.Start))
		d.p.end()
	}
	return err
}

func (d *dumper) metadata(b []byte) error {
	id, err := state.ParsePartitionMetadata(b)
	if err == nil {
		d.property("topic_id", id)
	}
	return err
}

func (d *dumper) property(name, value string) {
	d.p.begin(kindProperty, "")
	if d.p.json {
		d.p.word("name", name)
		d.p.word("value", value)
	} else {
		d.p.text(plainName(name), value)
	}
	d.p.end()
}

func (d *dumper) properties(b []byte) error {
	m, err := state.ParseProperties(b)
	if err != nil {
		return err
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d.property(name, m[name])
	}
	_, err = state.ParseMetaProperties(b)
	if err != nil {
		return d.corrupt(-1, err)
	}
	return nil
}

func (d *dumper) marker(b []byte) {
	epoch := state.ParseCleanMarker(b)
	d.p.begin(kindProperty, "")
	if d.p.json {
		d.p.word("name", "brokerEpoch")
		d.p.num("value", epoch)
	} else {
		d.p.num("brokerEpoch", epoch)
	}
	d.p.end()
	if epoch == state.UnknownBrokerEpoch {
		d.note(-1, "the shutdown was clean; of which broker is not known")
	}
}

// catalog shows the list of our own topics.
func (d *dumper) catalog(b []byte) error {
	var c struct {
		Version  int                        `json:"version"`
		Topics   map[string]json.RawMessage `json:"topics"`
		Deleting []json.RawMessage          `json:"deleting"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	d.property("version", fmt.Sprint(c.Version))
	var names []string
	for name := range c.Topics {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d.p.begin(kindTopic, "")
		d.p.word("topic", name)
		d.p.raw("settings", "", compactJSON(c.Topics[name]))
		d.p.end()
	}
	for _, x := range c.Deleting {
		d.p.begin(kindProperty, "")
		d.p.only("name", "deleting")
		d.p.raw("value", "deleting", compactJSON(x))
		d.p.end()
	}
	return nil
}

// object shows a file that holds one JSON object.
func (d *dumper) object(b []byte) error {
	if !json.Valid(b) || !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return fmt.Errorf("%w: not a JSON object", storage.ErrCorrupt)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	_, err := dec.Token() // the brace
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err != nil {
			break
		}
		var v json.RawMessage
		if err = dec.Decode(&v); err != nil {
			break
		}
		s, _ := name.(string)
		d.p.begin(kindProperty, "")
		if d.p.json {
			d.p.word("name", s)
			d.p.raw("value", "", compactJSON(v))
		} else {
			d.p.raw("", plainName(s), compactJSON(v))
		}
		d.p.end()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return nil
}

// plainName is a name that does no harm to a terminal.
func plainName(s string) string { return string(appendText(nil, s, true)) }

// compactJSON is v, which is valid, on one line.
func compactJSON(v json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return []byte("null")
	}
	return b.Bytes()
}
