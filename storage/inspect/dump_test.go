package inspect

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/fixture"
)

// mustDump dumps files of the disk and returns the lines and what came out.
func mustDump(tb testing.TB, o DumpOptions, paths ...string) ([]string, DumpResult) {
	tb.Helper()
	var out bytes.Buffer
	res, err := Dump(tb.Context(), vfs.OS(), &out, paths, o)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), res
}

// object is a line of --json.
type object map[string]any

func mustObjects(tb testing.TB, o DumpOptions, paths ...string) ([]object, DumpResult) {
	tb.Helper()
	o.JSON = true
	lines, res := mustDump(tb, o, paths...)
	var list []object
	for _, line := range lines {
		var x object
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&x); err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		list = append(list, x)
	}
	return list, res
}

func withRecords() DumpOptions {
	o := NewDumpOptions()
	o.Records = true
	return o
}

// broker unpacks a directory that a broker wrote.
func broker(tb testing.TB, name string) string {
	tb.Helper()
	switch name {
	case "v0", "v1":
		return filepath.Join(fixture.Unpack(tb, "legacy-3.9.1"), "legacy", name)
	}
	return filepath.Join(fixture.Unpack(tb, name+"-4.4.0"), name)
}

func TestDumpBrokersDirectories(t *testing.T) {
	for _, name := range []string{"clean", "live", "killed", "v0", "v1"} {
		t.Run(name, func(t *testing.T) {
			dir := broker(t, name)
			o := withRecords()
			o.JSON = true
			objects, res := mustDump(t, o, dir)
			if res.Damage != 0 || res.Files == 0 {
				t.Errorf("%d files, %d times damage", res.Files, res.Damage)
			}
			text, again := mustDump(t, withRecords(), dir)
			if len(text) != len(objects) || again != res {
				t.Errorf("%d lines of text, %d of JSON", len(text), len(objects))
			}
			files := 0
			for i, line := range objects {
				if strings.HasPrefix(line, `{"kind":"record","offset":`) {
					if !json.Valid([]byte(line)) || !strings.HasPrefix(text[i], "| offset: "+strings.Split(line[26:], ",")[0]+" ") {
						t.Errorf("%s is %s", line, text[i])
					}
					continue
				}
				var x object
				if err := json.Unmarshal([]byte(line), &x); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				switch x["kind"] {
				case "file":
					files++
				case "damage":
					t.Errorf("%v", x)
				case "note":
					if strings.Contains(x["reason"].(string), "usable") {
						t.Errorf("%v", x)
					}
				case "gap":
					if x["damage"] != false {
						t.Errorf("%v", x)
					}
				case "batch":
					if x["isvalid"] != true {
						t.Errorf("%v", x)
					}
				case "record":
					t.Errorf("not expected: %s", line)
				}
			}
			if files != res.Files {
				t.Errorf("%d headings of %d files", files, res.Files)
			}
		})
	}
}

// truth is a record as independent consumers read it.
type truth struct {
	Partition int
	Offset    json.Number
	Timestamp json.Number
	Key       *string `json:"key_base64"`
	Value     *string `json:"value_base64"`
}

func TestDumpRecordsAreTheTruth(t *testing.T) {
	legacy := filepath.Join(fixture.Unpack(t, "legacy-3.9.1"), "legacy")
	truths, clean := filepath.Join(fixture.Unpack(t, "truth-4.4.0"), "truth"), broker(t, "clean")
	for _, tt := range []struct{ dir, truth, topic string }{
		{clean, truths, "codec-zstd"}, {clean, truths, "transactions"}, {clean, truths, "compacted"}, {clean, truths, "log-append-time"}, {clean, truths, "codec-snappy"},
		{filepath.Join(legacy, "v0"), filepath.Join(legacy, "v0-truth"), "v0-lz4"}, {filepath.Join(legacy, "v1"), filepath.Join(legacy, "v1-truth"), "v1-compacted"},
	} {
		t.Run(tt.topic, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(tt.truth, tt.topic+".uncommitted.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			objects, _ := mustObjects(t, withRecords(), filepath.Join(tt.dir, tt.topic+"-0"))
			var got []object
			deleted := false
			for _, x := range objects {
				if x["kind"] == "file" {
					deleted = strings.HasSuffix(x["file"].(string), ".deleted")
				}
				if x["kind"] == "record" && x["endTxnMarker"] == nil && !deleted {
					got = append(got, x)
				}
			}
			kind := map[string]string{"v0-lz4": "NoTimestampType", "log-append-time": "LogAppendTime"}[tt.topic] // as Kafka's own tool names them
			if kind == "" {
				kind = "CreateTime"
			}
			n := 0
			for line := range strings.Lines(string(b)) {
				var want truth
				if err := json.Unmarshal([]byte(line), &want); err != nil {
					t.Fatal(err)
				}
				if n >= len(got) {
					break
				}
				x := got[n]
				if x["offset"] != want.Offset || !sameBytes(x, "key", want.Key) || !sameBytes(x, "value", want.Value) ||
					x["timestamp"] != want.Timestamp && tt.topic[:2] != "v0" || x["timestampType"] != kind {
					t.Fatalf("record %d: got %v, want %s", n, x, line)
				}
				n++
			}
			if n == 0 || n != len(got) || n != bytes.Count(b, []byte("\n")) {
				t.Errorf("%d records of %d, of %d", n, len(got), bytes.Count(b, []byte("\n")))
			}
		})
	}
}

