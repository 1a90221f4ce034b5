package format

import (
	"testing"

	"github.com/logmount/logmount/storage"
)

func TestParse(t *testing.T) {
	for f := Lines; f <= Whole; f++ {
		if got, ok := Parse(f.Suffix()); !ok || got != f {
			t.Errorf("Parse(%q) = %v, %v, want %v", f.Suffix(), got, ok, f)
		}
		if got, want := f.Readable(), f != Whole; got != want {
			t.Errorf("%v.Readable() = %v, want %v", f, got, want)
		}
		if got, want := f.Measure() != nil, f.Readable(); got != want {
			t.Errorf("%v has a measure: %v, want %v", f, got, want)
		}
		if first, second := f.Measure(), f.Measure(); first != second {
			t.Errorf("%v: two pointers for one measure", f)
		}
	}
	for _, s := range []string{"lines", "JSON", "jsonl", "whole "} {
		if f, ok := Parse(s); ok {
			t.Errorf("Parse(%q) = %v, want none", s, f)
		}
	}
}

func TestAppend(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	tests := []struct {
		name   string
		format Format
		record storage.Record
		want   string
	}{
		{"line", Lines, storage.Record{Key: b("k"), Value: b("v")}, "v\n"},
		{"line of null", Lines, storage.Record{Key: b("k")}, "\n"},
		{"nul", NUL, storage.Record{Value: b("a\nb")}, "a\nb\x00"},
		{"kv", KV, storage.Record{Key: b("k"), Value: b("v\tw")}, "k\tv\tw\n"},
		{"kv of null", KV, storage.Record{}, "\t\n"},
		{"json", JSON, storage.Record{Offset: 42, Timestamp: 1788026072512, Key: b("k"), Value: b("v"), Headers: []storage.Header{{Key: b("trace"), Value: b("abc")}}},
			`{"offset":42,"timestamp":1788026072512,"key":"k","value":"v","headers":[{"key":"trace","value":"abc"}]}` + "\n"},
		{"json of null", JSON, storage.Record{Timestamp: -1}, `{"offset":0,"timestamp":-1,"key":null,"value":null}` + "\n"},
		{"json of empty", JSON, storage.Record{Key: b(""), Value: b("")}, `{"offset":0,"timestamp":0,"key":"","value":""}` + "\n"},
		{"json escapes what it must", JSON, storage.Record{Value: b("\"\\/\b\f\n\r\t\x00\x1f\x7f<>&\u2028é\U0001F600")},
			`{"offset":0,"timestamp":0,"key":null,"value":"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f<>&\u2028é\U0001F600" + `"}` + "\n"},
		{"json of bytes", JSON, storage.Record{Key: b("\xff"), Value: b("\x00\x01\xfe"), Headers: []storage.Header{{Key: b("\xff"), Value: b("\xff")}, {Key: b("h")}, {Key: b("h")}}},
			`{"offset":0,"timestamp":0,"key_base64":"/w==","value_base64":"AAH+","headers":[{"key_base64":"/w==","value_base64":"/w=="},{"key":"h","value":null},{"key":"h","value":null}]}` + "\n"},
		{"json of an encoded surrogate", JSON, storage.Record{Value: b("\xed\xa0\x80")}, `{"offset":0,"timestamp":0,"key":null,"value_base64":"7aCA"}` + "\n"},
		{"json header without a key", JSON, storage.Record{Headers: []storage.Header{{}}}, `{"offset":0,"timestamp":0,"key":null,"value":null,"headers":[{"key":"","value":null}]}` + "\n"},
		{"batch is no record", Batch, storage.Record{Value: b("v")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(tt.format.Append([]byte("<"), &tt.record))
			if got != "<"+tt.want {
				t.Errorf("got  %q\nwant %q", got, "<"+tt.want)
			}
			if m := tt.format.Measure(); !m.Batches && m.Of(&tt.record) != int64(len(tt.want)) {
				t.Errorf("size is %d, want %d", m.Of(&tt.record), len(tt.want))
			}
		})
	}
	r := storage.Record{Offset: 7}
	if got, want := string(AppendJSONWithPartition(nil, &r, 3)), `{"partition":3,"offset":7,"timestamp":0,"key":null,"value":null}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
