package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/test/fixture"
)

var legacyCodecs = []Codec{None, Gzip, Snappy, LZ4}

func TestLegacyGolden(t *testing.T) {
	tests := []struct {
		name    string
		hex     string
		version int8
		rec     storage.Record
	}{
		{"version 1", goldenV1, 1, storage.Record{Offset: 7, Timestamp: 1700000000000, Key: []byte("k"), Value: []byte("v")}},
		{"version 0", goldenV0, 0, storage.Record{Offset: 7, Timestamp: storage.NoTimestamp, Value: []byte("v")}},
	}
	var r Reader
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			if err := CheckCRC(b); err != nil {
				t.Fatal(err)
			}
			if err := r.Reset(b); err != nil {
				t.Fatal(err)
			}
			want := Header{BaseOffset: 7, Length: int32(len(b) - 12), LeaderEpoch: -1, Magic: tt.version, CRC: binary.BigEndian.Uint32(b[12:]),
				BaseTimestamp: -1, MaxTimestamp: tt.rec.Timestamp, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Count: 1}
			if *r.Header() != want {
				t.Errorf("header: got %+v, want %+v", *r.Header(), want)
			}
			if h, err := ParseLegacy(b); err != nil || h != want {
				t.Errorf("ParseLegacy: got %+v, %v, want %+v", h, err, want)
			}
			sameRecords(t, readAllRecords(t, &r), []storage.Record{tt.rec})
			got, err := EncodeLegacy([]byte("before"), tt.version, 0, []storage.Record{tt.rec})
			if err != nil || !bytes.Equal(got, append([]byte("before"), b...)) {
				t.Errorf("encoded: got %x, %v, want %x", got, err, b)
			}
			if _, _, err := r.Validate(b); !errors.Is(err, storage.ErrUnsupported) {
				t.Errorf("Validate: got %v, want unsupported", err)
			}
		})
	}
}

// drawLegacy returns records that an older version can hold.
func drawLegacy(t *rapid.T) []storage.Record {
	recs := drawRecords(t)
	for i := range recs {
		recs[i].Headers = nil
	}
	return recs
}

// entriesOf cuts entries that lie one behind the other.
func entriesOf(tb testing.TB, b []byte) [][]byte {
	tb.Helper()
	var out [][]byte
	for len(b) > 0 {
		f, err := ParseFrame(b)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b[:f.Size:f.Size])
		b = b[f.Size:]
	}
	return out
}

func TestLegacyRoundTrip(t *testing.T) {
	var r Reader
	rapid.Check(t, func(rt *rapid.T) {
		want := drawLegacy(rt)
		version := rapid.Int8Range(0, 1).Draw(rt, "version")
		a := Attributes(0).WithCodec(rapid.SampledFrom(legacyCodecs).Draw(rt, "codec"))
		if rapid.Bool().Draw(rt, "log append time") {
			a |= AttrLogAppendTime
		}
		b, err := EncodeLegacy(nil, version, a, want)
		if err != nil {
			rt.Fatal(err)
		}
		largest := int64(math.MinInt64)
		for i := range want {
			largest = max(largest, want[i].Timestamp)
		}
		for i := range want {
			switch {
			case version == 0:
				want[i].Timestamp = storage.NoTimestamp
			case a.LogAppendTime() && a.Codec() != None:
				want[i].Timestamp = largest
			}
		}
		entries := entriesOf(t, b)
		if n := len(want); a.Codec() != None && n > 0 && len(entries) != 1 || a.Codec() == None && len(entries) != n {
			rt.Fatalf("got %d entries of %d records", len(entries), n)
		}
		var got []storage.Record
		for _, e := range entries {
			if err := errors.Join(CheckCRC(e), r.Reset(e)); err != nil {
				rt.Fatal(err)
			}
			sums, err := r.Sums()
			if err != nil {
				rt.Fatal(err)
			}
			recs := readAllRecords(t, &r)
			h := r.Header()
			if sums != sumsOf(recs) || int(h.Count) != len(recs) || h.BaseOffset != recs[0].Offset || h.LastOffset() != recs[len(recs)-1].Offset ||
				h.Size() != int64(len(e)) || h.Magic != version || h.Attributes.Codec() != a.Codec() {
				rt.Fatalf("got %+v, %+v of %+v", h, sums, recs)
			}
			got = append(got, recs...)
		}
		sameRecords(t, got, want)
	})
}

