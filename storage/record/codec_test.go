package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

func TestRoundTrip(t *testing.T) {
	big := make([]byte, 300_000)
	rng := rand.NewChaCha8([32]byte{})
	rng.Read(big)
	sets := []struct {
		name string
		recs []storage.Record
	}{
		{"nulls", []storage.Record{{Offset: 3, Timestamp: -1}}},
		{"empties", []storage.Record{{Offset: 3, Key: []byte{}, Value: []byte{}, Headers: []storage.Header{{Key: []byte{}, Value: []byte{}}}}}},
		{"gaps and earlier times", []storage.Record{
			{Offset: 10, Timestamp: 1000, Key: []byte("a")}, {Offset: 12, Timestamp: 5}, {Offset: 1 << 20, Timestamp: -1, Value: []byte("b")}}},
		{"extreme times", []storage.Record{{Timestamp: math.MinInt64}, {Offset: 1, Timestamp: math.MaxInt64}, {Offset: 2}}},
		{"extreme offsets", []storage.Record{{Offset: math.MaxInt64 - 1 - math.MaxInt32}, {Offset: math.MaxInt64 - 1}}},
		{"incompressible", []storage.Record{{Value: big}, {Offset: 1, Key: big[:70_000], Value: big[:1]}}},
		{"compressible", []storage.Record{{Value: make([]byte, 5<<20)}, {Offset: 1, Value: bytes.Repeat([]byte("abc\n"), 100_000)}}},
		{"headers", []storage.Record{{Headers: []storage.Header{{Key: []byte("k"), Value: []byte("v")}, {Key: []byte("k")}, {Key: []byte("k"), Value: []byte("w")}}}}},
		{"none", nil},
	}
	var r Reader // one for all: what it keeps from one batch must not show in the next
	for _, codec := range codecs {
		for _, set := range sets {
			t.Run(fmt.Sprintf("%v/%s", codec, set.name), func(t *testing.T) {
				h := NewHeader(set.recs, 4)
				b, err := Encode(nil, h, set.recs, codec)
				if err != nil {
					t.Fatal(err)
				}
				got, sums, err := r.Validate(b)
				if err != nil {
					t.Fatal(err)
				}
				want := codec
				if len(set.recs) == 0 {
					want = None
				}
				if got.Attributes.Codec() != want || got.MaxTimestamp != h.MaxTimestamp || got.LeaderEpoch != 4 {
					t.Errorf("header: got %+v", got)
				}
				if want := sumsOf(set.recs); sums != want {
					t.Errorf("sums: got %+v, want %+v", sums, want)
				}
				sameRecords(t, readAllRecords(t, &r), set.recs)
			})
		}
	}
}

// drawRecords draws records with ascending offsets.
func drawRecords(t *rapid.T) []storage.Record {
	bytesOrNil := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 40))
	n := rapid.IntRange(1, 20).Draw(t, "n")
	recs := make([]storage.Record, n)
	o := storage.Offset(rapid.Int64Range(0, 1<<40).Draw(t, "base"))
	for i := range recs {
		recs[i] = storage.Record{Offset: o, Timestamp: rapid.Int64().Draw(t, "timestamp"), Key: bytesOrNil.Draw(t, "key"), Value: bytesOrNil.Draw(t, "value")}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			recs[i].Headers = append(recs[i].Headers, storage.Header{Key: rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "header"), Value: bytesOrNil.Draw(t, "value")})
		}
		o += storage.Offset(rapid.Int64Range(1, 5).Draw(t, "gap"))
	}
	return recs
}

func TestRoundTripRandom(t *testing.T) {
	var r Reader
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRecords(t)
		codec := rapid.SampledFrom(codecs).Draw(t, "codec")
		b, err := Encode(nil, NewHeader(recs, -1), recs, codec)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Validate(b); err != nil {
			t.Fatal(err)
		}
		for i := range recs {
			var rec storage.Record
			if ok, err := r.Next(&rec); !ok || err != nil || !sameRecord(&rec, &recs[i]) {
				t.Fatalf("record %d: got %+v, %v, %v, want %+v", i, rec, ok, err, recs[i])
			}
		}
	})
}

// TestBuilderEqualsEncode also holds SizeOf, Size and SizeWith to what is written.
func TestBuilderEqualsEncode(t *testing.T) {
	var b Builder
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRecords(t)
		for i := range recs {
			recs[i].Offset = recs[0].Offset + storage.Offset(i)
		}
		want, err := Encode([]byte("x"), NewHeader(recs, 3), recs, None)
		if err != nil {
			t.Fatal(err)
		}
		b.Begin([]byte("x"), recs[0].Offset, 3)
		for i := range recs {
			size := b.SizeWith(&recs[i])
			b.Add(&recs[i])
			if got := b.Size(); got != size {
				t.Fatalf("size: got %d, want %d", got, size)
			}
			if got, want := SizeOf(&recs[i]), size; i == 0 && got != want {
				t.Fatalf("SizeOf: got %d, want %d", got, want)
			}
		}
		h := b.Header()
		got := b.Finish()
		if !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
		parsed, err := ParseHeader(got[1:])
		if err != nil {
			t.Fatal(err)
		}
		if parsed.CRC = 0; h != parsed {
			t.Fatalf("header: got %+v, want %+v", h, parsed)
		}
	})
}

