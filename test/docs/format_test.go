// Package docs tests that the documentation is true.
package docs

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

var update = flag.Bool("update", false, "rewrite the hex blocks of docs/format.md")

// batchExample is the batch that docs/format.md describes in words.
func batchExample() []byte {
	var b record.Builder
	b.Begin(nil, 5, 0)
	b.Add(&storage.Record{Timestamp: 1700000000000, Key: []byte("k"), Value: []byte("v")})
	b.Add(&storage.Record{Timestamp: 1700000000001, Value: []byte("ww")})
	return b.Finish()
}

func examples(tb testing.TB) map[string][]byte {
	tb.Helper()
	batch := batchExample()
	h, err := record.ParseHeader(batch)
	if err != nil {
		tb.Fatal(err)
	}
	var offsets, times []byte
	for i, e := range []index.OffsetEntry{{Offset: 255, Pos: 16377}, {Offset: 333, Pos: 32754}} {
		if offsets, err = index.AppendOffsetEntry(offsets, 100, e); err != nil {
			tb.Fatal(err)
		}
		if times, err = index.AppendTimeEntry(times, 100, index.TimeEntry{Timestamp: 1700000000000 + int64(i)*4000, Offset: e.Offset}); err != nil {
			tb.Fatal(err)
		}
	}
	var b index.SizeBuilder
	sums := index.Sums{Records: 2, KeyBytes: 1, ValueBytes: 3}
	b.Add(5, 0, sums)
	sizes := index.EncodeSizes(index.SizeHeader{Base: 5, NextOffset: 7, LogSize: h.Size(), FirstCRC: h.CRC, LastCRC: h.CRC, Total: sums, MaxTimestamp: h.MaxTimestamp}, b.Entries())
	return map[string][]byte{"batch": batch, "offsets base=100": offsets, "times base=100": times, "sizes base=5": sizes}
}

var block = regexp.MustCompile("(?s)```hex ([^\n]*)\n(.*?)```")

// The hex blocks of the page are what the code writes, and the code reads them.
func TestHexBlocksAreTrue(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "format.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := examples(t)
	if *update {
		page = block.ReplaceAllFunc(page, func(b []byte) []byte {
			name := string(block.FindSubmatch(b)[1])
			return []byte(fmt.Sprintf("```hex %s\n%s```", name, lines(want[name])))
		})
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found := block.FindAllSubmatch(page, -1)
	if len(found) != len(want) {
		t.Fatalf("%d hex blocks, want %d", len(found), len(want))
	}
	for _, m := range found {
		got, err := hex.DecodeString(strings.Join(strings.Fields(string(m[2])), ""))
		if err != nil || !bytes.Equal(got, want[string(m[1])]) {
			t.Errorf("block %q: %x (%v), want %x", m[1], got, err, want[string(m[1])])
		}
	}
}

func lines(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(32, len(b))
		fmt.Fprintf(&s, "%x\n", b[:n])
		b = b[n:]
	}
	return s.String()
}

// Links between the pages lead somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(b, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), string(m[1]))); err != nil {
				t.Errorf("%s: link to %s leads nowhere", name, m[1])
			}
		}
	}
}
