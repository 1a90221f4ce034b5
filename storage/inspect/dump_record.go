package inspect

import (
	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// recordLines shows the records of the batch that the Reader has taken.
func (l *logDump) recordLines(b Batch) error {
	var r storage.Record
	for {
		ok, err := l.rec.Next(&r)
		if err != nil {
			l.damage(b.Pos, errorText(err))
			return nil
		}
		if !ok || l.p.err != nil {
			return nil //nolint:nilerr // It is told of.
		}
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if r.Offset < l.o.From || r.Offset >= l.o.To || !l.o.timed(r.Timestamp) {
			continue
		}
		l.records++
		l.recordLine(b, &r)
	}
}

func (l *logDump) recordLine(b Batch, r *storage.Record) {
	p, h := l.p, l.rec.Header()
	p.begin(kindRecord, "| ")
	p.num("offset", int64(r.Offset))
	p.only("timestampType", timestampName(h))
	p.labeled("timestamp", timestampName(h), r.Timestamp)
	p.num("keySize", sizeOf(r.Key))
	p.num("valueSize", sizeOf(r.Value))
	if h.Magic >= 2 {
		p.num("sequence", int64(sequence(h, int32(r.Offset-h.BaseOffset))))
		l.headers(r.Headers)
	}
	if h.Attributes.Control() {
		reason := l.control(r)
		p.end()
		if reason != "" {
			l.damage(b.Pos, reason)
		}
		return
	}
	if !l.decoded(r) {
		p.bytes("key", "", r.Key, false)
		p.bytes("value", "payload", r.Value, true)
	}
	p.end()
}

func sizeOf(b []byte) int64 {
	if b == nil {
		return -1
	}
	return int64(len(b))
}

// headers shows a record's headers, if it has any.
func (l *logDump) headers(list []storage.Header) {
	p := l.p
	if len(list) == 0 {
		return
	}
	p.name("headers", "")
	p.b = append(p.b, '[')
	for i := range list {
		h := &list[i]
		if i > 0 {
			p.b = append(p.b, ',')
		}
		if !p.json {
			p.b = appendText(p.b, h.Key, true)
			if h.Value != nil {
				p.b = append(p.b, '=')
				p.b = appendText(p.b, h.Value, true)
			}
			continue
		}
		p.b = append(p.b, '{')
		p.b = appendMember(p.b, "key", h.Key)
		p.b = append(p.b, ',')
		p.b = appendMember(p.b, "value", h.Value)
		p.b = append(p.b, '}')
	}
	p.b = append(p.b, ']')
}

// control shows a control record and returns what is wrong with it.
func (l *logDump) control(r *storage.Record) string {
	p := l.p
	c, err := record.ParseControl(r)
	if err != nil {
		p.bytes("key", "", r.Key, false)
		p.bytes("value", "payload", r.Value, true)
		return errorText(err)
	}
	switch c.Type {
	case record.Abort, record.Commit:
		p.word("endTxnMarker", c.Type.String())
		p.num("coordinatorEpoch", int64(c.CoordinatorEpoch))
		return ""
	case record.LeaderChange, record.SnapshotHeader, record.SnapshotFooter, record.KRaftVersion, record.KRaftVoters:
	}
	p.word("control", c.Type.String())
	data, err := decodeControl(c.Type, r.Value)
	if err == nil {
		p.raw("message", "", data)
		return ""
	}
	p.bytes("value", "payload", r.Value, true)
	return ""
}

// decoded shows key and value as the topic's decoder reads them, or reports that it does not.
func (l *logDump) decoded(r *storage.Record) bool {
	if l.decode == nil {
		return false
	}
	key, value, ok := l.decode(r)
	if !ok {
		return false
	}
	p := l.p
	if key != nil {
		p.raw("decodedKey", "key", key)
	}
	if value == nil {
		value = []byte("null")
	}
	p.raw("decodedValue", "payload", value)
	return true
}
