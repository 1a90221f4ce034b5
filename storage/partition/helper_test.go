package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// disk is a log's directory in memory and what is needed to open it.
type disk struct {
	fs    vfs.FS
	files *vfs.Files
	env   *Env
	o     Options
	now   int64
	said  []string
}

func newDisk(tb testing.TB, fsys vfs.FS) *disk {
	tb.Helper()
	d := &disk{fs: fsys, now: 1_700_000_000_000}
	if err := vfs.MkdirAll(fsys, "/data/t-0", 0o755); err != nil {
		tb.Fatal(err)
	}
	d.o = Options{TP: storage.TopicPartition{Topic: "t"}, Dir: "/data/t-0", Writable: true, Config: storage.DefaultTopicConfig()}
	d.o.Config.SegmentBytes = 4000
	d.o.Config.IndexIntervalBytes = 200
	d.attach()
	return d
}

func (d *disk) attach() {
	d.files = vfs.NewFiles(d.fs, 8)
	d.env = &Env{
		FS: d.fs, Files: d.files, Now: func() time.Time { return time.UnixMilli(d.now) }, Log: slog.New(slog.DiscardHandler),
		Report: func(r storage.Report) { d.said = append(d.said, r.Reason) },
	}
}

func (d *disk) open(tb testing.TB) *Log {
	tb.Helper()
	l, err := Open(context.Background(), d.env, d.o)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// reopen closes the log in order and opens it again.
func (d *disk) reopen(tb testing.TB, l *Log) *Log {
	tb.Helper()
	if err := l.Close(context.Background()); err != nil {
		tb.Fatal(err)
	}
	d.o.RecoveryPoint = l.RecoveryPoint()
	d.o.LogStart, _ = l.LogStart()
	d.o.Clean = true
	if err := d.files.Close(); err != nil {
		tb.Fatal(err)
	}
	d.attach()
	return d.open(tb)
}

// crash throws away what was not synced, by chance, and opens what is left.
func (d *disk) crash(tb testing.TB, l *Log, r *rand.Rand, unsynced float64) *Log {
	tb.Helper()
	d.o.RecoveryPoint = l.RecoveryPoint()
	d.o.LogStart, _ = l.LogStart()
	d.o.Clean = false
	d.fs = d.fs.(*memfs.FS).Crash(r, memfs.CrashOptions{Unsynced: unsynced})
	d.attach()
	return d.open(tb)
}

func snap(tb testing.TB, l *Log) storage.Snapshot {
	tb.Helper()
	s, err := l.Snapshot(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func mustAppend(tb testing.TB, l *Log, recs ...storage.Record) storage.Appended {
	tb.Helper()
	a, err := l.Append(context.Background(), recs, 500)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// readFrom returns all records from o on, cloned.
func readFrom(tb testing.TB, s storage.Snapshot, o storage.Offset) []storage.Record {
	tb.Helper()
	recs, errs := readThrough(tb, s, o)
	if len(errs) > 0 {
		tb.Fatalf("read from %d: %v", o, errs[0])
	}
	return recs
}

// readThrough returns the records from o on and the errors between them.
func readThrough(tb testing.TB, s storage.Snapshot, o storage.Offset) (recs []storage.Record, errs []error) {
	tb.Helper()
	c := s.Records(o)
	defer c.Close()
	for {
		r, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return recs, errs
		}
		if err != nil {
			if errs = append(errs, err); len(errs) > 1000 {
				tb.Fatalf("no end of errors: %v", err)
			}
			continue
		}
		recs = append(recs, clone(r))
	}
}

func clone(r *storage.Record) storage.Record {
	c := *r
	c.Key, c.Value = cloneBytes(r.Key), cloneBytes(r.Value)
	c.Headers = nil
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, storage.Header{Key: cloneBytes(h.Key), Value: cloneBytes(h.Value)})
	}
	return c
}

func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// randomRecords makes n records of the kinds that a log can hold.
func randomRecords(r *rand.Rand, n int) []storage.Record {
	field := func(most int) []byte {
		switch r.Intn(8) {
		case 0:
			return nil
		case 1:
			return []byte{}
		}
		b := make([]byte, r.Intn(most))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	recs := make([]storage.Record, n)
	for i := range recs {
		recs[i] = storage.Record{Timestamp: 1_700_000_000_000 + r.Int63n(100_000), Key: field(20), Value: field(300)}
		for range r.Intn(3) * r.Intn(2) {
			recs[i].Headers = append(recs[i].Headers, storage.Header{Key: []byte(fmt.Sprint("h", r.Intn(3))), Value: field(10)})
		}
	}
	return recs
}

func sameRecords(got, want []storage.Record) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if g, w := fmt.Sprintf("%v", got[i]), fmt.Sprintf("%v", want[i]); g != w || (got[i].Key == nil) != (want[i].Key == nil) || (got[i].Value == nil) != (want[i].Value == nil) {
			return fmt.Errorf("record %d: %.200s, want %.200s", i, g, w)
		}
	}
	return nil
}
