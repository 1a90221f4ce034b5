package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/logmount/logmount/storage/vfs"
)

func TestPrinter(t *testing.T) {
	fill := func(p *printer) {
		p.begin(kindNote, "note: ")
		p.num("n", -1)
		p.optional("none", 5, false)
		p.optional("some", 5, true)
		p.flag("yes", true)
		p.only("quiet", "x")
		p.labeled("maxTimestamp", "CreateTime", 7)
		p.word("word", "two words")
		p.bytes("key", "", nil, false)
		p.bytes("value", "payload", []byte{0xff}, true)
		p.raw("raw", "", []byte("{}"))
		p.text("reason", "a \"b\"\n")
		p.end()
	}
	for _, tt := range []struct {
		json bool
		want string
	}{
		{false, `note: n: -1 none: none some: 5 yes: true CreateTime: 7 word: "two words" payload: "\xff" raw: {} reason: "a \"b\"\n"` + "\n"},
		{true, `{"kind":"note","n":-1,"none":null,"some":5,"yes":true,"quiet":"x","maxTimestamp":7,"word":"two words","key":null,"value_base64":"/w==","raw":{},"reason":"a \"b\"\n"}` + "\n"},
	} {
		var out bytes.Buffer
		p := newPrinter(&out, tt.json)
		fill(p)
		if err := p.flush(); err != nil || out.String() != tt.want {
			t.Errorf("got  %s, %v\nwant %s", out.String(), err, tt.want)
		}
	}
}

func TestPrinterText(t *testing.T) {
	for _, tt := range []struct{ in, word, text string }{
		{"plain", "plain", "plain"}, {"two words", `"two words"`, "two words"}, {"", `""`, `""`}, {`"quoted"`, `"\"quoted\""`, `"\"quoted\""`},
		{" x", `" x"`, `" x"`}, {"x ", `"x "`, `"x "`}, {"\x1b[31m", `"\x1b[31m"`, `"\x1b[31m"`}, {"é世界", "é世界", "é世界"}, {"\u202ex", `"\u202ex"`, `"\u202ex"`}, {`{"a": 1}`, `"{\"a\": 1}"`, `{"a": 1}`},
	} {
		if got := string(appendText(nil, tt.in, true)); got != tt.word {
			t.Errorf("%q as a word: got %s, want %s", tt.in, got, tt.word)
		}
		if got := string(appendText(nil, tt.in, false)); got != tt.text {
			t.Errorf("%q as text: got %s, want %s", tt.in, got, tt.text)
		}
	}
}

// fullDisk takes no bytes.
type fullDisk struct{}

var errFull = errors.New("full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestDumpToAFullDisk(t *testing.T) {
	files, _ := sampleFiles(t)
	p := newPrinter(fullDisk{}, false)
	p.begin(kindNote, "")
	p.end()
	if err := p.flush(); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	dir := writeFiles(t, files)
	if _, err := Dump(t.Context(), vfs.OS(), fullDisk{}, []string{dir}, withRecords()); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

func FuzzJSONString(f *testing.F) {
	f.Add("a\"\\\n\t\x00é\xff<>&\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendJSONString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && got != s {
			t.Fatalf("got %q, want %q", got, s)
		}
	})
}