func TestTimestamps(t *testing.T) {
	recs := []storage.Record{{Timestamp: 50}, {Offset: 1, Timestamp: 40}, {Offset: 2, Timestamp: 60}}
	tests := []struct {
		name string
		head Header
		want [3]int64
	}{
		{"create time", Header{LastOffsetDelta: 2, BaseTimestamp: 50, MaxTimestamp: 60}, [3]int64{50, 40, 60}},
		{"log append time", Header{LastOffsetDelta: 2, BaseTimestamp: 50, MaxTimestamp: 99, Attributes: AttrLogAppendTime}, [3]int64{99, 99, 99}},
		{"delete horizon", Header{LastOffsetDelta: 2, BaseTimestamp: 7000, MaxTimestamp: 60, Attributes: AttrDeleteHorizon}, [3]int64{50, 40, 60}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Encode(nil, tt.head, recs, None)
			if err != nil {
				t.Fatal(err)
			}
			var r Reader
			if err := r.Reset(b); err != nil {
				t.Fatal(err)
			}
			for i, rec := range readAllRecords(t, &r) {
				if rec.Timestamp != tt.want[i] {
					t.Errorf("record %d: got %d, want %d", i, rec.Timestamp, tt.want[i])
				}
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	tests := []struct {
		name  string
		head  Header
		recs  []storage.Record
		codec Codec
		err   error
	}{
		{"codec", Header{}, nil, 5, storage.ErrUnsupported},
		{"below base", Header{BaseOffset: 5}, []storage.Record{{Offset: 4}}, None, ErrMalformed},
		{"above last", Header{LastOffsetDelta: 1}, []storage.Record{{Offset: 2}}, None, ErrMalformed},
		{"not ascending", Header{LastOffsetDelta: 1}, []storage.Record{{}, {}}, None, ErrMalformed},
		{"negative base", Header{BaseOffset: -1}, nil, None, ErrMalformed},
		{"negative delta", Header{LastOffsetDelta: -1}, nil, None, ErrMalformed},
		{"overflow", Header{BaseOffset: math.MaxInt64}, nil, None, ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Encode([]byte("x"), tt.head, tt.recs, tt.codec)
			if !errors.Is(err, tt.err) || string(got) != "x" {
				t.Errorf("got %q, %v, want x, %v", got, err, tt.err)
			}
		})
	}
}

func TestRebase(t *testing.T) {
	rec := []storage.Record{{Offset: 5, Value: []byte("v")}, {Offset: 7, Value: []byte("w")}}
	head := Header{BaseOffset: 5, LastOffsetDelta: 3, LeaderEpoch: 1, ProducerID: 9, ProducerEpoch: 2, BaseSequence: 4, Attributes: AttrTransactional}
	for _, clear := range []bool{false, true} {
		b, err := Encode(nil, head, rec, LZ4)
		if err != nil {
			t.Fatal(err)
		}
		Rebase(b, 100, 8, clear)
		var r Reader
		got, _, err := r.Validate(b)
		if err != nil {
			t.Fatal(err)
		}
		want := head
		want.BaseOffset, want.LeaderEpoch, want.Count, want.Magic, want.Length, want.CRC = 100, 8, 2, 2, got.Length, got.CRC
		want.Attributes = want.Attributes.WithCodec(LZ4)
		if clear {
			want.ProducerID, want.ProducerEpoch, want.BaseSequence = -1, -1, -1
			want.Attributes &^= AttrTransactional
		}
		if got != want {
			t.Errorf("clear %v: got %+v, want %+v", clear, got, want)
		}
		sameRecords(t, readAllRecords(t, &r), []storage.Record{{Offset: 100, Value: []byte("v")}, {Offset: 102, Value: []byte("w")}})
	}
}

func TestParseControl(t *testing.T) {
	tests := []struct {
		name       string
		key, value string
		want       ControlRecord
		text       string
		err        error
	}{
		{"commit", "00000001", "000000000009", ControlRecord{Commit, 0, 9}, "COMMIT", nil},
		{"abort", "00000000", "0000ffffffff", ControlRecord{Abort, 0, -1}, "ABORT", nil},
		{"later versions", "00050001aa", "0005000000090000", ControlRecord{Commit, 5, 9}, "COMMIT", nil},
		{"leader change", "00000002", "", ControlRecord{Type: LeaderChange}, "LEADER_CHANGE", nil},
		{"voters", "00000006", "", ControlRecord{Type: KRaftVoters}, "KRAFT_VOTERS", nil},
		{"unknown", "00000063", "", ControlRecord{Type: 99}, "CONTROL_99", nil},
		{"negative", "0000ffff", "", ControlRecord{Type: -1}, "CONTROL_-1", nil},
		{"short key", "000000", "", ControlRecord{}, "", ErrMalformed},
		{"negative key version", "ffff0001", "000000000009", ControlRecord{}, "", ErrMalformed},
		{"short value", "00000001", "0000000000", ControlRecord{}, "", ErrMalformed},
		{"negative value version", "00000001", "ffff00000009", ControlRecord{}, "", ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseControl(&storage.Record{Key: unhex(t, tt.key), Value: unhex(t, tt.value)})
			if got != tt.want || !errors.Is(err, tt.err) || err == nil && got.Type.String() != tt.text {
				t.Errorf("got %+v (%v), %v, want %+v (%s), %v", got, got.Type, err, tt.want, tt.text, tt.err)
			}
		})
	}
}
