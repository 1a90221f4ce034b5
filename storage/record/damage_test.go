package record

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/logmount/logmount/storage"
)

// damageBatch returns a batch with all that a record can have, in each codec.
func damageBatch(tb testing.TB, codec Codec) []byte {
	tb.Helper()
	recs := []storage.Record{
		{Offset: 1000, Timestamp: 1700000000000, Key: []byte("key"), Value: []byte("value value value value value")},
		{Offset: 1001, Timestamp: 1700000000001, Value: []byte{}, Headers: []storage.Header{{Key: []byte("h"), Value: []byte("x")}, {Key: []byte("i")}}},
		{Offset: 1003, Timestamp: 1699999999999, Key: []byte{}},
	}
	b, err := Encode(nil, NewHeader(recs, 3), recs, codec)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// readOut decodes as far as it goes.
func readOut(r *Reader, b []byte) error {
	if err := r.Reset(b); err != nil {
		return err
	}
	var rec storage.Record
	for {
		if ok, err := r.Next(&rec); !ok {
			return err
		}
	}
}

func TestTruncated(t *testing.T) {
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			b := damageBatch(t, codec)
			var r Reader
			for n := range len(b) {
				if _, _, err := r.Validate(b[:n:n]); !errors.Is(err, ErrTruncated) {
					t.Errorf("%d of %d bytes: got %v, want truncated", n, len(b), err)
				}
				if err := readOut(&r, b[:n:n]); !errors.Is(err, ErrTruncated) {
					t.Errorf("%d of %d bytes, checksum not looked at: got %v, want truncated", n, len(b), err)
				}
			}
			if _, _, err := r.Validate(append(b, 0)); !errors.Is(err, ErrMalformed) {
				t.Errorf("one byte more: got %v, want malformed", err)
			}
		})
	}
}

// TestShortened cuts the payload and puts length and checksum right, so that only the decoder can notice.
func TestShortened(t *testing.T) {
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			whole := damageBatch(t, codec)
			var r Reader
			for n := HeaderSize; n < len(whole); n++ {
				b := bytes.Clone(whole[:n])
				b[atLength+2], b[atLength+3] = byte((n-lengthBase)>>8), byte(n-lengthBase)
				seal(b)
				if _, _, err := r.Validate(b); !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("%d of %d bytes: got %v, want corrupt", n, len(whole), err)
				}
			}
		})
	}
}

func TestFlippedBits(t *testing.T) {
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			whole := damageBatch(t, codec)
			var r Reader
			for i := range whole {
				for bit := range 8 {
					b := bytes.Clone(whole)
					b[i] ^= 1 << bit
					_, _, err := r.Validate(b)
					outside := i < atCRC && (i < atLength || i >= atLeaderEpoch && i < atMagic) && b[0] < 0x80
					if outside && err != nil {
						t.Errorf("byte %d bit %d, not under the checksum: got %v", i, bit, err)
					}
					if !outside && err == nil {
						t.Errorf("byte %d bit %d: no error", i, bit)
					}
					_ = readOut(&r, b) // must not panic
					if i >= atAttributes {
						seal(b)
						_, _, _ = r.Validate(b)
					}
				}
			}
		})
	}
}

