package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

// anyBytes draws null, empty, text, text that needs escapes, and bytes that are no text.
func anyBytes() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.SampledFrom([][]byte{nil, {}, []byte("\xff"), []byte("\"\\"), []byte("\xed\xa0\x80"), []byte("é\u2028\U0010ffff\ufffd")}),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.SliceOfN(rapid.SampledFrom([]byte("abc \t\n\r\b\f\"\\/\x00\x1f\x7f\xc3\xa9")), 0, 40),
		rapid.SliceOfN(rapid.Byte(), 0, 40),
	)
}

func anyRecord() *rapid.Generator[storage.Record] {
	return rapid.Custom(func(t *rapid.T) storage.Record {
		r := storage.Record{
			Offset:    storage.Offset(rapid.Int64Min(0).Draw(t, "offset")),
			Timestamp: rapid.OneOf(rapid.Int64(), rapid.Just(storage.NoTimestamp)).Draw(t, "timestamp"),
			Key:       anyBytes().Draw(t, "key"),
			Value:     anyBytes().Draw(t, "value"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			h := storage.Header{Key: anyBytes().Draw(t, "header key"), Value: anyBytes().Draw(t, "header value")}
			if h.Key == nil {
				h.Key = []byte{}
			}
			r.Headers = append(r.Headers, h)
		}
		return r
	})
}

// TestSizes checks I1 for any record.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		for _, f := range []Format{Lines, NUL, KV, JSON} {
			if got, want := f.Measure().Of(&r), int64(len(f.Append(nil, &r))); got != want {
				t.Errorf("%v: size is %d, want %d", f, got, want)
			}
		}
	})
}

// TestJSONLossless checks I5, and that another reader of JSON sees the same.
func TestJSONLossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		line := AppendJSONWithPartition(nil, &r, 3)
		recs, err := NewSplitter(JSON, testMax).Split(line, 0, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got, want := show(recs), show([]storage.Record{r}); got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
		var other struct {
			Offset, Timestamp int64
			Key, Value        *string
			KeyB              []byte `json:"key_base64"`
			ValueB            []byte `json:"value_base64"`
		}
		if err := json.Unmarshal(line, &other); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if other.Offset != int64(r.Offset) || other.Timestamp != r.Timestamp {
			t.Errorf("%s: got %+v", line, other)
		}
		for _, x := range []struct {
			want, bytes []byte
			text        *string
		}{{r.Key, other.KeyB, other.Key}, {r.Value, other.ValueB, other.Value}} {
			switch {
			case x.want == nil:
				if x.bytes != nil || x.text != nil {
					t.Errorf("%s: null is not null", line)
				}
			case utf8.Valid(x.want):
				if x.text == nil || *x.text != string(x.want) {
					t.Errorf("%s: got %v, want %q", line, x.text, x.want)
				}
			case !bytes.Equal(x.bytes, x.want):
				t.Errorf("%s: got %q, want %q", line, x.bytes, x.want)
			}
		}
	})
}

