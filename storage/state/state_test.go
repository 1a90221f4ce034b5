package state

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/logmount/logmount/storage"
)

func tp(topic string, p int32) storage.TopicPartition {
	return storage.TopicPartition{Topic: topic, Partition: p}
}

// checkErr verifies that err is the sentinel and holds what; no error where what is empty.
func checkErr(t *testing.T, err, sentinel error, what string) {
	t.Helper()
	if what == "" {
		if err != nil {
			t.Fatalf("got %v, want no error", err)
		}
		return
	}
	if !errors.Is(err, sentinel) || !strings.Contains(err.Error(), what) {
		t.Fatalf("got %v, want %v with %q", err, sentinel, what)
	}
}

func TestCheckpoint(t *testing.T) {
	tests := []struct {
		name, in string
		err      string
		out      string // written again; the same where empty
	}{
		{"0 bytes", "", "", "0\n0\n"},
		{"version only", "0\n", "", "0\n0\n"},
		{"version only, no line end", "0", "", "0\n0\n"},
		{"no entries", "0\n0\n", "", ""},
		{"two", "0\n2\na 0 5\nb.c-d_e 12 9223372036854775807\n", "", ""},
		{"Windows", "0\r\n1\r\na 0 5\r\n", "", "0\n1\na 0 5\n"},
		{"no last line end", "0\n1\na 0 5", "", "0\n1\na 0 5\n"},
		{"many blanks", "0\n1\na  0\t5 \n", "", "0\n1\na 0 5\n"},
		{"named twice", "0\n3\na 0 5\nb 0 1\na 0 7\n", "", "0\n2\na 0 7\nb 0 1\n"},
		{"offset not a number", "0\n2\na 0 x\nb 0 1\n", "", ""},
		{"offset negative", "0\n1\na 0 -1\n", "", ""},
		{"offset too large", "0\n1\na 0 9223372036854775808\n", "", ""},
		{"partition not a number", "0\n2\na x 5\na 0 6\n", "", ""},
		{"version", "1\n0\n", "line 1: version", ""},
		{"version with a blank", " 0\n0\n", "line 1: version", ""},
		{"count", "0\nmany\n", "line 2: \"many\" is not a number", ""},
		{"count empty", "0\n\n", "line 2", ""},
		{"too few", "0\n2\na 0 5\n", "line 2: 2 entries announced, 1 lines", ""},
		{"too many", "0\n0\na 0 5\n", "line 2: 0 entries announced, 1 lines", ""},
		{"huge count", "0\n2147483647\n", "line 2: 2147483647 entries announced", ""},
		{"blank line", "0\n1\na 0 5\n\n", "line 4: the line is blank", ""},
		{"blank line within", "0\n2\n \na 0 5\n", "line 3: the line is blank", ""},
		{"two fields", "0\n1\na 5\n", "line 3: \"a 5\" is not", ""},
		{"four fields", "0\n1\na b 0 5\n", "line 3", ""},
		{"leading blank", "0\n1\n a 0 5\n", "line 3", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ParseCheckpoint([]byte(tt.in))
			checkErr(t, err, storage.ErrCorrupt, tt.err)
			if tt.err != "" {
				return
			}
			want := tt.out
			if want == "" {
				want = tt.in
			}
			if got := string(c.Format()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestCheckpointChanges(t *testing.T) {
	var c Checkpoint
	if _, ok := c.Get(tp("a", 0)); ok || c.Len() != 0 {
		t.Error("the zero value is not empty")
	}
	c, err := ParseCheckpoint([]byte("0\n4\na 0 5\nb x 1\nb 0 zzz\nc 0 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := c.Get(tp("b", 0)); o != 0 || !ok {
		t.Errorf("unusable offset: got %d, %t, want 0", o, ok)
	}
	if got, want := c.Unusable(), []string{"b x 1", "b 0 zzz"}; !slices.Equal(got, want) {
		t.Errorf("unusable: got %q, want %q", got, want)
	}
	old := c.Clone()
	c.Delete(tp("a", 0))
	c.Delete(tp("none", 0))
	c.Set(tp("b", 0), 3)
	c.Set(tp("d", 1), 4)
	c.Set(tp("c", 0), 8)
	if got, want := string(c.Format()), "0\n4\nb x 1\nb 0 3\nc 0 8\nd 1 4\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var all []string
	for tp, o := range c.All() {
		all = append(all, tp.String())
		if got, ok := c.Get(tp); got != o || !ok {
			t.Errorf("%v: got %d, %t, want %d", tp, got, ok, o)
		}
	}
	if want := []string{"b-0", "c-0", "d-1"}; !slices.Equal(all, want) || c.Len() != 3 {
		t.Errorf("all: got %q, want %q", all, want)
	}
	if got, want := string(old.Format()), "0\n4\na 0 5\nb x 1\nb 0 zzz\nc 0 7\n"; got != want {
		t.Errorf("clone: got %q, want %q", got, want)
	}
	var z Checkpoint
	z.Set(tp("a", 0), 1)
	if got := string(z.Format()); got != "0\n1\na 0 1\n" {
		t.Errorf("got %q", got)
	}
}

func TestParseEpochs(t *testing.T) {
	tests := []struct {
		name, in string
		n        int
		err      string
	}{
		{"empty", "", 0, ""},
		{"none", "0\n0\n", 0, ""},
		{"four", "0\n4\n0 0\n2 14\n4 19\n6 34\n", 4, ""},
		{"negative epoch", "0\n1\n-1 0\n", 0, "line 3: \"-1\" is not an epoch"},
		{"negative offset", "0\n1\n0 -1\n", 0, "line 3: \"-1\" is not an offset"},
		{"epoch repeated", "0\n2\n1 0\n1 5\n", 0, "line 4: epoch 1 at 5"},
		{"start repeated", "0\n2\n1 5\n2 5\n", 0, "line 4: epoch 2 at 5"},
		{"three fields", "0\n1\n1 2 3\n", 0, "line 3"},
		{"version", "2\n0\n", 0, "line 1"},
		{"count", "0\n3\n0 0\n", 0, "line 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := ParseEpochs([]byte(tt.in))
			checkErr(t, err, storage.ErrCorrupt, tt.err)
			if len(e) != tt.n {
				t.Errorf("got %v, want %d entries", e, tt.n)
			}
			if tt.n > 0 && string(e.Format()) != tt.in {
				t.Errorf("got %q, want %q", e.Format(), tt.in)
			}
		})
	}
	if got, want := string(Epochs{{0, 0}}.Format()), "0\n1\n0 0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEpochsChange(t *testing.T) {
	e := Epochs{{1, 10}, {3, 20}, {5, 30}}
	tests := []struct {
		name    string
		do      func() (Epochs, bool)
		want    Epochs
		changed bool
	}{
		{"same epoch, later batch", func() (Epochs, bool) { return e.Assign(5, 40) }, e, false},
		{"same epoch, first batch", func() (Epochs, bool) { return e.Assign(5, 30) }, e, false},
		{"same epoch, earlier batch", func() (Epochs, bool) { return e.Assign(5, 25) }, Epochs{{1, 10}, {3, 20}, {5, 25}}, true},
		{"next epoch", func() (Epochs, bool) { return e.Assign(6, 40) }, Epochs{{1, 10}, {3, 20}, {5, 30}, {6, 40}}, true},
		{"next epoch replaces an empty one", func() (Epochs, bool) { return e.Assign(6, 30) }, Epochs{{1, 10}, {3, 20}, {6, 30}}, true},
		{"older epoch", func() (Epochs, bool) { return e.Assign(2, 40) }, Epochs{{1, 10}, {2, 40}}, true},
		{"no epoch", func() (Epochs, bool) { return e.Assign(-1, 40) }, e, false},
		{"first", func() (Epochs, bool) { return Epochs(nil).Assign(0, 7) }, Epochs{{0, 7}}, true},
		{"cut behind", func() (Epochs, bool) { return e.TruncateFrom(31) }, e, false},
		{"cut at a start", func() (Epochs, bool) { return e.TruncateFrom(30) }, Epochs{{1, 10}, {3, 20}}, true},
		{"cut all", func() (Epochs, bool) { return e.TruncateFrom(0) }, nil, true},
		{"start before", func() (Epochs, bool) { return e.TruncateBefore(5) }, e, false},
		{"start at the first", func() (Epochs, bool) { return e.TruncateBefore(10) }, e, false},
		{"start in the first", func() (Epochs, bool) { return e.TruncateBefore(15) }, Epochs{{1, 15}, {3, 20}, {5, 30}}, true},
		{"start at the second", func() (Epochs, bool) { return e.TruncateBefore(20) }, Epochs{{3, 20}, {5, 30}}, true},
		{"start in the last", func() (Epochs, bool) { return e.TruncateBefore(99) }, Epochs{{5, 99}}, true},
		{"start of none", func() (Epochs, bool) { return Epochs(nil).TruncateBefore(9) }, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := tt.do()
			if !slices.Equal(got, tt.want) || changed != tt.changed {
				t.Errorf("got %v, %t, want %v, %t", got, changed, tt.want, tt.changed)
			}
			if want := (Epochs{{1, 10}, {3, 20}, {5, 30}}); !slices.Equal(e, want) {
				t.Fatalf("the receiver became %v", e)
			}
		})
	}
	for _, tt := range []struct {
		o    storage.Offset
		want int32
		ok   bool
	}{{9, 0, false}, {10, 1, true}, {19, 1, true}, {20, 3, true}, {1000, 5, true}} {
		if got, ok := e.At(tt.o); got.Epoch != tt.want || ok != tt.ok {
			t.Errorf("epoch at %d: got %v, %t, want %d, %t", tt.o, got, ok, tt.want, tt.ok)
		}
	}
	// Two lists made from one must not share what is behind it.
	cut, _ := e.TruncateFrom(30)
	a, _ := cut.Assign(7, 40)
	b, _ := cut.Assign(8, 50)
	if a[2] != (EpochEntry{7, 40}) || b[2] != (EpochEntry{8, 50}) || e[2] != (EpochEntry{5, 30}) {
		t.Errorf("got %v, %v, %v", a, b, e)
	}
}

func TestPartitionMetadata(t *testing.T) {
	const id = "4WdnnuLgQ7OG9Bd2zp8EWg"
	b := FormatPartitionMetadata(id)
	if want := "version: 0\ntopic_id: " + id; string(b) != want || len(b) != 43 {
		t.Errorf("got %q, want %q", b, want)
	}
	tests := []struct{ name, in, err string }{
		{"as written", string(b), ""},
		{"line end", string(b) + "\n", ""},
		{"more lines", string(b) + "\nmore\n", ""},
		{"Windows", "version: 0\r\ntopic_id: " + id + "\r\n", ""},
		{"later version", "version: 1\ntopic_id: " + id, ""},
		{"empty", "", "line 1"},
		{"one line", "version: 0\n", "line 2"},
		{"no blank", "version:0\ntopic_id: " + id, "line 1"},
		{"version", "version: x\ntopic_id: " + id, "line 1"},
		{"negative version", "version: -1\ntopic_id: " + id, "line 1"},
		{"other key", "version: 0\ntopic: " + id, "line 2"},
		{"short id", "version: 0\ntopic_id: abc", "line 2"},
		{"zero id", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "stands for no topic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParsePartitionMetadata([]byte(tt.in))
			checkErr(t, err, storage.ErrCorrupt, tt.err)
			if tt.err == "" && got != id {
				t.Errorf("got %q, want %q", got, id)
			}
		})
	}
}

func TestTopicIDs(t *testing.T) {
	tests := []struct {
		in string
		ok bool
	}{
		{"4WdnnuLgQ7OG9Bd2zp8EWg", true},
		{"-WdnnuLgQ7OG9Bd2zp8EWg", true},
		{"AAAAAAAAAAAAAAAAAAAAAA", false},
		{"AAAAAAAAAAAAAAAAAAAAAQ", true},
		{"AAAAAAAAAAAAAAAAAAAAAg", true},
		{"4WdnnuLgQ7OG9Bd2zp8EWh", false}, // bits that no id has
		{"4WdnnuLgQ7OG9Bd2zp8EWg==", false},
		{"4WdnnuLgQ7OG9Bd2zp8EW", false},
		{"4WdnnuLgQ7OG9Bd2zp8E\nWg", false},
		{"4WdnnuLgQ7OG9Bd2zp8E+g", false},
		{"", false},
	}
	for _, tt := range tests {
		if _, err := ParseTopicID(tt.in); (err == nil) != tt.ok || err != nil && !errors.Is(err, storage.ErrInvalidName) {
			t.Errorf("%q: got %v, want ok %t", tt.in, err, tt.ok)
		}
	}
	r := rand.NewChaCha8([32]byte{1})
	seen := map[string]bool{}
	for range 1000 {
		s, err := NewTopicID(r)
		if err != nil {
			t.Fatal(err)
		}
		id, err := ParseTopicID(s)
		if err != nil || strings.Contains(s, "-") || id[6]>>4 != 4 || id[8]>>6 != 2 || seen[s] {
			t.Fatalf("%q: %x, %v", s, id, err)
		}
		seen[s] = true
	}
	if _, err := NewTopicID(iotest.ErrReader(errors.New("empty"))); err == nil {
		t.Error("no random bytes: got no error")
	}
	if _, err := NewTopicID(ones{}); err == nil {
		t.Error("a source of ones: got no error")
	}
	s, err := NewDirID(r)
	if b, e := hex.DecodeString(s); err != nil || e != nil || len(b) != 16 || s != strings.ToLower(s) {
		t.Errorf("directory id: got %q, %v", s, err)
	}
}

// ones gives bytes that make ids with '-' only: 111110 in each place.
type ones struct{}

func (ones) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = []byte{0xfb, 0xef, 0xbe}[i%3]
	}
	return len(b), nil
}