// inner is an entry inside a wrapper.
func inner(tb testing.TB, version int8, a Attributes, offset storage.Offset, value string) []byte {
	tb.Helper()
	b, err := appendLegacy(nil, version, a, &storage.Record{Offset: offset, Timestamp: 1000 + int64(offset), Value: []byte(value)})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// wrap makes a wrapper of a payload that is compressed already.
func wrap(tb testing.TB, version int8, a Attributes, offset storage.Offset, payload []byte) []byte {
	tb.Helper()
	b, err := appendLegacy(nil, version, a, &storage.Record{Offset: offset, Timestamp: 5000, Value: payload})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestLegacyWrapper(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	in1 := func(o storage.Offset) []byte { return inner(t, 1, 0, o, "v") }
	in0 := func(o storage.Offset) []byte { return inner(t, 0, 0, o, "v") }
	damaged := in1(1)
	damaged[len(damaged)-1] ^= 1
	long := in1(0)
	long[atLength+3]++
	noValue := inner(t, 0, 0, 0, "v")
	binary.BigEndian.PutUint32(noValue[atLegacyKey0+4:], 3)
	const lat = AttrLogAppendTime
	tests := []struct {
		name    string
		version int8
		a       Attributes
		offset  storage.Offset
		payload []byte
		offsets []storage.Offset
		times   []int64
		err     error
	}{
		{"one after the other", 1, 0, 42, join(in1(0), in1(1), in1(2)), []storage.Offset{40, 41, 42}, []int64{1000, 1001, 1002}, nil},
		{"holes", 1, 0, 42, join(in1(0), in1(3), in1(7)), []storage.Offset{35, 38, 42}, []int64{1000, 1003, 1007}, nil},
		{"first taken", 1, 0, 42, join(in1(3), in1(7)), []storage.Offset{38, 42}, []int64{1003, 1007}, nil},
		{"one", 1, 0, 42, in1(0), []storage.Offset{42}, []int64{1000}, nil},
		{"time of the wrapper", 1, lat, 1, join(in1(0), in1(1)), []storage.Offset{0, 1}, []int64{5000, 5000}, nil},
		{"time of the wrapper in version 0", 0, lat, 1, join(in0(0), in0(1)), []storage.Offset{0, 1}, []int64{-1, -1}, nil},
		{"no offset given", 1, 0, 0, join(in1(0), in1(1)), []storage.Offset{0, 1}, []int64{1000, 1001}, nil},
		{"absolute", 0, 0, 42, join(in0(7), in0(9), in0(42)), []storage.Offset{7, 9, 42}, []int64{-1, -1, -1}, nil},
		{"absolute and last taken", 0, 0, 42, join(in0(7), in0(9)), []storage.Offset{7, 9}, []int64{-1, -1}, nil},
		{"offset inside above the wrapper's", 0, 0, 8, join(in0(7), in0(9)), nil, nil, ErrMalformed},
		{"before the first offset", 1, 0, 1, join(in1(0), in1(1), in1(2)), nil, nil, ErrMalformed},
		{"too far apart", 0, 0, 1 << 40, join(in0(7), in0(1<<40)), nil, nil, ErrMalformed},
		{"descending", 1, 0, 9, join(in1(1), in1(0)), nil, nil, ErrMalformed},
		{"twice", 1, 0, 9, join(in1(1), in1(1)), nil, nil, ErrMalformed},
		{"nothing", 1, 0, 9, nil, nil, nil, ErrMalformed},
		{"other version", 1, 0, 9, join(in1(0), in0(1)), nil, nil, ErrMalformed},
		{"version 2", 1, 0, 9, unhex(t, goldenData), nil, nil, ErrMalformed},
		{"wrapper inside", 1, 0, 9, inner(t, 1, Attributes(Gzip), 0, "x"), nil, nil, ErrMalformed},
		{"cut", 1, 0, 9, join(in1(0), in1(1)[:20]), nil, nil, ErrTruncated},
		{"cut frame", 1, 0, 9, join(in1(0), in1(1)[:9]), nil, nil, ErrTruncated},
		{"length too large", 1, 0, 9, join(long, in1(1)), nil, nil, ErrMalformed},
		{"value too long", 0, 0, 9, noValue, nil, nil, ErrMalformed},
		{"wrong checksum", 1, 0, 9, join(in1(0), damaged, in1(2)), []storage.Offset{7}, []int64{1000}, ErrCRC},
	}
	var r Reader
	for _, tt := range tests {
		for _, codec := range legacyCodecs[1:] {
			t.Run(fmt.Sprintf("%s/%v", tt.name, codec), func(t *testing.T) {
				payload, err := compress(codec, nil, tt.payload)
				if err != nil {
					t.Fatal(err)
				}
				b := wrap(t, tt.version, tt.a.WithCodec(codec), tt.offset, payload)
				if err := CheckCRC(b); err != nil {
					t.Fatal(err)
				}
				if h, err := ParseLegacy(b); err != nil || h.Count != -1 || h.LastOffset() != tt.offset || h.BaseOffset != tt.offset {
					t.Errorf("ParseLegacy: got %+v, %v", h, err)
				}
				err = r.Reset(b)
				if (err == nil) != (len(tt.offsets) > 0) {
					t.Fatalf("got %v", err)
				}
				_, sumErr := r.Sums()
				n := 0
				var rec storage.Record
				for ; ; n++ {
					var ok bool
					if ok, err = r.Next(&rec); !ok {
						break
					}
					if n >= len(tt.offsets) || rec.Offset != tt.offsets[n] || rec.Timestamp != tt.times[n] || string(rec.Value) != "v" || rec.Key != nil {
						t.Fatalf("record %d: got %+v", n, rec)
					}
				}
				if n != len(tt.offsets) || !errors.Is(err, tt.err) || !errors.Is(sumErr, tt.err) {
					t.Errorf("got %d records, %v, sums %v, want %d, %v", n, err, sumErr, len(tt.offsets), tt.err)
				}
				if ok, again := r.Next(&rec); ok || !errors.Is(again, tt.err) {
					t.Errorf("after the end: got %v, %v", ok, again)
				}
			})
		}
	}
}

// TestLegacyFramings holds what compressors of that time wrote.
func TestLegacyFramings(t *testing.T) {
	value := strings.Repeat("abcdefgh", 10)
	payload := func(version int8) []byte { return inner(t, version, 0, 3, value) }
	packed := func(codec Codec, version int8) []byte {
		b, err := compress(codec, nil, payload(version))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	patched := func(b []byte, at int, x byte) []byte {
		b = bytes.Clone(b)
		b[at] = x
		return b
	}
	large := patched(patched(patched(packed(LZ4, 1), 4, 0x64), 5, 0x70), 6, 0xb9) // 4 MiB blocks, checksum of the content
	large = append(large, 1, 2, 3, 4)
	tests := []struct {
		name    string
		version int8
		codec   Codec
		payload []byte
		err     error
	}{
		{"old checksum of a frame header", 0, LZ4, patched(packed(LZ4, 0), 6, 0x1a), nil},
		{"right checksum of a frame header", 0, LZ4, packed(LZ4, 0), nil},
		{"old checksum in version 1", 1, LZ4, patched(packed(LZ4, 1), 6, 0x1a), ErrCRC},
		{"4 MiB blocks and checksum of the content", 1, LZ4, large, nil},
		{"one raw block", 1, Snappy, snappy.Encode(nil, payload(1)), nil},
		{"blocks of snappy-java", 1, Snappy, packed(Snappy, 1), nil},
		{"zstd", 1, Zstd, packed(Zstd, 1), storage.ErrUnsupported},
		{"codec 5", 1, Codec(5), packed(Zstd, 1), storage.ErrUnsupported},
		{"null", 1, Gzip, nil, ErrTruncated},
	}
	var r Reader
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := wrap(t, tt.version, Attributes(tt.codec), 3, tt.payload)
			err := r.Reset(b)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			if recs := readAllRecords(t, &r); len(recs) != 1 || recs[0].Offset != 3 || string(recs[0].Value) != value {
				t.Errorf("got %+v", recs)
			}
		})
	}
}

