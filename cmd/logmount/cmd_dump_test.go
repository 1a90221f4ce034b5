package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/test/fixture"
)

// writeLog writes a log of one batch for each value.
func writeLog(t *testing.T, dir string, recs ...storage.Record) string {
	t.Helper()
	var b []byte
	for i := range recs {
		recs[i].Offset, recs[i].Timestamp = storage.Offset(i), 1700000000000+int64(i)
		one := recs[i : i+1]
		var err error
		if b, err = record.Encode(b, record.NewHeader(one, 0), one, record.None); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "00000000000000000000.log")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDump(t *testing.T) {
	dir := t.TempDir()
	values := []storage.Record{{Value: []byte("one")}, {Value: []byte("two")}, {Value: []byte("three")}}
	log := writeLog(t, filepath.Join(dir, "orders-0"), values...)
	code, out, errs := runIn(t, "dump", "--records", "--from", "1", "--to", "2", dir)
	if code != exitOK || errs != "" || strings.Count(out, "\n| ") != 1 || !strings.Contains(out, "payload: two\n") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
	code, out, _ = runIn(t, "dump", "-r", "--time-from", "1700000000002", "--json", log)
	if code != exitOK || !strings.Contains(out, `"value":"three"`) || strings.Contains(out, `"value":"two"`) {
		t.Errorf("got %d, %s", code, out)
	}
	for line := range strings.Lines(out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if code, out, _ = runIn(t, "dump", "--pos", "100..101", log); code != exitOK || !strings.Contains(out, "\nbatches: 1 ") {
		t.Errorf("got %d, %s", code, out)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b[66] ^= 1
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = runIn(t, "dump", "-r", log)
	if code != exitDamage || errs != "" || !strings.Contains(out, "\ndamage: position: 0 reason: checksum mismatch") || !strings.Contains(out, "payload: three\n") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
	// What cannot be read does not keep the rest from being shown.
	code, out, errs = runIn(t, "dump", filepath.Join(dir, "missing.log"), log)
	if code != exitFailed || !strings.Contains(errs, "missing.log") || !strings.Contains(out, "baseOffset: 2 ") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
}

func TestDumpArguments(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "no file given"},
		{"an offset", []string{"--from", "-1", dir}, `--from "-1" is not an offset`},
		{"a time", []string{"--time-to", "soon", dir}, "is not a time"},
		{"a range", []string{"--pos", "5", dir}, "is not a range of bytes"},
		{"a range of words", []string{"--pos", "a..b", dir}, "is not a range of bytes"},
		{"no range", []string{"--pos", "..", dir}, "is not a range of bytes"},
		{"a backward range", []string{"--pos", "9..5", dir}, "ends before it begins"},
		{"offsets backward", []string{"--from", "6", "--to", "5", dir}, "--from 6 --to 5: the range ends before it begins"},
		{"times backward", []string{"--time-from", "now", "--time-to", "-1h", dir}, "--time-from now --time-to -1h: the range ends before it begins"},
		{"a type", []string{"--type", "tape", dir}, `--type "tape": it can be log, index`},
		{"a decoder", []string{"--decode", "all", dir}, `--decode "all": it can be offsets, transactions`},
		{"an empty directory", []string{dir}, "no file in it has a name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errs := runIn(t, append([]string{"dump"}, tt.args...)...)
			if code != exitFailed || !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("got %d, %q, want %q", code, errs, tt.want)
			}
		})
	}
}

func TestDumpOfABroker(t *testing.T) {
	dir := filepath.Join(fixture.Unpack(t, "killed-4.4.0"), "killed")
	code, out, errs := runIn(t, "dump", "--records", dir)
	if code != exitOK || errs != "" || !strings.Contains(out, `payload: {"type":"Topic","version":0,"data":{"name":"crashed"`) {
		t.Errorf("got %d, %q, %.300s", code, errs, out)
	}
}

func TestOffsetsOfGroups(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, filepath.Join(dir, "orders-1"), storage.Record{Value: []byte("a")}, storage.Record{Value: []byte("b")}, storage.Record{Value: []byte("c")})
	commit := func(group, topic string, partition int32, offset int64) storage.Record {
		k := kmsg.OffsetCommitKey{Version: 1, Group: group, Topic: topic, Partition: partition}
		v := kmsg.OffsetCommitValue{Version: 3, Offset: offset, LeaderEpoch: -1, Metadata: "m", CommitTimestamp: 1700000000000}
		return storage.Record{Key: k.AppendTo(nil), Value: v.AppendTo(nil)}
	}
	writeLog(t, filepath.Join(dir, "__consumer_offsets-7"), commit("billing", "orders", 1, 0), commit("billing", "orders", 1, 1), commit("a group\n", "gone", 0, 9), commit("ahead", "orders", 1, 5))
	code, out, errs := runIn(t, "offsets", dir, "--groups")
	want := []string{"GROUP TOPIC PARTITION OFFSET END LAG", `"a group\n" gone 0 9 - -`, "ahead orders 1 5 3 0", "billing orders 1 1 3 2"}
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if code != exitOK || errs != "" || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %d, %q, %q, want %q", code, got, errs, want)
	}
	code, out, _ = runIn(t, "offsets", dir, "orders", "1", "--groups", "--json")
	var list []groupJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitOK || len(list) != 2 || list[1].Group != "billing" || *list[1].Lag != 2 || list[1].Metadata != "m" || list[1].Committed != 1700000000000 {
		t.Errorf("got %d, %s, %v", code, out, err)
	}
	if code, out, errs = runIn(t, "offsets", dir, "nothing", "--groups", "--json"); code != exitFailed || out != "" || !strings.Contains(errs, "nothing") {
		t.Errorf("a topic that is not there: got %d, %s, %s", code, out, errs)
	}
	if code, out, _ = runIn(t, "offsets", dir, "gone", "--groups", "--json"); code != exitOK || !strings.Contains(out, `"gone"`) {
		t.Errorf("a topic that is elsewhere: got %d, %s", code, out)
	}
	if code, _, errs = runIn(t, "offsets", dir, "--groups", "--time", "now"); code != exitFailed || errs == "" {
		t.Errorf("both flags: got %d, %q", code, errs)
	}
	log := filepath.Join(dir, "__consumer_offsets-7", "00000000000000000000.log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b[70] ^= 1
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs = runIn(t, "offsets", dir, "--groups"); code != exitDamage || !strings.Contains(out, "billing") || !strings.Contains(errs, "unreadable commits") {
		t.Errorf("got %d, %q, %q", code, out, errs)
	}
}