// TestMalformedRecords holds records that are wrong in one way each behind a good checksum.
func TestMalformedRecords(t *testing.T) {
	tests := []struct {
		name    string
		payload string
		count   byte
		last    byte
		err     error
		text    string
	}{
		{"good", "0c 00 00 00 01 01 00", 1, 0, nil, ""},
		{"two good", "0c 00 00 00 01 01 00 0c 00 00 02 01 01 00", 2, 1, nil, ""},
		{"nothing", "", 1, 0, ErrTruncated, "record 0 of 1"},
		{"bytes behind", "0c 00 00 00 01 01 00 00", 1, 0, ErrMalformed, "1 bytes behind the last of 1"},
		{"bytes of no record", "0c 00 00 00 01 01 00", 0, 0, ErrMalformed, "7 bytes behind the last of 0"},
		{"fewer than the count", "0c 00 00 00 01 01 00", 2, 1, ErrTruncated, "record 1 of 2"},
		{"length too long", "8080808080 00", 1, 0, ErrMalformed, "record length"},
		{"length negative", "01 00 00 00 01 01 00", 1, 0, ErrMalformed, "record length"},
		{"length zero", "00", 1, 0, ErrMalformed, "timestamp delta"},
		{"length beyond the end", "0e 00 00 00 01 01 00", 1, 0, ErrTruncated, "longer than what is left"},
		{"length below the content", "0a 00 00 00 01 01 00", 1, 0, ErrMalformed, "number of headers"},
		{"length above the content", "0e 00 00 00 01 01 00 00", 1, 0, ErrMalformed, "does not end where"},
		{"timestamp", "0c 00 80 80 80 80 80", 1, 0, ErrMalformed, "timestamp delta"},
		{"offset delta", "0c 00 00 80 80 80 80", 1, 0, ErrMalformed, "offset delta"},
		{"negative offset delta", "0c 00 00 01 01 01 00", 1, 0, ErrMalformed, "offset delta -1"},
		{"offset above the last", "0c 00 00 02 01 01 00", 1, 0, ErrMalformed, "offset delta 1 after -1, last 0"},
		{"offset twice", "0c 00 00 00 01 01 00 0c 00 00 00 01 01 00", 2, 1, ErrMalformed, "offset delta 0 after 0"},
		{"key below null", "0c 00 00 00 03 01 00", 1, 0, ErrMalformed, "key length"},
		{"key beyond the end", "0c 00 00 00 06 01 00", 1, 0, ErrMalformed, "key length"},
		{"value below null", "0c 00 00 00 01 03 00", 1, 0, ErrMalformed, "value length"},
		{"value beyond the end", "0c 00 00 00 01 04 00", 1, 0, ErrMalformed, "value length"},
		{"negative headers", "0c 00 00 00 01 01 01", 1, 0, ErrMalformed, "number of headers"},
		{"headers beyond the end", "0c 00 00 00 01 01 02", 1, 0, ErrMalformed, "number of headers"},
		{"headers beyond the memory", "14 00 00 00 01 01 feffffff0f", 1, 0, ErrMalformed, "number of headers"},
		{"header key null", "10 00 00 00 01 01 02 01 01", 1, 0, ErrMalformed, "header's key"},
		{"header key beyond the end", "10 00 00 00 01 01 02 04 01", 1, 0, ErrMalformed, "header's key"},
		{"header value below null", "10 00 00 00 01 01 02 00 03", 1, 0, ErrMalformed, "header's key"},
		{"header value beyond the end", "10 00 00 00 01 01 02 00 02", 1, 0, ErrMalformed, "header's key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			payload := unhex(t, tt.payload)
			for _, codec := range codecs {
				h := Header{BaseOffset: 10, LastOffsetDelta: int32(tt.last), Count: int32(tt.count), Attributes: Attributes(codec)}
				packed := payload
				if codec != None {
					var err error
					if packed, err = compress(codec, nil, payload); err != nil {
						t.Fatal(err)
					}
				}
				h.Length = int32(HeaderSize - lengthBase + len(packed))
				b := make([]byte, HeaderSize)
				h.put(b)
				b = append(b, packed...)
				seal(b)
				var r Reader
				_, _, err := r.Validate(b)
				if !errors.Is(err, tt.err) || err != nil && !bytes.Contains([]byte(err.Error()), []byte(tt.text)) {
					t.Errorf("%v: Validate: got %v, want %v with %q", codec, err, tt.err, tt.text)
				}
				next := readOut(&r, b)
				if fmt.Sprint(next) != fmt.Sprint(err) {
					t.Errorf("%v: Next: got %v, want %v", codec, next, err)
				}
				if _, again := r.Next(new(storage.Record)); again != next { //nolint:errorlint // the very same error
					t.Errorf("%v: Next after the error: got %v, want %v", codec, again, next)
				}
			}
		})
	}
}

// TestUnreset uses a Reader that has no batch.
func TestUnreset(t *testing.T) {
	var r Reader
	if ok, err := r.Next(new(storage.Record)); ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	if s, err := r.Sums(); s != (Sums{}) || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
	if err := r.Reset(nil); !errors.Is(err, ErrTruncated) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Sums(); !errors.Is(err, ErrTruncated) {
		t.Errorf("Sums after a failed Reset: got %v", err)
	}
	if ok, err := r.Next(new(storage.Record)); ok || !errors.Is(err, ErrTruncated) {
		t.Errorf("Next after a failed Reset: got %v, %v", ok, err)
	}
}
