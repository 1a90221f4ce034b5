package partition

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

// batchSize is what a mount cuts records into.
const batchSize = 16384

// openOnDisk opens a new log on the real disk, with Kafka's settings.
func openOnDisk(tb testing.TB) *Log {
	tb.Helper()
	d := &disk{fs: vfs.OS(), now: 1_700_000_000_000}
	d.files = vfs.NewFiles(d.fs, 8)
	d.env = &Env{FS: d.fs, Files: d.files, Now: func() time.Time { return time.UnixMilli(d.now) }, Log: slog.New(slog.DiscardHandler)}
	d.o = Options{TP: storage.TopicPartition{Topic: "t"}, Dir: tb.TempDir(), Writable: true, Config: storage.DefaultTopicConfig()}
	l := d.open(tb)
	tb.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			tb.Error(err)
		}
		if err := d.files.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// benchLines makes n records of size bytes without a key.
func benchLines(n, size int) []storage.Record {
	recs := make([]storage.Record, n)
	for i := range recs {
		v := make([]byte, size)
		for j := range v {
			v[j] = 'a' + byte((i+j)%26)
		}
		recs[i] = storage.Record{Timestamp: 1_700_000_000_000, Value: v}
	}
	return recs
}

func fill(tb testing.TB, l *Log, n, size int) {
	tb.Helper()
	recs := benchLines(min(n, 1000), size)
	for n > 0 {
		m := min(n, len(recs))
		if _, err := l.Append(context.Background(), recs[:m], batchSize); err != nil {
			tb.Fatal(err)
		}
		n -= m
	}
}

// readAll reads a snapshot from its start to its end.
func readAll(tb testing.TB, s storage.Snapshot) (n int, size int64) {
	tb.Helper()
	c := s.Records(s.Start())
	defer c.Close()
	for {
		r, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return n, size
		}
		if err != nil {
			tb.Fatal(err)
		}
		n++
		size += int64(len(r.Value))
	}
}

func BenchmarkReadMillion(b *testing.B) {
	const n, size = 1_000_000, 100
	l := openOnDisk(b)
	fill(b, l, n, size)
	s := snap(b, l)
	b.SetBytes(n * size)
	b.ReportAllocs()
	for b.Loop() {
		if got, _ := readAll(b, s); got != n {
			b.Fatalf("%d records, want %d", got, n)
		}
	}
}

func benchmarkAppend(b *testing.B, n, size int) {
	b.Helper()
	l := openOnDisk(b)
	recs := benchLines(n, size)
	b.SetBytes(int64(n * size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(context.Background(), recs, batchSize); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend1000(b *testing.B) { benchmarkAppend(b, 1000, 1000) }

func BenchmarkAppendOne(b *testing.B) { benchmarkAppend(b, 1, 100) }

// BenchmarkRecordAt reads one record somewhere in the middle.
func BenchmarkRecordAt(b *testing.B) {
	const n = 100_000
	l := openOnDisk(b)
	fill(b, l, n, 1000)
	s := snap(b, l)
	b.ReportAllocs()
	o := storage.Offset(0)
	for b.Loop() {
		o = (o + 7919) % n
		c := s.Records(o)
		if r, err := c.Next(context.Background()); err != nil || r.Offset != o {
			b.Fatalf("record %d: %v, %v", o, r, err)
		}
		c.Close()
	}
}

// TestReadingAllocatesTheSameForAnyNumberOfRecords and not for each: a log of any size is read with the same memory.
func TestReadingAllocatesTheSameForAnyNumberOfRecords(t *testing.T) {
	allocs := func(n int) float64 {
		l := openOnDisk(t)
		fill(t, l, n, 100)
		s := snap(t, l)
		return testing.AllocsPerRun(3, func() {
			if got, _ := readAll(t, s); got != n {
				t.Fatalf("%d records, want %d", got, n)
			}
		})
	}
	few, many := allocs(1000), allocs(50_000)
	if many > few+8 {
		t.Errorf("reading 50000 records makes %v allocations, 1000 records %v", many, few)
	}
}

// TestAppendingAllocatesTheSameForAnyNumberOfRecords: what a batch is encoded into is used again.
func TestAppendingAllocatesTheSameForAnyNumberOfRecords(t *testing.T) {
	l := openOnDisk(t)
	allocs := func(n int) float64 {
		recs := benchLines(n, 100)
		return testing.AllocsPerRun(20, func() {
			if _, err := l.Append(context.Background(), recs, batchSize); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocs(1), allocs(2000)
	if many > few+8 {
		t.Errorf("appending 2000 records makes %v allocations, 1 record %v", many, few)
	}
}