func TestCleanMarker(t *testing.T) {
	if got, want := string(FormatCleanMarker(UnknownBrokerEpoch)), `{"version":0,"brokerEpoch":-1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, tt := range []struct {
		in   string
		want int64
	}{
		{`{"version":0,"brokerEpoch":9690}`, 9690},
		{`{"brokerEpoch":9690, "version":0, "more":[]}` + "\n", 9690},
		{`{"version":1,"brokerEpoch":9690}`, -1},
		{`{"version":0}`, -1},
		{`{"brokerEpoch":5}`, -1},
		{`{"version":0,"brokerEpoch":"5"}`, -1},
		{"", -1},
		{"\x00\x00", -1},
	} {
		if got := ParseCleanMarker([]byte(tt.in)); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.in, got, tt.want)
		}
	}
}

func TestSnapshot(t *testing.T) {
	real := "00015b5f13c40000000100000000000000000000000000010000000000000001000000000000019542872033ffffffffffffffffffffffff"
	tests := []struct {
		name, file string
		entries    []ProducerEntry
	}{
		{"empty", "000148674bc700000000", nil},
		{"one", real, []ProducerEntry{{0, 0, 1, 1, 0, 1740577906739, -1, -1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := hex.DecodeString(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeSnapshot(b)
			if err != nil || !slices.Equal(got, tt.entries) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.entries)
			}
			if got := EncodeSnapshot(tt.entries); !bytes.Equal(got, b) {
				t.Errorf("got %x, want %x", got, b)
			}
			for n := range len(b) {
				if _, err := DecodeSnapshot(b[:n]); !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("cut to %d: got %v", n, err)
				}
			}
			for i := range 8 * len(b) {
				c := bytes.Clone(b)
				c[i/8] ^= 1 << (i % 8)
				if _, err := DecodeSnapshot(c); !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("bit %d changed: got %v", i, err)
				}
			}
		})
	}
	if e := (ProducerEntry{TxnFirst: -1}); e.Open() {
		t.Error("no first offset: got an open transaction")
	}
	if e := (ProducerEntry{TxnFirst: 0}); !e.Open() {
		t.Error("first offset 0: got no open transaction")
	}
}

func TestProperties(t *testing.T) {
	tests := []struct {
		name, in string
		want     map[string]string
		err      string
	}{
		{"a broker's", "#\n#Sun Nov 29 20:00:00 UTC 2026\ncluster.id=abc\nnode.id=1\nversion=1\n", map[string]string{"cluster.id": "abc", "node.id": "1", "version": "1"}, ""},
		{"separators", "a=1\nb:2\nc 3\nd \t=\f 4\ne\nf==x\n=g\n", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "", "f": "=x", "": "g"}, ""},
		{"comments and blanks", "  # no\n ! no\n\n \t\n  a = b \n", map[string]string{"a": "b "}, ""},
		{"escapes", `a\ b\=\:c=\t\n\r\f\\\q\u00e9\uD83D\uDE00` + "\n", map[string]string{"a b=:c": "\t\n\r\f\\qé😀"}, ""},
		{"joined lines", "a = 1, \\\n   2, \\\r\n\t3\nb=\\\\\nc=d\\", map[string]string{"a": "1, 2, 3", "b": `\`, "c": "d"}, ""},
		{"joined with a comment sign", "a=1\\\n#2\n", map[string]string{"a": "1#2"}, ""},
		{"Latin-1", "a=\xe9\n", map[string]string{"a": "é"}, ""},
		{"last counts", "a=1\na=2\n", map[string]string{"a": "2"}, ""},
		{"empty", "", map[string]string{}, ""},
		{"half an escape", "x=1\na=\\u12\n", nil, "line 2"},
		{"bad escape", "a\\u12g4=\n", nil, "line 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseProperties([]byte(tt.in))
			checkErr(t, err, storage.ErrCorrupt, tt.err)
			if tt.err == "" && !equalMaps(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestMetaProperties(t *testing.T) {
	tests := []struct {
		name, in string
		want     MetaProperties
		err      string
	}{
		{"KRaft", "version=1\ncluster.id=c\nnode.id=7\ndirectory.id=d\nbroker.id=9\n", MetaProperties{1, "c", 7, "d"}, ""},
		{"ZooKeeper", "version=0\nbroker.id=3\ncluster.id=c\n", MetaProperties{0, "c", 3, ""}, ""},
		{"no version", "broker.id=3\n", MetaProperties{0, "", 3, ""}, ""},
		{"empty", "", MetaProperties{0, "", -1, ""}, ""},
		{"version", "version=2\n", MetaProperties{}, "version \"2\""},
		{"node", "version=1\nnode.id=x\n", MetaProperties{}, "node.id \"x\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseMetaProperties([]byte(tt.in))
			checkErr(t, err, storage.ErrCorrupt, tt.err)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
