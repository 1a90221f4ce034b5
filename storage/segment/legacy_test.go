package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// legacyLog is a segment with entries of older formats, and what is in it.
type legacyLog struct {
	view View
	recs []storage.Record
	said []string
}

// openLegacy looks at the segment of dir that starts at base, as a foreign one, and lets the scanner of the whole log say where it ends.
func openLegacy(tb testing.TB, fsys vfs.FS, dir string, base storage.Offset, size int64, recs []storage.Record) *legacyLog {
	tb.Helper()
	l := &legacyLog{recs: recs}
	files := vfs.NewFiles(fsys, 8)
	tb.Cleanup(func() { _ = files.Close() })
	env := &Env{
		FS: fsys, Files: files, Now: func() time.Time { return time.UnixMilli(0) }, Log: slog.New(slog.DiscardHandler),
		Report: func(r storage.Report) { l.said = append(l.said, r.Reason) },
	}
	s := New(env, dir, base, Settings{IndexInterval: 1024, MaxIndexBytes: 10 << 20})
	v, err := s.Tail(context.Background(), storage.Pos(size))
	if err != nil {
		tb.Fatal(err)
	}
	l.view = v
	return l
}

// decode returns the records of entries that lie one behind the other.
func decode(tb testing.TB, b []byte) []storage.Record {
	tb.Helper()
	var out []storage.Record
	var r record.Reader
	for len(b) > 0 {
		f, err := record.ParseFrame(b)
		if err != nil {
			tb.Fatal(err)
		}
		if err := r.Reset(b[:f.Size]); err != nil {
			tb.Fatal(err)
		}
		b = b[f.Size:]
		for {
			var rec storage.Record
			ok, err := r.Next(&rec)
			if err != nil {
				tb.Fatal(err)
			}
			if !ok {
				break
			}
			rec.Key, rec.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
			out = append(out, rec)
		}
	}
	return out
}

