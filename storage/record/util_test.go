package record

import (
	"bytes"
	"testing"

	"github.com/logmount/logmount/storage"
)

func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

func cloneRecord(r *storage.Record) storage.Record {
	c := storage.Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: cloneBytes(r.Key), Value: cloneBytes(r.Value)}
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, storage.Header{Key: cloneBytes(h.Key), Value: cloneBytes(h.Value)})
	}
	return c
}

// readAllRecords returns copies of what is left in r.
func readAllRecords(tb testing.TB, r *Reader) []storage.Record {
	tb.Helper()
	var recs []storage.Record
	for {
		var rec storage.Record
		ok, err := r.Next(&rec)
		if err != nil {
			tb.Fatal(err)
		}
		if !ok {
			return recs
		}
		recs = append(recs, cloneRecord(&rec))
	}
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func sameRecord(a, b *storage.Record) bool {
	if a.Offset != b.Offset || a.Timestamp != b.Timestamp || !sameBytes(a.Key, b.Key) || !sameBytes(a.Value, b.Value) || len(a.Headers) != len(b.Headers) {
		return false
	}
	for i := range a.Headers {
		if !bytes.Equal(a.Headers[i].Key, b.Headers[i].Key) || !sameBytes(a.Headers[i].Value, b.Headers[i].Value) {
			return false
		}
	}
	return true
}

func sameRecords(tb testing.TB, got, want []storage.Record) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("got %d records, want %d", len(got), len(want))
	}
	for i := range got {
		if !sameRecord(&got[i], &want[i]) {
			tb.Fatalf("record %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func sumsOf(recs []storage.Record) Sums {
	var s Sums
	for i := range recs {
		s.Records++
		s.KeyBytes += int64(len(recs[i].Key))
		s.ValueBytes += int64(len(recs[i].Value))
	}
	return s
}
