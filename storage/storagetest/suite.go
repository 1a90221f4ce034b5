package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"testing"

	"github.com/logmount/logmount/storage"
)

// Options says what an engine under test can do besides the contract's core. A nil hook leaves out the tests that need it.
type Options struct {
	// Batches: AppendBatches is supported.
	Batches bool
	// Files: the engine has raw files, and the .log files of a partition hold its batches.
	Files bool
	// Reopen closes the engine and opens what it left behind.
	Reopen func(t *testing.T, e storage.Engine) storage.Engine
	// Crash opens what a power failure at this moment would leave behind, by chance taken from random. The old engine is closed afterwards, and its
	// errors do not count.
	Crash func(t *testing.T, e storage.Engine, random *rand.Rand) storage.Engine
}

// Run tests the contract of storage.Engine on engines that open makes, each empty and writable. Run closes them.
func Run(t *testing.T, open func(t *testing.T) storage.Engine, o Options) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*test)
	}{
		{"Topics", (*test).topics},
		{"TopicErrors", (*test).topicErrors},
		{"DeleteTopic", (*test).deleteTopic},
		{"Append", (*test).appendAndRead},
		{"AppendIsAtomic", (*test).appendIsAtomic},
		{"BatchBytes", (*test).batchBytes},
		{"AppendBatches", (*test).appendBatches},
		{"CheckAppend", (*test).checkAppend},
		{"Snapshot", (*test).snapshotIsFixed},
		{"Next", (*test).next},
		{"FindTime", (*test).findTime},
		{"FindLast", (*test).findLast},
		{"Extent", (*test).extent},
		{"Locate", (*test).locate},
		{"SetStart", (*test).setStart},
		{"Watch", (*test).watch},
		{"Cancel", (*test).cancel},
		{"Concurrent", (*test).concurrent},
		{"Files", (*test).files},
		{"Close", (*test).closed},
		{"Reopen", (*test).reopen},
		{"Model", (*test).model},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&test{T: t, open: open, o: o}) })
	}
}

// test is one subtest and what it tests.
type test struct {
	*testing.T
	open func(t *testing.T) storage.Engine
	o    Options
}

// start opens an engine that is closed at the end of the test.
func (t *test) start() storage.Engine {
	t.Helper()
	e := t.open(t.T)
	closeLater(t.T, e)
	return e
}

func closeLater(t *testing.T, e storage.Engine) {
	t.Helper()
	t.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, storage.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
}

// tester is what a test and a rapid check have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func create(ctx context.Context, t tester, e storage.Engine, topic string, config map[string]string) storage.Partition {
	t.Helper()
	if err := e.CreateTopic(ctx, storage.TopicSpec{Name: topic, Partitions: 1, Config: config}); err != nil {
		t.Fatalf("create %s: %v", topic, err)
	}
	return partition(ctx, t, e, topic, 0)
}

func partition(ctx context.Context, t tester, e storage.Engine, topic string, n int32) storage.Partition {
	t.Helper()
	p, err := e.Partition(ctx, storage.TopicPartition{Topic: topic, Partition: n})
	if err != nil {
		t.Fatalf("partition %s-%d: %v", topic, n, err)
	}
	return p
}

func add(ctx context.Context, t tester, p storage.Partition, batchBytes int, records ...storage.Record) storage.Appended {
	t.Helper()
	a, err := p.Append(ctx, records, batchBytes)
	if err != nil {
		t.Fatalf("append of %d records: %v", len(records), err)
	}
	if got, want := int(a.Next-a.First), len(records); got != want {
		t.Fatalf("append: got %d offsets, want %d", got, want)
	}
	return a
}

func snapshot(ctx context.Context, t tester, p storage.Partition) storage.Snapshot {
	t.Helper()
	s, err := p.Snapshot(ctx)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return s
}

// read returns copies of all records from o to the end of the snapshot.
func read(ctx context.Context, t tester, s storage.Snapshot, o storage.Offset) []storage.Record {
	t.Helper()
	c := s.Records(o)
	defer c.Close()
	return drain(ctx, t, c)
}

func drain(ctx context.Context, t tester, c storage.Cursor) []storage.Record {
	t.Helper()
	var out []storage.Record
	for {
		r, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("next at offset %d: %v", c.Offset(), err)
		}
		if got, want := c.Offset(), r.Offset+1; got != want {
			t.Fatalf("cursor: got offset %d, want %d", got, want)
		}
		out = append(out, cloneRecord(r, r.Offset))
	}
}

// readBatches returns copies of all batches from o to the end of the snapshot.
func readBatches(ctx context.Context, t tester, s storage.Snapshot, o storage.Offset) [][]byte {
	t.Helper()
	c := s.Records(o)
	defer c.Close()
	var out [][]byte
	for {
		b, err := c.NextBatch(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("next batch at offset %d: %v", c.Offset(), err)
		}
		out = append(out, bytes.Clone(b))
	}
}

func show(r *storage.Record) string {
	s := fmt.Sprintf("{%d at %d %s=%s", r.Offset, r.Timestamp, showBytes(r.Key), showBytes(r.Value))
	for _, h := range r.Headers {
		s += " " + showBytes(h.Key) + ":" + showBytes(h.Value)
	}
	return s + "}"
}

func showBytes(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 40:
		return fmt.Sprintf("%q…(%d)", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func sameRecord(a, b *storage.Record) bool {
	ok := a.Offset == b.Offset && a.Timestamp == b.Timestamp && same(a.Key, b.Key) && same(a.Value, b.Value) && len(a.Headers) == len(b.Headers)
	for i := range a.Headers {
		ok = ok && bytes.Equal(a.Headers[i].Key, b.Headers[i].Key) && same(a.Headers[i].Value, b.Headers[i].Value)
	}
	return ok
}

// compare fails unless got is want, records and offsets.
func compare(t tester, what string, got, want []storage.Record) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !sameRecord(&got[i], &want[i]) {
			t.Fatalf("%s: record %d of %d: got %s, want %s", what, i, len(want), show(&got[i]), show(&want[i]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: got %d records, want %d", what, len(got), len(want))
	}
}

// numbered gives the records the offsets from first on.
func numbered(first storage.Offset, records []storage.Record) []storage.Record {
	out := make([]storage.Record, 0, len(records))
	for i := range records {
		out = append(out, cloneRecord(&records[i], first+storage.Offset(i)))
	}
	return out
}

// value returns a record with a value, a key of three bytes and a timestamp.
func value(ts int64, format string, args ...any) storage.Record {
	return storage.Record{Timestamp: ts, Key: []byte("key"), Value: fmt.Appendf(nil, format, args...)}
}

func wantErr(t tester, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