// check compares all that can be asked of the view with the records.
func (l *legacyLog) check(tb testing.TB) {
	tb.Helper()
	ctx := context.Background()
	v, recs := &l.view, l.recs
	if n := len(recs); n > 0 && v.Next != recs[n-1].Offset+1 {
		tb.Fatalf("next: got %d, want %d", v.Next, recs[n-1].Offset+1)
	}
	var r Reader
	defer r.Close()
	if err := r.Open(ctx, v, v.Base); err != nil {
		tb.Fatal(err)
	}
	for i := range recs {
		got, err := r.Next()
		if err != nil || got.Offset != recs[i].Offset || got.Timestamp != recs[i].Timestamp || !bytes.Equal(got.Key, recs[i].Key) || !bytes.Equal(got.Value, recs[i].Value) {
			tb.Fatalf("record %d: got %+v, %v, want %+v", i, got, err, recs[i])
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		tb.Fatalf("behind the last: got %v", err)
	}

	sum := func(m *storage.Measure, from, to storage.Offset) (n int64) {
		for i := range recs {
			if recs[i].Offset >= from && recs[i].Offset < to {
				n += m.Of(&recs[i])
			}
		}
		return n
	}
	sized := &storage.Measure{Name: "x", Size: func(r *storage.Record) int64 { return 5 + r.Timestamp&7 + int64(len(r.Value)) }}
	linear := &storage.Measure{Name: "l", PerRecord: 1, PerKeyByte: 1, PerValueByte: 1}
	step := max(storage.Offset(1), (v.Next-v.Base)/12)
	for _, table := range []bool{false, true} {
		for _, m := range []*storage.Measure{linear, sized} {
			if table {
				if _, err := v.Table(ctx, m); err != nil {
					tb.Fatal(err)
				}
			}
			for from := v.Base; from <= v.Next; from += step {
				to := from + 3*step
				if n, err := v.Extent(ctx, m, from, to); err != nil || n != sum(m, from, to) {
					tb.Fatalf("extent %s of %d to %d: got %d, %v, want %d", m.Name, from, to, n, err, sum(m, from, to))
				}
				if n, err := v.Before(ctx, m, from); err != nil || n != sum(m, v.Base, from) {
					tb.Fatalf("before %s of %d: got %d, %v, want %d", m.Name, from, n, err, sum(m, v.Base, from))
				}
			}
		}
	}
	for i := 0; i < len(recs); i += max(1, len(recs)/12) {
		at := sum(linear, v.Base, recs[i].Offset)
		if o, skip, err := v.Locate(ctx, linear, at); err != nil || o != recs[i].Offset || skip != 0 {
			tb.Fatalf("locate %d: got %d, %d, %v, want %d", at, o, skip, err, recs[i].Offset)
		}
	}

	for o := v.Base; o < v.Next; o += step {
		i, _ := slices.BinarySearchFunc(recs, o, func(r storage.Record, o storage.Offset) int { return int(r.Offset - o) })
		if got, err := v.FindNext(ctx, o); err != nil || got != recs[i].Offset {
			tb.Fatalf("next of %d: got %d, %v, want %d", o, got, err, recs[i].Offset)
		}
		for n := int64(1); n <= int64(len(recs)-i)+1; n += 1 + n/2 {
			got, have, err := v.FindLast(ctx, n, o)
			if want := int64(len(recs) - i); n > want {
				if !errors.Is(err, ErrNone) || have != want {
					tb.Fatalf("%d from the end, above %d: got %d, %d, %v, want %d", n, o, got, have, err, want)
				}
			} else if want := recs[int64(len(recs))-n].Offset; err != nil || got != want {
				tb.Fatalf("%d from the end, above %d: got %d, %v, want %d", n, o, got, err, want)
			}
		}
		ts := recs[i].Timestamp
		for _, ts := range []int64{ts, ts + 1} {
			j := slices.IndexFunc(recs, func(r storage.Record) bool { return r.Offset >= o && r.Timestamp >= ts })
			got, err := v.FindTime(ctx, ts, o)
			if j < 0 && !errors.Is(err, ErrNone) || j >= 0 && (err != nil || got != recs[j].Offset) {
				tb.Fatalf("time %d from %d: got %d, %v, want record %d", ts, o, got, err, j)
			}
		}
	}
	if len(l.said) > 0 {
		tb.Fatalf("reported: %q", l.said)
	}
}

// TestLegacyLogs asks everything of the segments that a broker wrote in formats 0 and 1, with its indexes and without, and builds the indexes anew.
func TestLegacyLogs(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(fixture.Unpack(t, "legacy-3.9.1"), "legacy", "*", "*", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	entries := 0
	for _, path := range logs {
		stem, dir := strings.TrimSuffix(filepath.Base(path), ".log"), filepath.Dir(path)
		t.Run(filepath.Base(dir)+"/"+stem, func(t *testing.T) {
			base, err := strconv.ParseInt(stem, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(log) == 0 {
				return
			}
			l := openLegacy(t, vfs.OS(), dir, storage.Offset(base), int64(len(log)), decode(t, log))
			if l.view.Size != storage.Pos(len(log)) {
				t.Fatalf("end at %d of %d bytes", l.view.Size, len(log))
			}
			l.check(t)

			x, err := l.view.Scan(context.Background(), l.view.Size, l.view.Next)
			if err != nil || x.Bad != nil || x.Next != l.view.Next || len(x.Epochs) > 0 {
				t.Fatalf("scan: got %+v, %v", x, err)
			}
			closing, err := x.Closing()
			if err != nil {
				t.Fatal(err)
			}
			for ext, got := range map[string][]byte{".index": x.Offsets, ".timeindex": append(x.Times, closing...)} {
				want, err := os.ReadFile(filepath.Join(dir, stem+ext))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: got %x, want %x", ext, got, want)
				}
				entries += len(got)
			}

			for _, ext := range []string{".index", ".timeindex"} {
				if err := os.Remove(filepath.Join(dir, stem+ext)); err != nil {
					t.Fatal(err)
				}
			}
			openLegacy(t, vfs.OS(), dir, storage.Offset(base), int64(len(log)), l.recs).check(t)
		})
	}
	if entries == 0 {
		t.Error("all indexes are empty")
	}
}

// writeLog puts a log into a disk in memory.
func writeLog(tb testing.TB, log []byte) vfs.FS {
	tb.Helper()
	fsys := memfs.New()
	if err := vfs.MkdirAll(fsys, "/d/t-0", 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, "/d/t-0/00000000000000000100.log", log, 0o644, nil); err != nil {
		tb.Fatal(err)
	}
	return fsys
}

// TestMixedFormats makes logs of entries of all formats with all sorts of gaps.
func TestMixedFormats(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var log []byte
		next := storage.Offset(100)
		oldest := rapid.IntRange(0, 2).Draw(rt, "format")
		for range rapid.IntRange(1, 30).Draw(rt, "entries") {
			var recs []storage.Record
			for range rapid.IntRange(1, 5).Draw(rt, "records") {
				next += storage.Offset(rapid.SampledFrom([]int{0, 0, 0, 1, 7}).Draw(rt, "gap"))
				recs = append(recs, storage.Record{Offset: next, Timestamp: rapid.Int64Range(-1, 50).Draw(rt, "time"),
					Value: bytes.Repeat([]byte{'x'}, rapid.IntRange(0, 900).Draw(rt, "size"))})
				next++
			}
			codec := record.Codec(rapid.IntRange(0, 3).Draw(rt, "codec"))
			var err error
			switch f := max(oldest, rapid.IntRange(0, 2).Draw(rt, "entry")); f {
			case 2:
				log, err = record.Encode(log, record.NewHeader(recs, 0), recs, codec)
			default:
				log, err = record.EncodeLegacy(log, int8(f), record.Attributes(codec), recs)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		openLegacy(t, writeLog(t, log), "/d/t-0", 100, int64(len(log)), decode(t, log)).check(t)
	})
}

// TestLegacyDamage destroys one entry in the middle in several ways: one error at its place, and all else stays readable.
func TestLegacyDamage(t *testing.T) {
	inside, err := record.EncodeLegacy(nil, 1, 0, []storage.Record{{Offset: 103}, {Offset: 107, Value: []byte("not a record")}})
	if err != nil {
		t.Fatal(err)
	}
	value := append(bytes.Repeat([]byte{'v'}, 40), inside...) // an entry that would fit, in the bytes of a record
	damages := []struct {
		name string
		do   func(entry []byte)
	}{
		{"last byte", func(b []byte) { b[len(b)-1] ^= 1 }},
		{"checksum", func(b []byte) { b[12] ^= 1 }},
		{"key length", func(b []byte) { b[26] = 0x40 }},
		{"codec", func(b []byte) { b[17] ^= 7 }},
		{"offset too low", func(b []byte) { binary.BigEndian.PutUint64(b, 1) }},
		{"offset too high", func(b []byte) { binary.BigEndian.PutUint64(b, 5000) }},
	}
	for _, codec := range []record.Codec{record.None, record.Gzip, record.LZ4} {
		for _, d := range damages {
			t.Run(fmt.Sprintf("%v/%s", codec, d.name), func(t *testing.T) {
				var log []byte
				at, end := 0, 0
				var want []storage.Offset
				for o := storage.Offset(100); o < 120; o += 4 {
					recs := []storage.Record{{Offset: o, Value: value}, {Offset: o + 2, Value: value}}
					if codec == record.None {
						recs = recs[:1]
					}
					if o == 108 {
						at = len(log)
					} else {
						for i := range recs {
							want = append(want, recs[i].Offset)
						}
					}
					if log, err = record.EncodeLegacy(log, 1, record.Attributes(codec), recs); err != nil {
						t.Fatal(err)
					}
					if o == 108 {
						end = len(log)
					}
				}
				d.do(log[at:end])
				l := openLegacy(t, writeLog(t, log), "/d/t-0", 100, int64(len(log)), nil)
				var r Reader
				defer r.Close()
				if err := r.Open(context.Background(), &l.view, 100); err != nil {
					t.Fatal(err)
				}
				var got []storage.Offset
				bad := 0
				for {
					rec, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					var ce *storage.CorruptError
					if errors.As(err, &ce) {
						if bad++; ce.Pos != storage.Pos(at) {
							t.Errorf("got %v, want position %d", err, at)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, rec.Offset)
				}
				if bad != 1 || !slices.Equal(got, want) {
					t.Errorf("got %d, %d errors, want %d", got, bad, want)
				}
			})
		}
	}
}
