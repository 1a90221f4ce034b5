package format

import (
	"bytes"
	"testing"

	"github.com/logmount/logmount/storage"
)

var benchRecord = storage.Record{Offset: 123456, Timestamp: testNow, Key: []byte("customer-1234"), Value: bytes.Repeat([]byte("a line of text, "), 6),
	Headers: []storage.Header{{Key: []byte("trace"), Value: []byte("0af7651916cd43dd8448eb211c80319c")}}}

// TestNoAllocations checks what the benchmarks measure: nothing is allocated per record once buffers have grown.
func TestNoAllocations(t *testing.T) {
	for _, f := range []Format{Lines, NUL, KV, JSON} {
		buf := make([]byte, 0, 4096)
		if got := testing.AllocsPerRun(100, func() { buf = f.Append(buf[:0], &benchRecord) }); got != 0 {
			t.Errorf("%v: Append allocates %v times", f, got)
		}
		if got := testing.AllocsPerRun(100, func() { f.Measure().Of(&benchRecord) }); got != 0 {
			t.Errorf("%v: the size allocates %v times", f, got)
		}
		if f == JSON {
			continue
		}
		s, p, recs := NewSplitter(f, testMax), benchRequest(f), []storage.Record(nil)
		if got := testing.AllocsPerRun(100, func() { recs = mustSplit(t, s, p, recs) }); got != 0 {
			t.Errorf("%v: Split allocates %v times", f, got)
		}
	}
}

// benchRequest returns a request that begins and ends inside a record.
func benchRequest(f Format) []byte {
	var p []byte
	for len(p) < 512<<10 {
		p = f.Append(p, &benchRecord)
	}
	n := len(f.Append(nil, &benchRecord)) / 2
	return append(bytes.Clone(p[n:]), p[:n]...)
}

func mustSplit(tb testing.TB, s *Splitter, p []byte, recs []storage.Record) []storage.Record {
	tb.Helper()
	if !s.Pending() && s.format == JSON {
		line := AppendJSON(nil, &benchRecord)
		if _, err := s.Split(line[:len(line)/2], testNow, nil); err != nil {
			tb.Fatal(err)
		}
		s.Commit()
	}
	recs, err := s.Split(p, testNow, recs[:0])
	if err != nil {
		tb.Fatal(err)
	}
	s.Commit()
	return recs
}

func BenchmarkAppend(b *testing.B) {
	for _, f := range []Format{Lines, KV, JSON} {
		b.Run(f.String(), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			b.SetBytes(f.Measure().Of(&benchRecord))
			for b.Loop() {
				buf = f.Append(buf[:0], &benchRecord)
			}
		})
	}
}

func BenchmarkSizeJSON(b *testing.B) {
	b.SetBytes(SizeJSON(&benchRecord))
	b.ReportAllocs()
	for b.Loop() {
		SizeJSON(&benchRecord)
	}
}

func BenchmarkSplit(b *testing.B) {
	for _, f := range []Format{Lines, KV, JSON} {
		b.Run(f.String(), func(b *testing.B) {
			s, p, recs := NewSplitter(f, testMax), benchRequest(f), []storage.Record(nil)
			b.ReportAllocs()
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				recs = mustSplit(b, s, p, recs)
			}
			b.ReportMetric(float64(len(recs)), "records/op")
		})
	}
}
