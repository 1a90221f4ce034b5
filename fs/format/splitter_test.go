package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

const (
	testMax = 1 << 20
	testNow = 1788026072512
)

// show spells records so that null and empty differ.
func show(recs []storage.Record) string {
	var b bytes.Buffer
	bytes := func(x []byte) string {
		if x == nil {
			return "null"
		}
		return fmt.Sprintf("%q", x)
	}
	for i := range recs {
		fmt.Fprintf(&b, "%d %s=%s", recs[i].Timestamp, bytes(recs[i].Key), bytes(recs[i].Value))
		for _, h := range recs[i].Headers {
			fmt.Fprintf(&b, " %s:%s", bytes(h.Key), bytes(h.Value))
		}
		b.WriteString("; ")
	}
	return b.String()
}

// mustWrite sends requests and then the last close.
func mustWrite(tb testing.TB, s *Splitter, requests ...string) string {
	tb.Helper()
	var got string
	for _, p := range requests {
		recs, err := s.Split([]byte(p), testNow, nil)
		if err != nil {
			tb.Fatalf("%q: %v", p, err)
		}
		got += show(recs)
		s.Commit()
	}
	r, err := s.Final(testNow)
	if err != nil {
		tb.Fatalf("final: %v", err)
	}
	if r != nil {
		got += "final " + show([]storage.Record{*r})
	}
	s.Drop()
	return got
}

