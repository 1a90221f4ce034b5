package kafka

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/fixture"
)

// truth is one record as an independent reader got it from the broker.
type truth struct {
	Partition int32          `json:"partition"`
	Offset    storage.Offset `json:"offset"`
	Timestamp int64          `json:"timestamp"`
	Key       *string        `json:"key_base64"`
	Value     *string        `json:"value_base64"`
	Headers   [][]*string    `json:"headers"`
}

func decoded(tb testing.TB, s *string) []byte {
	tb.Helper()
	if s == nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(*s)
	if err != nil {
		tb.Fatal(err)
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

func (x *truth) record(tb testing.TB) storage.Record {
	tb.Helper()
	r := storage.Record{Offset: x.Offset, Timestamp: x.Timestamp, Key: decoded(tb, x.Key), Value: decoded(tb, x.Value)}
	for _, h := range x.Headers {
		r.Headers = append(r.Headers, storage.Header{Key: []byte(*h[0]), Value: decoded(tb, h[1])})
	}
	return r
}

// lines decodes a file of JSON lines.
func lines[T any](tb testing.TB, path string) []T {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var out []T
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var x T
		if err := json.Unmarshal(sc.Bytes(), &x); err != nil {
			tb.Fatal(err)
		}
		out = append(out, x)
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	return out
}

// wanted returns the visible records of each partition; isolation is committed or uncommitted.
func wanted(tb testing.TB, dir, isolation string) map[storage.TopicPartition][]storage.Record {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*."+isolation+".jsonl"))
	if err != nil || len(names) == 0 {
		tb.Fatalf("no truth in %s: %v", dir, err)
	}
	out := map[storage.TopicPartition][]storage.Record{}
	for _, n := range names {
		topic := strings.TrimSuffix(filepath.Base(n), "."+isolation+".jsonl")
		for _, x := range lines[truth](tb, n) {
			tp := storage.TopicPartition{Topic: topic, Partition: x.Partition}
			out[tp] = append(out[tp], x.record(tb))
		}
	}
	return out
}

func openEngine(tb testing.TB, dir string, committed bool) *local.Engine {
	tb.Helper()
	e, err := local.Open(context.Background(), local.Options{
		FS: vfs.OS(), Dir: dir, ReadOnly: true, Committed: committed, CacheDir: tb.TempDir(), Now: time.Now, Rand: rand.Reader,
		Report: func(r storage.Report) { tb.Logf("report: %s: %s", r.Path, r.Reason) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func snapshot(tb testing.TB, e *local.Engine, tp storage.TopicPartition) storage.Snapshot {
	tb.Helper()
	p, err := e.Partition(context.Background(), tp)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := p.Snapshot(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func same(a, b *storage.Record) bool {
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

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// state is everything about a directory that a read-only engine must leave alone.
func state(tb testing.TB, dir string) string {
	tb.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, i os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, path, i.Size(), i.ModTime().UnixNano(), i.Mode())
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// archives are directories of one broker each, with the truth about it.
var archives = []struct{ name, dir, truth, truthDir string }{
	{"clean-4.4.0", "clean", "truth-4.4.0", "truth"},
	{"live-4.4.0", "live", "truth-4.4.0", "truth"},
	{"killed-4.4.0", "killed", "truth-killed-4.4.0", "truth-killed"},
}

func TestRecordsAreThoseOfTheBroker(t *testing.T) {
	for _, a := range archives {
		for _, isolation := range []string{"uncommitted", "committed"} {
			t.Run(a.name+"/"+isolation, func(t *testing.T) {
				dir := filepath.Join(fixture.Unpack(t, a.name), a.dir)
				want := wanted(t, filepath.Join(fixture.Unpack(t, a.truth), a.truthDir), isolation)
				before := state(t, dir)
				e := openEngine(t, dir, isolation == "committed")
				for tp, w := range want {
					compare(t, tp, snapshot(t, e, tp), w)
				}
				if after := state(t, dir); after != before {
					t.Errorf("the directory was changed:\n%s\nwas\n%s", after, before)
				}
			})
		}
	}
}

// compare reads a log from its start, and its last records, and compares them with what there should be.
func compare(t *testing.T, tp storage.TopicPartition, s storage.Snapshot, want []storage.Record) {
	t.Helper()
	c := s.Records(s.Start())
	defer c.Close()
	for i := range want {
		r, err := c.Next(context.Background())
		if err != nil || !same(r, &want[i]) {
			t.Fatalf("%s record %d: got %+v, %v, want %+v", tp, i, r, err, want[i])
		}
	}
	if r, err := c.Next(context.Background()); !errors.Is(err, io.EOF) {
		t.Errorf("%s: one record too many: %+v, %v", tp, r, err)
	}
	for i := 0; i < len(want); i += 1 + len(want)/9 {
		if o, err := s.FindLast(context.Background(), int64(len(want)-i)); err != nil || o != want[i].Offset {
			t.Errorf("%s last %d: %d, %v, want %d", tp, len(want)-i, o, err, want[i].Offset)
		}
	}
}

// TestAbortedRecordsAreHidden checks what is not among the records: names and sizes of a view count committed records only.
func TestAbortedRecordsAreHidden(t *testing.T) {
	ctx := context.Background()
	tp := storage.TopicPartition{Topic: "transactions"}
	truthDir := filepath.Join(fixture.Unpack(t, "truth-4.4.0"), "truth")
	all, committed := wanted(t, truthDir, "uncommitted")[tp], wanted(t, truthDir, "committed")[tp]
	s := snapshot(t, openEngine(t, filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean"), true), tp)
	if got, want := s.End(), storage.Offset(60); got != want {
		t.Fatalf("last stable offset: got %d, want %d", got, want)
	}
	measure := storage.Measure{Name: "lines", PerRecord: 1, PerValueByte: 1}
	size, next := int64(0), 0
	for i := range all {
		o := all[i].Offset
		if o > s.End() {
			if _, err := s.Next(ctx, o); !errors.Is(err, storage.ErrOutOfRange) {
				t.Errorf("offset %d lies behind the last stable offset: got %v", o, err)
			}
			continue
		}
		for next < len(committed) && committed[next].Offset < o {
			size += measure.Of(&committed[next])
			next++
		}
		want := s.End()
		if next < len(committed) {
			want = committed[next].Offset
		}
		if got, err := s.Next(ctx, o); err != nil || got != want {
			t.Errorf("next of %d: got %d, %v, want %d", o, got, err, want)
		}
		if got, err := s.Extent(ctx, &measure, s.Start(), o); err != nil || got != size {
			t.Errorf("bytes below %d: got %d, %v, want %d", o, got, err, size)
		}
		if got, skip, err := s.Locate(ctx, &measure, s.Start(), size); err != nil || got != want || skip != 0 {
			t.Errorf("byte %d: got offset %d and %d more, %v, want %d", size, got, skip, err, want)
		}
	}
}

func TestBoundsAndTimesAreThoseOfTheBroker(t *testing.T) {
	type bounds struct {
		Topic      string
		Partition  int32
		Start, End storage.Offset
		Stable     storage.Offset `json:"last_stable"`
	}
	type lookup struct {
		Topic     string
		Partition int32
		At        int64 `json:"at_or_after"`
	}
	for _, a := range archives {
		t.Run(a.name, func(t *testing.T) {
			dir := filepath.Join(fixture.Unpack(t, a.name), a.dir)
			truthDir := filepath.Join(fixture.Unpack(t, a.truth), a.truthDir)
			e := openEngine(t, dir, false)
			committed := openEngine(t, dir, true)
			for _, b := range lines[bounds](t, filepath.Join(truthDir, "offsets.jsonl")) {
				s := snapshot(t, e, storage.TopicPartition{Topic: b.Topic, Partition: b.Partition})
				if s.Start() != b.Start || s.End() != b.End {
					t.Errorf("%s-%d: %d to %d, want %d to %d", b.Topic, b.Partition, s.Start(), s.End(), b.Start, b.End)
				}
				s = snapshot(t, committed, storage.TopicPartition{Topic: b.Topic, Partition: b.Partition})
				if s.Start() != b.Start || s.End() != b.Stable {
					t.Errorf("%s-%d committed: %d to %d, want %d to %d", b.Topic, b.Partition, s.Start(), s.End(), b.Start, b.Stable)
				}
			}
			records := wanted(t, truthDir, "uncommitted")
			if _, err := os.Stat(filepath.Join(truthDir, "times.jsonl")); err != nil {
				return
			}
			for _, l := range lines[lookup](t, filepath.Join(truthDir, "times.jsonl")) {
				tp := storage.TopicPartition{Topic: l.Topic, Partition: l.Partition}
				s := snapshot(t, e, tp)
				want := s.End()
				for _, r := range records[tp] { // the broker's own answer may be a control record, which no view shows
					if r.Timestamp >= l.At {
						want = r.Offset
						break
					}
				}
				if got, err := s.FindTime(context.Background(), l.At); err != nil || got != want {
					t.Errorf("%s time %d: %d, %v, want %d", tp, l.At, got, err, want)
				}
			}
		})
	}
}
