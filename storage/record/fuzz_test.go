package record

import (
	"bytes"
	"errors"
	"testing"

	"github.com/logmount/logmount/storage"
)

func FuzzParseFrame(f *testing.F) {
	for _, s := range []string{goldenData, goldenCommit, goldenV1, goldenV0} {
		f.Add(unhex(f, s))
	}
	f.Add(make([]byte, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := ParseFrame(b)
		if err != nil {
			if fr != (Frame{}) || !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("got %+v, %v", fr, err)
			}
			return
		}
		if fr.Size < 26 || fr.Offset < 0 {
			t.Errorf("got %+v", fr)
		}
		h, err := ParseHeader(b)
		if err == nil && (h.Size() != fr.Size || h.BaseOffset != fr.Offset || h.LastOffset() < h.BaseOffset || h.NextOffset() <= h.LastOffset()) {
			t.Errorf("got %+v, frame %+v", h, fr)
		}
		if err != nil && !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzReader decodes anything: it must not panic nor take more memory than its limit allows, and what it decodes must survive being encoded.
func FuzzReader(f *testing.F) {
	for _, s := range []string{goldenData, goldenCommit, goldenEmpty, goldenBroker} {
		f.Add(unhex(f, s))
	}
	for _, codec := range codecs {
		f.Add(damageBatch(f, codec))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= HeaderSize {
			// Let the fuzzer get past length and version.
			b = bytes.Clone(b)
			b[atLength], b[atLength+1], b[atLength+2], b[atLength+3] = 0, byte((len(b)-12)>>16), byte((len(b)-12)>>8), byte(len(b)-12)
			b[atMagic] = magic
		}
		const limit = 1 << 20
		r := Reader{Limit: limit}
		err := r.Reset(b)
		if cap(r.scratch) > limit {
			t.Fatalf("holds %d bytes with a limit of %d", cap(r.scratch), limit)
		}
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrUnsupported) {
				t.Fatalf("got %v", err)
			}
			return
		}
		sums, sumErr := r.Sums()
		h := *r.Header()
		var recs []storage.Record
		for {
			var rec storage.Record
			ok, err := r.Next(&rec)
			if (err != nil) && (sumErr == nil) {
				t.Fatalf("Next: %v, Sums: no error", err)
			}
			if err != nil {
				return
			}
			if !ok {
				break
			}
			recs = append(recs, cloneRecord(&rec))
		}
		if sumErr != nil || sums != sumsOf(recs) {
			t.Fatalf("sums: got %+v, %v, want %+v", sums, sumErr, sumsOf(recs))
		}
		if h.Attributes.LogAppendTime() {
			h.Attributes &^= AttrLogAppendTime
		}
		again, err := Encode(nil, h, recs, None)
		if err != nil {
			t.Fatal(err)
		}
		var r2 Reader
		if _, _, err := r2.Validate(again); err != nil {
			t.Fatal(err)
		}
		sameRecords(t, readAllRecords(t, &r2), recs)
	})
}

// FuzzDecompress looks for a payload that makes a decoder panic or go beyond its limit.
func FuzzDecompress(f *testing.F) {
	for _, c := range codecs[1:] {
		b, err := compress(c, nil, bytes.Repeat([]byte("some text that repeats. "), 50))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(c), b)
	}
	f.Add(byte(Snappy), unhex(f, "0308616263"))
	f.Add(byte(LZ4), unhex(f, "04224d186440a7 03000080 616263 00000000 ff5385c3"))
	f.Fuzz(func(t *testing.T, c byte, b []byte) {
		const limit = 256 << 10
		codec := Codec(c%4) + 1
		got, err := decompress(codec, nil, b, limit)
		if cap(got) > limit {
			t.Fatalf("%v: %d bytes with a limit of %d", codec, cap(got), limit)
		}
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatalf("%v: %v", codec, err)
			}
			return
		}
		packed, err := compress(codec, nil, got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decompress(codec, nil, packed, limit+1)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%v: %d bytes became %d, %v", codec, len(got), len(again), err)
		}
	})
}