// sameBytes compares a key or value with its truth.
func sameBytes(x object, name string, want *string) bool {
	var got []byte
	switch s, ok := x[name].(string); {
	case ok:
		got = []byte(s)
	case x[name+"_base64"] != nil:
		return want != nil && x[name+"_base64"] == *want
	default:
		_, there := x[name]
		return there && want == nil
	}
	return want != nil && base64.StdEncoding.EncodeToString(got) == *want
}

func TestDumpSelects(t *testing.T) {
	dir := filepath.Join(broker(t, "clean"), "segments-0")
	count := func(o DumpOptions, kind string) int {
		o.JSON = true
		lines, _ := mustDump(t, o, dir)
		n := 0
		for _, line := range lines {
			if strings.HasPrefix(line, `{"kind":"`+kind+`"`) {
				n++
			}
		}
		return n
	}
	o := withRecords()
	if got, want := count(o, "record"), 20000; got != want {
		t.Fatalf("got %d records, want %d", got, want)
	}
	all := count(NewDumpOptions(), "batch")
	o.From, o.To = 5005, 5115
	if got, want := count(o, "record"), 110; got != want {
		t.Errorf("by offset: got %d records, want %d", got, want)
	}
	if got := count(o, "batch"); got == 0 || got > all/10 {
		t.Errorf("by offset: got %d batches of %d", got, all)
	}
	if got := count(o, "index"); got == 0 || got > 20 {
		t.Errorf("by offset: got %d index entries", got)
	}
	objects, _ := mustObjects(t, o, dir)
	var first, last int64 = -1, -1
	for _, x := range objects {
		if x["kind"] == "record" {
			ts, _ := x["timestamp"].(json.Number).Int64()
			if first < 0 {
				first = ts
			}
			last = ts
		}
	}
	o = withRecords()
	o.TimeFrom, o.TimeTo = first, last
	if got, want := count(o, "record"), 109; got != want {
		t.Errorf("by time: got %d records, want %d", got, want)
	}
	o = NewDumpOptions()
	o.PosFrom, o.PosTo = 1000, 1001
	segments := 0
	objects, res := mustObjects(t, o, dir)
	for _, x := range objects {
		if x["kind"] == "total" && x["batches"].(json.Number) == "1" {
			segments++
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || segments != len(logs) || res.Damage != 0 {
		t.Errorf("by position: one batch in %d of %d logs, %v", segments, len(logs), err)
	}
}

// Times in a batch need not be in order, and the last of all times is one that records and entries of a time index may have.
func TestDumpTimesUnordered(t *testing.T) {
	const last = math.MaxInt64
	batches := [][]int64{{50, 10, 30}, {20}, {last, 5, last - 1}, {last}, {40, 60}}
	dir := t.TempDir()
	var log, times []byte
	var offset storage.Offset
	for _, ts := range batches {
		var recs []storage.Record
		for _, at := range ts {
			recs = append(recs, storage.Record{Offset: offset, Timestamp: at, Value: []byte("v")})
			offset++
		}
		b, err := record.Encode(nil, record.NewHeader(recs, 0), recs, record.Zstd)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, b...)
	}
	for _, e := range []struct{ ts, offset int64 }{{50, 2}, {last, 6}} {
		times = binary.BigEndian.AppendUint64(times, uint64(e.ts))
		times = binary.BigEndian.AppendUint32(times, uint32(e.offset))
	}
	name := filepath.Join(dir, "00000000000000000000")
	for ext, b := range map[string][]byte{".log": log, ".timeindex": times} {
		if err := os.WriteFile(name+ext, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		from, to                int64
		records, shown, entries int
	}{
		{math.MinInt64, last, 10, 5, 2},
		{11, last, 8, 5, 2},
		{math.MinInt64, 11, 2, 2, 0},
		{math.MinInt64, 40, 4, 3, 0},
		{5, 6, 1, 1, 0},
		{31, 41, 1, 1, 0},
		{last, last, 2, 2, 1},
		{last - 1, last, 3, 2, 1},
		{61, last - 1, 0, 0, 0},
	} {
		o := withRecords()
		o.TimeFrom, o.TimeTo = c.from, c.to
		got := map[string]int{}
		objects, res := mustObjects(t, o, name+".log", name+".timeindex")
		for _, x := range objects {
			got[x["kind"].(string)]++
		}
		if got["record"] != c.records || got["batch"] != c.shown || got["timeindex"] != c.entries || res.Damage != 0 {
			t.Errorf("from %d to %d: got %v and %d damage, want %+v", c.from, c.to, got, res.Damage, c)
		}
	}
}

func TestDumpErrors(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if _, err := Dump(t.Context(), vfs.OS(), &out, []string{filepath.Join(dir, "none.log")}, NewDumpOptions()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	strange := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(strange, testBatch(t, 5, 1, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dump(t.Context(), vfs.OS(), &out, []string{strange}, NewDumpOptions()); err == nil {
		t.Error("a file of no known kind: got no error")
	}
	o := NewDumpOptions()
	o.Type = "log"
	if lines, res := mustDump(t, o, strange); res.Damage != 0 || len(lines) != 3 || !strings.HasPrefix(lines[1], "baseOffset: 5 ") {
		t.Errorf("as a log: got %q", lines)
	}
	if lines, res := mustDump(t, NewDumpOptions(), dir); res.Files != 0 || len(lines) != 1 || lines[0] != "" {
		t.Errorf("a directory with nothing known: got %q", lines)
	}
}