func TestLegacyDamage(t *testing.T) {
	recs := []storage.Record{
		{Offset: 10, Timestamp: 5, Key: []byte("key"), Value: bytes.Repeat([]byte("value "), 20)},
		{Offset: 12, Timestamp: 4, Value: []byte("x")},
	}
	for version := range int8(2) {
		for _, codec := range legacyCodecs {
			t.Run(fmt.Sprintf("%d/%v", version, codec), func(t *testing.T) {
				whole, err := EncodeLegacy(nil, version, Attributes(codec), recs)
				if err != nil {
					t.Fatal(err)
				}
				whole = entriesOf(t, whole)[0]
				var r Reader
				for n := range len(whole) {
					if err := readOut(&r, whole[:n:n]); !errors.Is(err, ErrTruncated) {
						t.Errorf("%d of %d bytes: got %v, want truncated", n, len(whole), err)
					}
					if _, err := ParseLegacy(whole[:min(n, 29-8*(1-int(version)))]); !errors.Is(err, ErrTruncated) {
						t.Errorf("ParseLegacy of %d bytes: got %v, want truncated", n, err)
					}
				}
				if err := r.Reset(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrMalformed) {
					t.Errorf("one byte more: got %v, want malformed", err)
				}
				for i := range whole {
					for bit := range 8 {
						b := bytes.Clone(whole)
						b[i] ^= 1 << bit
						err := CheckCRC(b)
						if covered := i >= atLegacyCRC; covered != (err != nil) {
							t.Errorf("byte %d bit %d: got %v", i, bit, err)
						}
						if err := readOut(&r, b); err != nil && !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrUnsupported) {
							t.Errorf("byte %d bit %d: got %v", i, bit, err)
						}
						_, _ = r.Sums()
					}
				}
			})
		}
	}
}