func TestParseJSON(t *testing.T) {
	const now = "1788026072512 "
	tests := []struct{ name, line, want string }{
		{"nothing given", `{}`, now + "null=null; "},
		{"white space", " \t{ \"key\" : \"k\" ,\r\"value\":\t\"v\" , \"headers\" : [ { \"key\" : \"h\" } , {\"value\":null,\"key\":\"i\"} ] } \r", now + `"k"="v" "h":null "i":null; `},
		{"ignored fields", `{"offset":-1.5e+3,"partition":0,"value":"v"}`, now + `null="v"; `},
		{"timestamp", `{"timestamp":1588000000000}`, `1588000000000 null=null; `},
		{"no timestamp", `{"timestamp":-1}`, `-1 null=null; `},
		{"timestamp null", `{"timestamp":null}`, now + `null=null; `},
		{"least timestamp", `{"timestamp":-9223372036854775808}`, `-9223372036854775808 null=null; `},
		{"empty is not null", `{"key":"","value":"","headers":[]}`, now + `""=""; `},
		{"headers null", `{"headers":null}`, now + `null=null; `},
		{"escapes", `{"value":"\"\\\/\b\f\n\r\t\u0000\u00E9\ud83d\ude00é"}`, now + `null="\"\\/\b\f\n\r\t\x00é😀é"; `},
		{"escapes in a name", `{"\u006bey":"k"}`, now + `"k"=null; `},
		{"escapes in two strings", `{"key":"a\nb","value":"c\nd","headers":[{"key":"e\nf","value":"g\nh"}]}`, now + `"a\nb"="c\nd" "e\nf":"g\nh"; `},
		{"bytes that need no escape", "{\"value\":\"\x7f<>&\u2028\"}", now + `null="\x7f<>&\u2028"; `},
		{"base64", `{"key_base64":"/w==","value_base64":"AAH+"}`, now + `"\xff"="\x00\x01\xfe"; `},
		{"base64 of text, empty, null", `{"key_base64":"aGk=","value_base64":"","headers":[{"key_base64":"","value_base64":null}]}`, now + `"hi"="" "":null; `},
		{"escaped base64", `{"value_base64":"\u0041AH+"}`, now + `null="\x00\x01\xfe"; `},
		{"a replacement character is text", `{"value":"\ufffd"}`, now + `null="�"; `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recs, err := NewSplitter(JSON, testMax).Split([]byte(tt.line+"\n"), testNow, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(recs); got != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseJSONRefuses(t *testing.T) {
	tests := []struct{ line, reason string }{
		{`{`, "string"},
		{`[]`, "object"},
		{`null`, "object"},
		{`"a"`, "object"},
		{`{"value":1}`, "string"},
		{`{"value":true}`, "string"},
		{`{"value":{"a":1}}`, "string"},
		{`{"value":nul}`, "string"},
		{`{"value":nulls}`, "want , or }"},
		{`{"value"}`, "want :"},
		{`{"value":"a",}`, "string"},
		{`{"value":"a"`, "want , or }"},
		{`{"value":"a"}}`, "more bytes"},
		{`{"value":"a"}{"value":"b"}`, "more bytes"},
		{`{"value":"a"} x`, "more bytes"},
		{`{"value":"a","value_base64":"YQ=="}`, "twice"},
		{`{"value":null,"value_base64":null}`, "twice"},
		{`{"value":"a","value":"a"}`, "twice"},
		{`{"key":"a","\u006bey":"a"}`, "twice"},
		{`{"headers":[],"headers":[]}`, "twice"},
		{`{"offset":1,"offset":1}`, "twice"},
		{`{"timestamp":1,"timestamp":1}`, "twice"},
		{`{"partition":1,"partition":1}`, "twice"},
		{`{"Value":"a"}`, `unknown field "Value"`},
		{`{"valeu":"a"}`, `unknown field "valeu"`},
		{`{"":"a"}`, `unknown field ""`},
		{`{"headers":{}}`, "array"},
		{`{"headers":["a"]}`, "object"},
		{`{"headers":[{}]}`, "needs a key"},
		{`{"headers":[{"key":null}]}`, "needs a key"},
		{`{"headers":[{"value":"a"}]}`, "needs a key"},
		{`{"headers":[{"key":"a","x":1}]}`, "unknown field"},
		{`{"headers":[{"key":"a","key_base64":"YQ=="}]}`, "twice"},
		{`{"headers":[{"key":"a"},]}`, "object"},
		{`{"headers":[{"key":"a"}`, "want , or ]"},
		{`{"timestamp":1.5}`, "milliseconds"},
		{`{"timestamp":1e3}`, "milliseconds"},
		{`{"timestamp":9223372036854775808}`, "milliseconds"},
		{`{"timestamp":"2026-08-30"}`, "number"},
		{`{"timestamp":-}`, "number"},
		{`{"timestamp":01}`, "want , or }"},
		{`{"timestamp":+1}`, "number"},
		{`{"offset":null}`, "number"},
		{`{"offset":1.}`, "digits"},
		{`{"offset":1e}`, "digits"},
		{`{"offset":.5}`, "number"},
		{`{"offset":"1"}`, "number"},
		{`{"value_base64":"*"}`, "base64"},
		{`{"value_base64":"YQ"}`, "base64"},
		{`{"value_base64":"YR=="}`, "base64"},
		{`{"value_base64":"YQ==\n"}`, "base64"},
		{`{"value_base64":"_w=="}`, "base64"},
		{`{"value":"a`, "ends inside"},
		{`{"value":"a\`, "ends inside"},
		{`{"value":"a\x"}`, "escape"},
		{`{"value":"a\u12"}`, "hexadecimal"},
		{`{"value":"a\u12g4"}`, "hexadecimal"},
		{`{"value":"\ud800"}`, "surrogate"},
		{`{"value":"\ud800\u0041"}`, "surrogate"},
		{`{"value":"\udc00\ud800"}`, "surrogate"},
		{`{"value":"\ud83d\ude0"}`, "surrogate"},
		{"{\"value\":\"a\tb\"}", "control character"},
		{"{\"value\":\"a\x00b\"}", "control character"},
		{"{\"value\":\"\xff\"}", "UTF-8"},
		{"{\"value\":\"\\n\xc3\"}", "UTF-8"},
		{"{\"value\":\"\xc3\\u00a9\"}", "UTF-8"},
		{"{\"value\":\"\xed\xa0\x80\"}", "UTF-8"},
		{"\ufeff{}", "object"},
		{strings.Repeat(`{"headers":[`, 10000), "unknown field"},
		{strings.Repeat(`[`, 10000), "object"},
	}
	for _, tt := range tests {
		name := tt.line
		if len(name) > 40 {
			name = name[:40]
		}
		t.Run(name, func(t *testing.T) {
			s := NewSplitter(JSON, testMax)
			recs, err := s.Split([]byte(`{"value":"fine"}`+"\n"+tt.line+"\n"), testNow, nil)
			if !errors.Is(err, storage.ErrInvalidRecord) || len(recs) != 0 {
				t.Fatalf("got %s, %v", show(recs), err)
			}
			if !strings.Contains(err.Error(), tt.reason) || !strings.Contains(err.Error(), "byte ") {
				t.Errorf("the reason is %q, want one with %q and a place", err, tt.reason)
			}
		})
	}
}

// TestPlainLen compares the eight bytes at a time with one at a time.
func TestPlainLen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.ByteRange(0x1e, 0x24), rapid.ByteRange('[', ']'), rapid.Just(byte('a'))), 0, 40).Draw(t, "bytes")
		want := 0
		for want < len(b) && b[want] >= 0x20 && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := plainLen(b); got != want {
			t.Errorf("%q: got %d, want %d", b, got, want)
		}
	})
}

// FuzzJSON checks that what is taken is JSON to another reader as well, and comes back the same through Append.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"offset":42,"timestamp":1788026072512,"key":"k","value":"v","headers":[{"key":"trace","value":"abc"}]}`))
	f.Add([]byte(`{"key_base64":"/w==","value_base64":"AAH+","headers":[{"key":"h","value":null},{"key":"h"}]}`))
	f.Add([]byte(`{"value":"\ud83d\ude00\u0000\/\"é","timestamp":null,"partition":-0.5e-7}`))
	f.Add([]byte(`{"value":"\ud83d"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		recs, err := NewSplitter(JSON, testMax).Split(append(bytes.Clone(line), '\n'), testNow, nil)
		if err != nil {
			if !errors.Is(err, storage.ErrInvalidRecord) && !errors.Is(err, storage.ErrTooLarge) {
				t.Errorf("%q: %v", line, err)
			}
			return
		}
		if len(recs) == 0 {
			if !blank(line) {
				t.Errorf("%q: no record", line)
			}
			return
		}
		if !json.Valid(line) {
			t.Errorf("%q was taken and is no JSON", line)
		}
		again := AppendJSON(nil, &recs[0])
		if SizeJSON(&recs[0]) != int64(len(again)) {
			t.Errorf("%q: size is %d, want %d", again, SizeJSON(&recs[0]), len(again))
		}
		back, err := NewSplitter(JSON, testMax).Split(again, 0, nil)
		if err != nil || show(back) != show(recs) {
			t.Errorf("%q: got %s (%v), want %s", again, show(back), err, show(recs))
		}
	})
}

// FuzzKV checks that a line of key and value comes back as it was.
func FuzzKV(f *testing.F) {
	f.Add([]byte("k\tv"))
	f.Add([]byte("nokey"))
	f.Add([]byte("\t\t"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		line = append(bytes.Clone(line), '\n')
		recs, err := NewSplitter(KV, testMax).Split(line, 0, nil)
		if err != nil || len(recs) != 1 {
			t.Fatalf("%q: %d records, %v", line, len(recs), err)
		}
		want := line
		if recs[0].Key == nil { // the TAB is always there on reading
			want = append([]byte("\t"), line...)
		}
		if got := KV.Append(nil, &recs[0]); !bytes.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
