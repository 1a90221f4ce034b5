package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// decodedJSON is what a decoder gives.
type decodedJSON struct {
	Type    string
	Version int
	Data    map[string]any
	Base64  string
}

func parseDecoded(tb testing.TB, b []byte) decodedJSON {
	tb.Helper()
	var x decodedJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&x); err != nil {
		tb.Fatalf("%s: %v", b, err)
	}
	return x
}

func TestSchemaTables(t *testing.T) {
	s := schemas()
	if s.err != nil {
		t.Fatal(s.err)
	}
	for name, n := range map[string][2]int{"offsets": {len(s.offsets), 22}, "metadata": {len(s.metadata), 27}, "control": {len(s.control), 5}, "remote": {len(s.remote), 4}, "share": {len(s.share), 2}} {
		if n[0] != n[1] {
			t.Errorf("%s: got %d types, want %d", name, n[0], n[1])
		}
	}
	for _, bad := range []string{"x 1", "1 X 0 -\n\ta int31", "1 X 0 -\n\ta {b int8", "1 X 0 -\n\ta int8 one", "1 X 0 -\n\ta int8 }", "1 X 0 f\n\ta int8"} {
		if _, err := parseSchemas(bad); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestDecodeAsTheBrokersToolDoes(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "kafka-4.4.0", "decoded.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]any{}
	for line := range strings.Lines(string(b)) {
		x := map[string]any{}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprint(x["partition"], "/", x["offset"])] = x
	}
	seen := 0
	for p := range 2 {
		o := withRecords()
		o.JSON = true
		lines, res := mustDump(t, o, filepath.Join("testdata", "kafka-4.4.0", fmt.Sprintf("__consumer_offsets-%d", p)))
		if res.Damage != 0 {
			t.Errorf("damage %d times", res.Damage)
		}
		for _, line := range lines {
			x := map[string]any{}
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			if x["decodedKey"] == nil {
				continue
			}
			seen++
			w := want[fmt.Sprint(p, "/", x["offset"])]
			if w == nil {
				t.Fatalf("not expected: %s", line)
			}
			for got, want := range map[string]any{"decodedKey": w["key"], "decodedValue": w["value"]} {
				if x[got] == nil && want == nil {
					continue
				}
				g, _ := x[got].(map[string]any)
				w, _ := want.(map[string]any)
				if !reflect.DeepEqual(g["data"], w["data"]) {
					t.Errorf("%s of %v: got %v, want %v", got, x["offset"], g, w)
				}
			}
		}
	}
	if seen != len(want) {
		t.Errorf("got %d records, want %d", seen, len(want))
	}
}

func TestDecodeVersions(t *testing.T) {
	offsets, transactions := keyed(schemas().offsets), keyed(schemas().transactions)
	for v := range int16(4) {
		r := commitRecord(v, "g", "t", 3, 42, "note")
		key, value, ok := offsets(&r)
		if !ok {
			t.Fatalf("commit version %d is not known", v)
		}
		k, x := parseDecoded(t, key), parseDecoded(t, value)
		if k.Type != "OffsetCommit" || fmt.Sprint(k.Data) != "map[group:g partition:3 topic:t]" {
			t.Errorf("got %+v", k)
		}
		want := "map[commitTimestamp:1700000000001 metadata:note offset:42]"
		if v == 1 {
			want = "map[commitTimestamp:1700000000001 expireTimestamp:-1 metadata:note offset:42]"
		}
		if v == 3 {
			want = "map[commitTimestamp:1700000000001 leaderEpoch:7 metadata:note offset:42]"
		}
		if x.Version != int(v) || fmt.Sprint(x.Data) != want {
			t.Errorf("commit version %d: got %s", v, value)
		}
		group := kmsg.GroupMetadataKey{Version: 2, Group: "g"}
		meta := kmsg.GroupMetadataValue{Version: v, ProtocolType: "other", Generation: 5, Protocol: kmsg.StringPtr("p"), CurrentStateTimestamp: 9,
			Members: []kmsg.GroupMetadataValueMember{{MemberID: "m", InstanceID: kmsg.StringPtr("i"), ClientID: "c", ClientHost: "h", RebalanceTimeoutMillis: 1, SessionTimeoutMillis: 2, Subscription: []byte{1}, Assignment: []byte{2}}}}
		r = storage.Record{Key: group.AppendTo(nil), Value: meta.AppendTo(nil)}
		_, value, _ = offsets(&r)
		want = `"sessionTimeout":2,"subscription":"AQ==","assignment":"Ag=="}]}}`
		if !strings.HasSuffix(string(value), want) || strings.Contains(string(value), "rebalanceTimeout") != (v >= 1) || strings.Contains(string(value), "groupInstanceId") != (v >= 3) {
			t.Errorf("group version %d: got %s", v, value)
		}
	}
	for v := range int16(2) {
		k := kmsg.TxnMetadataKey{TransactionalID: "tx"}
		x := kmsg.TxnMetadataValue{Version: v, ProducerID: 8, ProducerEpoch: 1, TimeoutMillis: 100, State: kmsg.TransactionStateOngoing, LastUpdateTimestamp: 2, StartTimestamp: 1,
			Topics: []kmsg.TxnMetadataValueTopic{{Topic: "t", Partitions: []int32{0, 1}}}}
		r := storage.Record{Key: k.AppendTo(nil), Value: x.AppendTo(nil)}
		key, value, ok := transactions(&r)
		if got, want := string(key), `{"type":"TransactionState","version":0,"data":{"transactionalId":"tx"}}`; !ok || got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		got := parseDecoded(t, value).Data
		if fmt.Sprintf("%v %v %v", got["producerId"], got["transactionStatus"], got["transactionPartitions"]) != "8 1 [map[partitionIds:[0 1] topic:t]]" {
			t.Errorf("version %d: got %s", v, value)
		}
	}
}

func TestDecodeWhatIsNotKnown(t *testing.T) {
	d := keyed(schemas().offsets)
	r := commitRecord(3, "g", "t", 3, 42, "note")
	r.Value[1] = 99
	if _, value, ok := d(&r); !ok || !strings.HasPrefix(string(value), `{"type":"OffsetCommit","version":99,"data":null,"base64":"AAAA`) {
		t.Errorf("a later version: got %s", value)
	}
	r = commitRecord(3, "g", "t", 3, 42, "note")
	r.Value = r.Value[:len(r.Value)-1]
	if _, value, ok := d(&r); !ok || !strings.Contains(string(value), `"data":null`) {
		t.Errorf("cut short: got %s", value)
	}
	r.Value = nil
	if _, value, ok := d(&r); !ok || value != nil {
		t.Errorf("a tombstone: got %s", value)
	}
	for _, key := range []string{"", "\x00", "\x00\x63group", "\x00\x01\x00\x09g", "\xff\xff", "\x00\x02\x00\x01gx"} {
		if _, _, ok := d(&storage.Record{Key: []byte(key)}); ok {
			t.Errorf("key %q: is taken for one", key)
		}
	}
	// A tagged field that this table does not have is shown all the same.
	m := unkeyed(schemas().metadata, true)
	_, value, ok := m(&storage.Record{Value: []byte{1, 20, 0, 1, 9, 2, 7, 8}})
	if got, want := string(value), `{"type":"NoOp","version":0,"data":{"tag9":"Bwg="}}`; !ok || got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, b := range [][]byte{nil, {1}, {2, 20, 0, 0}, {1, 99, 0, 0}, {0xff}} {
		if _, _, ok := m(&storage.Record{Value: b}); ok {
			t.Errorf("value %x: is taken for one", b)
		}
	}
	if _, err := decodeControl(2, []byte{0, 9}); err == nil {
		t.Error("a later leader change: got no error")
	}
	if _, err := decodeControl(9, nil); err == nil {
		t.Error("an unknown control record: got no error")
	}
}

func FuzzDecode(f *testing.F) {
	r := commitRecord(3, "g", "t", 3, 42, "note")
	f.Add(r.Key, r.Value)
	f.Add([]byte{0, 2, 0, 1, 'g'}, []byte{0, 3, 0, 1, 'x', 0, 0, 0, 1, 0xff, 0xff})
	f.Add([]byte(nil), []byte{1, 0, 4, 0, 0})
	s := schemas()
	decoders := []decoder{keyed(s.offsets), keyed(s.transactions), keyed(s.share), unkeyed(s.metadata, true), unkeyed(s.remote, false)}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, d := range decoders {
			k, v, ok := d(&storage.Record{Key: key, Value: value})
			if !ok {
				continue
			}
			if k != nil && !json.Valid(k) || v != nil && !json.Valid(v) {
				t.Fatalf("not JSON: %s, %s", k, v)
			}
			if len(k)+len(v) > 1000+400*(len(key)+len(value)) {
				t.Fatalf("%d bytes of %d", len(k)+len(v), len(key)+len(value))
			}
		}
		for c := range schemas().control {
			if data, err := decodeControl(record.ControlType(c), value); err == nil && !json.Valid(data) {
				t.Fatalf("not JSON: %s", data)
			}
		}
		if _, ok := parseCommit(&storage.Record{Key: key, Value: value}); ok && len(key) < 10 {
			t.Fatal("a commit without its key")
		}
	})
}
