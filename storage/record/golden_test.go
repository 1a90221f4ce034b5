package record

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

const (
	goldenCommit = `000000000000000700000042000000050259e99e410030000000000000018bcfe568000000018bcfe568
		0000000000000003e80003ffffffff000000012000000008000000010c00000000000900`
	goldenData = `00000000000000640000004f000000000242a475310000000000020000018bcfe568000000018bcfe56805
		ffffffffffffffffffffffffffff0000000310000000026b0276000c000a020100001a00050400010402680102690278`
	goldenEmpty = `00000000000000c80000003100000005026dd0b5d8001000000004ffffffffffffffff0000018bcfe568000000
		0000000003e800030000001100000000`
	goldenBroker = `00000000000000000000003c0000000002c48eee70000000000000000001987ea051e7000001987ea051e700000000
		00000000000000000000000000011400000001087465737400`
	goldenV1 = `00000000000000070000001839268c3301000000018bcfe56800000000016b0000000176`
	goldenV0 = `00000000000000070000000fd20cbff50000ffffffff0000000176`
)

var goldens = []struct {
	name string
	hex  string
	head Header // without Length, Magic and CRC
	recs []storage.Record
}{
	{
		name: "commit marker",
		hex:  goldenCommit,
		head: Header{BaseOffset: 7, LeaderEpoch: 5, Attributes: AttrControl | AttrTransactional, BaseTimestamp: 1700000000000, MaxTimestamp: 1700000000000,
			ProducerID: 1000, ProducerEpoch: 3, BaseSequence: -1, Count: 1},
		recs: []storage.Record{{Offset: 7, Timestamp: 1700000000000, Key: []byte{0, 0, 0, 1}, Value: []byte{0, 0, 0, 0, 0, 9}}},
	},
	{
		name: "data",
		hex:  goldenData,
		head: Header{BaseOffset: 100, LastOffsetDelta: 2, BaseTimestamp: 1700000000000, MaxTimestamp: 1700000000005, ProducerID: -1, ProducerEpoch: -1,
			BaseSequence: -1, Count: 3},
		recs: []storage.Record{
			{Offset: 100, Timestamp: 1700000000000, Key: []byte("k"), Value: []byte("v")},
			{Offset: 101, Timestamp: 1700000000005, Value: []byte{}},
			{Offset: 102, Timestamp: 1699999999997, Key: []byte{}, Headers: []storage.Header{{Key: []byte("h")}, {Key: []byte("i"), Value: []byte("x")}}},
		},
	},
	{
		name: "emptied by compaction",
		hex:  goldenEmpty,
		head: Header{BaseOffset: 200, LeaderEpoch: 5, Attributes: AttrTransactional, LastOffsetDelta: 4, BaseTimestamp: -1, MaxTimestamp: 1700000000000,
			ProducerID: 1000, ProducerEpoch: 3, BaseSequence: 17},
	},
	{
		name: "written by a broker",
		hex:  goldenBroker,
		head: Header{BaseTimestamp: 0x1987ea051e7, MaxTimestamp: 0x1987ea051e7, Count: 1},
		recs: []storage.Record{{Timestamp: 0x1987ea051e7, Value: []byte("test")}},
	},
}

func TestGolden(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			b := unhex(t, g.hex)
			var r Reader
			h, sums, err := r.Validate(b)
			if err != nil {
				t.Fatal(err)
			}
			want := g.head
			want.Length, want.Magic, want.CRC = int32(len(b)-12), 2, h.CRC
			if h != want {
				t.Errorf("header: got %+v, want %+v", h, want)
			}
			if want := sumsOf(g.recs); sums != want {
				t.Errorf("sums: got %+v, want %+v", sums, want)
			}
			sameRecords(t, readAllRecords(t, &r), g.recs)
			got, err := Encode([]byte("before"), g.head, g.recs, None)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, append([]byte("before"), b...)) {
				t.Errorf("encoded: got %x, want %x", got, b)
			}
		})
	}
}

func TestGoldenBuilder(t *testing.T) {
	recs := goldens[1].recs
	var b Builder
	b.Begin([]byte("before"), 100, 0)
	for i := range recs {
		want := b.SizeWith(&recs[i])
		b.Add(&recs[i])
		if got := b.Size(); got != want {
			t.Errorf("size after record %d: got %d, want %d", i, got, want)
		}
	}
	if got, want := b.Finish(), append([]byte("before"), unhex(t, goldenData)...); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	b.Begin([]byte("before"), 100, 0)
	if got := b.Finish(); string(got) != "before" {
		t.Errorf("batch without records: got %q", got)
	}
}

func TestGoldenCodecs(t *testing.T) {
	tests := []struct {
		name  string
		codec Codec
		hex   string
		exact bool // our writer gives the same bytes
	}{
		{"gzip", Gzip, "1f8b08000000000000ff4b4c4a0600c241243503000000", false},
		{"snappy", Snappy, "82534e4150505900 00000001 00000001 00000005 0308616263", true},
		{"snappy raw", Snappy, "0308616263", false},
		{"snappy little-endian versions", Snappy, "82534e4150505900 01000000 01000000 00000005 0308616263", false},
		{"lz4", LZ4, "04224d18604082 03000080 616263 00000000", true},
		{"lz4 with content checksum", LZ4, "04224d186440a7 03000080 616263 00000000 ff5385c3", false},
		{"zstd", Zstd, "28b52ffd0058 180000 616263 010000", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			got, err := decompress(tt.codec, []byte{}, b, 100)
			if err != nil || string(got) != "abc" {
				t.Errorf("decompress: got %q, %v, want abc", got, err)
			}
			if !tt.exact {
				return
			}
			if got, err := compress(tt.codec, nil, []byte("abc")); err != nil || !bytes.Equal(got, b) {
				t.Errorf("compress: got %x, %v, want %x", got, err, b)
			}
		})
	}
}