func TestEncodeLegacyRefuses(t *testing.T) {
	one := []storage.Record{{Offset: 1}}
	tests := []struct {
		name    string
		version int8
		a       Attributes
		recs    []storage.Record
		err     error
	}{
		{"version", 2, 0, one, ErrMalformed},
		{"codec", 1, Attributes(Zstd), one, storage.ErrUnsupported},
		{"headers", 1, 0, []storage.Record{{Headers: []storage.Header{{}}}}, ErrMalformed},
		{"order", 1, 0, []storage.Record{{Offset: 1}, {Offset: 1}}, ErrMalformed},
		{"negative", 1, 0, []storage.Record{{Offset: -1}}, ErrMalformed},
		{"highest", 1, 0, []storage.Record{{Offset: math.MaxInt64}}, ErrMalformed},
		{"nothing", 1, Attributes(Gzip), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := EncodeLegacy([]byte("before"), tt.version, tt.a, tt.recs)
			if string(b) != "before" || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v, want %v", b, err, tt.err)
			}
		})
	}
}

func TestLegacyBombs(t *testing.T) {
	const limit = 2 << 20
	for name, bomb := range bombs(t, 16<<20) {
		if bomb.codec == Zstd {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := Reader{Limit: limit}
			err := r.Reset(wrap(t, 0, Attributes(bomb.codec), 3, bomb.payload))
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want too large", err)
			}
			if cap(r.scratch) > limit {
				t.Errorf("holds %d bytes with a limit of %d", cap(r.scratch), limit)
			}
		})
	}
}

func TestLegacyAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("pools drop at random under the race detector")
	}
	var r Reader
	var rec storage.Record
	for _, codec := range legacyCodecs {
		b, err := EncodeLegacy(nil, 1, Attributes(codec), benchRecords(50, 1000))
		if err != nil {
			t.Fatal(err)
		}
		b = entriesOf(t, b)[0]
		n := testing.AllocsPerRun(100, func() {
			err := r.Reset(b)
			if err == nil {
				_, err = r.Sums()
			}
			for ok := err == nil; ok; {
				ok, err = r.Next(&rec)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("reading an entry of %v: got %v allocations, want none", codec, n)
		}
	}
}

// TestLegacyTruth compares the logs of versions 0 and 1 that a broker wrote with what others read through it.
func TestLegacyTruth(t *testing.T) {
	seen := map[string]int{}
	got := map[string]map[storage.Offset]storage.Record{}
	var r Reader
	for name, b := range archiveFiles(t, "legacy-3.9.1", ".log") {
		part := path.Base(path.Dir(name))
		for _, e := range entriesOf(t, b) {
			if err := errors.Join(CheckCRC(e), r.Reset(e)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			h := r.Header()
			if h.Magic > 1 {
				t.Fatalf("%s: got version %d", name, h.Magic)
			}
			seen[fmt.Sprintf("%d/%v", h.Magic, h.Attributes.Codec())]++
			if _, err := ParseHeader(e); !errors.Is(err, storage.ErrUnsupported) || errors.Is(err, storage.ErrCorrupt) {
				t.Fatalf("%s: ParseHeader: got %v, want unsupported", name, err)
			}
			recs := readAllRecords(t, &r)
			if sums, err := r.Sums(); err != nil || sums != sumsOf(recs) || int(h.Count) != len(recs) {
				t.Fatalf("%s: got %+v, %+v, %v of %d records", name, h, sums, err, len(recs))
			}
			for _, rec := range recs {
				if got[part] == nil {
					got[part] = map[storage.Offset]storage.Record{}
				}
				if _, twice := got[part][rec.Offset]; twice || rec.Offset < h.BaseOffset || rec.Offset > h.LastOffset() {
					t.Fatalf("%s: offset %d in %d to %d", name, rec.Offset, h.BaseOffset, h.LastOffset())
				}
				got[part][rec.Offset] = rec
			}
		}
	}
	for version := range 2 {
		for _, c := range legacyCodecs {
			if seen[fmt.Sprintf("%d/%v", version, c)] == 0 {
				t.Errorf("no entry of version %d with codec %v", version, c)
			}
		}
	}
	if n := compareTruth(t, got, archiveFiles(t, "legacy-3.9.1", ".uncommitted.jsonl")); n < 1000 {
		t.Errorf("only %d records compared", n)
	}
}

// FuzzLegacy decodes anything as an entry of version 0 or 1, and as what is inside a wrapper: it must not panic nor take more memory than its limit
// allows, and what it decodes must survive being encoded.
func FuzzLegacy(f *testing.F) {
	for version := range int8(2) {
		for _, codec := range legacyCodecs {
			b, err := EncodeLegacy(nil, version, Attributes(codec)|AttrLogAppendTime, []storage.Record{{Offset: 5, Value: []byte("value")}, {Offset: 9}})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, byte(0), byte(version))
			f.Add(b, byte(codec), byte(version))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, pack, version byte) {
		b = bytes.Clone(b)
		version &= 1
		// Let the fuzzer get past lengths and checksums.
		if codec := Codec(pack & 3); codec != None {
			for rest := b; ; {
				fr, err := ParseFrame(rest)
				if err != nil || fr.Size > int64(len(rest)) {
					break
				}
				rest[atMagic] = version
				sealLegacy(rest[:fr.Size])
				rest = rest[fr.Size:]
			}
			payload, err := compress(codec, nil, b)
			if err != nil {
				t.Fatal(err)
			}
			b = wrap(t, int8(version), Attributes(codec)|Attributes(pack&8), 1000, payload)
		} else if len(b) >= minLegacy1 {
			binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-lengthBase))
			b[atMagic] = version
			sealLegacy(b)
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
		if h.Magic > 1 {
			return
		}
		shallow, err := ParseLegacy(b)
		if err != nil || h.LastOffset() != shallow.LastOffset() && shallow.BaseOffset != 0 || h.MaxTimestamp != shallow.MaxTimestamp {
			t.Fatalf("got %+v, ParseLegacy %+v, %v", h, shallow, err)
		}
		var recs []storage.Record
		last := h.BaseOffset - 1
		for {
			var rec storage.Record
			ok, err := r.Next(&rec)
			if (err != nil) != (sumErr != nil) && !ok {
				t.Fatalf("Next: %v, Sums: %v", err, sumErr)
			}
			if err != nil {
				return
			}
			if !ok {
				break
			}
			if rec.Offset <= last || rec.Offset > h.LastOffset() {
				t.Fatalf("offset %d after %d in %+v", rec.Offset, last, h)
			}
			last = rec.Offset
			recs = append(recs, cloneRecord(&rec))
		}
		if sums != sumsOf(recs) || len(recs) != int(h.Count) || recs[0].Offset != h.BaseOffset {
			t.Fatalf("got %+v, %+v of %d records", h, sums, len(recs))
		}
		again, err := EncodeLegacy(nil, h.Magic, h.Attributes, recs)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Reset(again); err != nil {
			t.Fatal(err)
		}
		sameRecords(t, readAllRecords(t, &r), recs)
	})
}