func TestSplit(t *testing.T) {
	const now = "1788026072512 "
	tests := []struct {
		name     string
		format   Format
		requests []string
		want     string
	}{
		{"lines", Lines, []string{"one\ntwo\n"}, now + `null="one"; ` + now + `null="two"; `},
		{"an empty line is an empty value", Lines, []string{"\n\na\n"}, now + `null=""; ` + now + `null=""; ` + now + `null="a"; `},
		{"cut anywhere", Lines, []string{"a", "bc", "d\ne", "f\n", "g\nh\ni"},
			now + `null="abcd"; ` + now + `null="ef"; ` + now + `null="g"; ` + now + `null="h"; final ` + now + `null="i"; `},
		{"the newline alone", Lines, []string{"foo", "\n", "\n"}, now + `null="foo"; ` + now + `null=""; `},
		{"an empty request", Lines, []string{"foo", "", "\n", ""}, now + `null="foo"; `},
		{"NUL and tab mean nothing in a line", Lines, []string{"a\x00\tb\n"}, now + `null="a\x00\tb"; `},
		{"nul", NUL, []string{"two\nlines\x00thr", "ee\x00\x00x"}, now + `null="two\nlines"; ` + now + `null="three"; ` + now + `null=""; final ` + now + `null="x"; `},
		{"kv", KV, []string{"k1\tv1\nnokey\nk2\tv\t2\n\tempty key\n\t\n\nk\t\n"},
			now + `"k1"="v1"; ` + now + `null="nokey"; ` + now + `"k2"="v\t2"; ` + now + `""="empty key"; ` + now + `""=""; ` + now + `null=""; ` + now + `"k"=""; `},
		{"kv cut at the tab", KV, []string{"k", "\t", "v"}, `final ` + now + `"k"="v"; `},
		{"json", JSON, []string{`{"key":"a","value":null}` + "\n", `{"value":"\u00e9","timestamp":5}`}, now + `"a"=null; final 5 null="é"; `},
		{"json cut", JSON, []string{`{"key":"\u00`, `e9","val`, `ue":"v","headers":[{"key":"h"},{"key":"h","value":""}]}` + "\n\n \t\r\n"}, now + `"é"="v" "h":null "h":""; `},
		{"json blank end", JSON, []string{"{}\n  "}, now + `null=null; `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustWrite(t, NewSplitter(tt.format, testMax), tt.requests...); got != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSplitRefused(t *testing.T) {
	s := NewSplitter(Lines, testMax)
	s.Abort()
	if s.Torn() {
		t.Error("torn without an unfinished record")
	}
	for range 2 { // the retry continues the record
		if _, err := s.Split([]byte("half"), 0, nil); err != nil {
			t.Fatal(err)
		}
		s.Abort()
		if s.Pending() || s.Torn() {
			t.Error("a refused first request left something")
		}
	}
	if _, err := s.Split([]byte("half"), 0, nil); err != nil {
		t.Fatal(err)
	}
	s.Commit()
	s.Commit() // once is enough
	for range 3 {
		recs, err := s.Split([]byte(" more\nnext\nrest"), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := show(recs), `0 null="half more"; 0 null="next"; `; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.Abort()
		if got := s.PendingBytes(); got != len("half") || !s.Torn() {
			t.Errorf("%d bytes unfinished, torn %v, want 4, true", got, s.Torn())
		}
	}
	if _, err := s.Split([]byte(" more\n"), 0, nil); err != nil {
		t.Fatal(err)
	}
	s.Commit()
	if s.Torn() || s.Pending() {
		t.Error("the retry did not end it")
	}
}

func TestSplitErrorChangesNothing(t *testing.T) {
	s := NewSplitter(JSON, testMax)
	if _, err := s.Split([]byte(`{"value":`), 0, nil); err != nil {
		t.Fatal(err)
	}
	s.Commit()
	before := []storage.Record{{Offset: 9}}
	recs, err := s.Split([]byte("\"a\"}\n{\n"), 0, before)
	if !errors.Is(err, storage.ErrInvalidRecord) || len(recs) != 1 || recs[0].Offset != 9 {
		t.Fatalf("got %v, %v", recs, err)
	}
	if !s.Torn() {
		t.Error("not torn")
	}
	if _, err := s.Final(0); !errors.Is(err, storage.ErrInvalidRecord) {
		t.Errorf("final: got %v", err)
	}
	s.Commit() // there is nothing to commit
	if got, want := mustWrite(t, s, "\"a\"}\n"), `1788026072512 null="a"; `; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSplitTooLarge(t *testing.T) {
	const limit = 1000
	fits := 0 // longest value that storage takes
	for ownBatch(int64(fits+1)) <= limit {
		fits++
	}
	tests := []struct {
		name   string
		format Format
		n      int
		large  bool
	}{
		{"line that fits", Lines, fits, false},
		{"line too large", Lines, fits + 1, true},
		{"nul too large", NUL, fits + 1, true},
		{"kv that may have a tab", KV, fits + 1, false},
		{"kv too large", KV, fits + 2, true},
		{"json line", JSON, 6*limit + jsonSlack, false},
		{"json line too large", JSON, 6*limit + jsonSlack + 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, cut := range []int{tt.n, 1, tt.n / 2} {
				s := NewSplitter(tt.format, limit)
				p := bytes.Repeat([]byte(" "), tt.n)
				_, err := s.Split(p[:cut], 0, nil)
				if err == nil && cut < tt.n {
					s.Commit()
					_, err = s.Split(p[cut:], 0, nil)
					s.Commit()
				}
				if got := errors.Is(err, storage.ErrTooLarge); got != tt.large || err != nil && !got {
					t.Errorf("cut at %d: got %v", cut, err)
				}
				if s.PendingBytes() > tt.n {
					t.Errorf("keeps %d bytes", s.PendingBytes())
				}
			}
		})
	}
	s := NewSplitter(JSON, limit)
	line := append(bytes.Repeat([]byte(" "), 6*limit+jsonSlack+1), '\n')
	if _, err := s.Split(line, 0, nil); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("a complete json line: got %v", err)
	}
}

func TestSplitWrongFormat(t *testing.T) {
	for f := Lines; f <= Whole; f++ {
		s := NewSplitter(f, testMax)
		_, err := s.Split(nil, 0, nil)
		if got, want := err == nil, f < Batch; got != want {
			t.Errorf("%v: Split: %v", f, err)
		}
		_, err = s.SplitBatches(nil)
		if got, want := err == nil, f == Batch; got != want {
			t.Errorf("%v: SplitBatches: %v", f, err)
		}
		if got, want := s.WriteAt(nil, 0) == nil, f == Whole; got != want {
			t.Errorf("%v: WriteAt: %v", f, got)
		}
		if got, want := s.Truncate(0) == nil, f == Whole; got != want {
			t.Errorf("%v: Truncate: %v", f, got)
		}
	}
}

// TestSplitModel checks that neither the cuts between requests nor refused requests change the records.
func TestSplitModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Format{Lines, NUL, KV, JSON}).Draw(t, "format")
		var stream []byte
		for _, r := range rapid.SliceOfN(anyRecord(), 0, 8).Draw(t, "records") {
			stream = f.Append(stream, &r)
		}
		stream = append(stream, rapid.SampledFrom([]string{"", "{}", " "}).Draw(t, "end")...)
		want := mustRecords(t, NewSplitter(f, testMax), stream)
		s := NewSplitter(f, testMax)
		var got string
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if rapid.Bool().Draw(t, "refuse") {
				if _, err := s.Split(bytes.Repeat([]byte("\n\x00{"), n), testNow, nil); err == nil {
					s.Abort()
				}
			}
			p := bytes.Clone(rest[:n])
			recs, err := s.Split(p, testNow, nil)
			if err != nil {
				t.Fatal(err)
			}
			got += show(recs)
			s.Commit()
			clear(p) // nothing may point into a request that is over
			rest = rest[n:]
		}
		r, err := s.Final(testNow)
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			got += show([]storage.Record{*r})
		}
		if got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	})
}

// mustRecords sends one request and then the last close.
func mustRecords(t rapid.TB, s *Splitter, stream []byte) string {
	t.Helper()
	recs, err := s.Split(stream, testNow, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := show(recs)
	s.Commit()
	r, err := s.Final(testNow)
	if err != nil {
		t.Fatal(err)
	}
	if r != nil {
		got += show([]storage.Record{*r})
	}
	return got
}

// FuzzSplit cuts any bytes at any place, in any format, and checks that this changes neither the records nor whether they are taken.
func FuzzSplit(f *testing.F) {
	f.Add(uint8(0), []byte("a\nb\n\nc"), uint16(2))
	f.Add(uint8(1), []byte("a\x00\n\x00"), uint16(1))
	f.Add(uint8(2), []byte("k\tv\nnokey\n\t\n"), uint16(1))
	f.Add(uint8(3), []byte(`{"key":"\u00e9","value_base64":"AAH+"}`+"\n{}"), uint16(10))
	f.Add(uint8(4), testBatch(30), uint16(11))
	f.Fuzz(func(t *testing.T, format uint8, stream []byte, cut uint16) {
		ft := Format(format % uint8(Whole))
		const limit = 300
		run := func(requests ...[]byte) (out string, err error) {
			s := NewSplitter(ft, limit)
			for _, p := range requests {
				if ft == Batch {
					batches, err := s.SplitBatches(p)
					if err != nil {
						return "", err
					}
					for _, b := range batches {
						out += fmt.Sprintf("%q; ", b)
					}
					s.CommitBatches(len(batches))
				} else {
					recs, err := s.Split(p, testNow, nil)
					if err != nil {
						return "", err
					}
					out += show(recs)
				}
				s.Commit()
				if s.PendingBytes() > 6*limit+jsonSlack {
					t.Errorf("keeps %d bytes", s.PendingBytes())
				}
			}
			if ft == Batch {
				_, err := s.FinalBatches()
				return out, err
			}
			r, err := s.Final(testNow)
			if err != nil {
				return "", err
			}
			if r != nil {
				out += show([]storage.Record{*r})
			}
			return out, nil
		}
		want, wantErr := run(stream)
		n := int(cut) % (len(stream) + 1)
		got, err := run(stream[:n], stream[n:])
		// A complete record that is too large is storage's to refuse; one that arrives in two requests is refused while it is unfinished.
		if errors.Is(err, storage.ErrTooLarge) != errors.Is(wantErr, storage.ErrTooLarge) && ft <= KV {
			return
		}
		if got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("cut at %d: got %s (%v), want %s (%v)", n, got, err, want, wantErr)
		}
	})
}

// testBatch returns something with a batch's length field and n bytes behind the header.
func testBatch(n int) []byte {
	b := bytes.Repeat([]byte{byte(n)}, batchPrefix+leastLength+n)
	binary.BigEndian.PutUint32(b[lengthOffset:], uint32(leastLength+n))
	return b
}
