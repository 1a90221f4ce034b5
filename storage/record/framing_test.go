package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const xerial = "82534e4150505900 00000001 00000001 "

// TestFramings decodes what writers other than ours may give, and what no reader should take.
func TestFramings(t *testing.T) {
	const abcGzip = "1f8b08000000000000ff4b4c4a0600c241243503000000"
	const abcZstd = "28b52ffd0058 180000 616263 010000 "
	tests := []struct {
		name  string
		codec Codec
		hex   string
		want  string
		err   error
	}{
		{"two members", Gzip, abcGzip + abcGzip, "abcabc", nil},
		{"bytes behind the member", Gzip, abcGzip + "0000", "abc", nil},
		{"half a header behind the member", Gzip, abcGzip + "1f8b08", "abc", nil},
		{"file name and comment", Gzip, "1f8b0818 00000000 00ff 6100 6200 4b4c4a0600c241243503000000", "abc", nil},
		{"wrong checksum", Gzip, strings.Replace(abcGzip, "c2412435", "c2412436", 1), "", ErrMalformed},
		{"no gzip", Gzip, "00112233445566778899aabbccddeeff", "", ErrMalformed},
		{"no trailer", Gzip, abcGzip[:len(abcGzip)-16], "", ErrTruncated},
		{"header only", Gzip, "1f8b08000000000000ff", "", ErrTruncated},

		{"header only", Snappy, xerial, "", nil},
		{"two blocks", Snappy, xerial + "00000005 0308616263 00000005 0308646566", "abcdef", nil},
		{"copy from before the start", Snappy, xerial + "0000000a 0a24 61626361626361626361", "", ErrMalformed},
		{"header inside", Snappy, xerial + "00000005 0308616263" + xerial + "00000005 0308646566", "abcdef", nil},
		{"versions of the header inside", Snappy, xerial + "82534e4150505900 00000000 00000001", "", ErrMalformed},
		{"little-endian version inside", Snappy, xerial + "82534e4150505900 01000000 01000000 00000005 0308616263", "abc", nil},
		{"half a header inside", Snappy, xerial + "82534e4150505900 0000", "", ErrMalformed},
		{"block beyond the end", Snappy, xerial + "00000006 0308616263", "", ErrTruncated},
		{"half a length", Snappy, xerial + "000000", "", ErrTruncated},
		{"negative length", Snappy, xerial + "ffffffff", "", ErrMalformed},
		{"length above 512 MiB", Snappy, xerial + "20000001", "", ErrMalformed},
		{"length of 512 MiB", Snappy, xerial + "20000000", "", ErrTruncated},
		{"empty block", Snappy, xerial + "00000000", "", ErrMalformed},
		{"magic alone is a raw block", Snappy, "82534e4150505900", "", ErrMalformed},
		{"raw block with a size it cannot have", Snappy, "e807 08616263", "", ErrMalformed},

		{"two blocks", LZ4, "04224d18604082 03000080 616263 03000080 646566 00000000", "abcdef", nil},
		{"copy from before the start", LZ4, "04224d18604082 0b000000 1161060050 61616161 61 00000000", "", ErrMalformed},
		{"no end", LZ4, "04224d18604082 03000080 616263", "", ErrTruncated},
		{"block beyond the end", LZ4, "04224d18604082 04000080 616263", "", ErrTruncated},
		{"header checksum of version 0", LZ4, "04224d1860401a 03000080 616263 00000000", "", ErrCRC},
		{"magic", LZ4, "03224d18604082 00000000", "", ErrMalformed},
		{"frame version", LZ4, "04224d18a04082 00000000", "", ErrMalformed},
		{"linked blocks", LZ4, "04224d184040c0 00000000", "", ErrMalformed},
		{"dictionary", LZ4, "04224d1861400000000082 00000000", "", ErrMalformed},
		{"reserved flag", LZ4, "04224d18624082 00000000", "", ErrMalformed},
		{"reserved block bits", LZ4, "04224d1860c082 00000000", "", ErrMalformed},
		{"block size code 3", LZ4, "04224d18603082 00000000", "", ErrMalformed},
		{"header only", LZ4, "04224d18604082", "", ErrTruncated},
		{"block above the maximum", LZ4, "04224d18604082 01000180" + strings.Repeat("61", 65537) + "00000000", "", ErrMalformed},
		{"content checksum missing", LZ4, "04224d186440a7 03000080 616263 00000000 ff53", "", ErrTruncated},
		{"content checksum wrong", LZ4, "04224d186440a7 03000080 616263 00000000 00000000", "abc", nil},
		{"bytes behind the frame", LZ4, "04224d18604082 03000080 616263 00000000 00", "abc", nil},

		{"two frames", Zstd, abcZstd + abcZstd, "abcabc", nil},
		{"frame to be skipped", Zstd, abcZstd + "502a4d18 03000000 000000" + abcZstd, "abcabc", nil},
		{"frame to be skipped beyond the end", Zstd, abcZstd + "5f2a4d18 04000000 000000", "", ErrTruncated},
		{"run", Zstd, "28b52ffd0058 1b0000 61", "aaa", nil},
		{"no last block", Zstd, "28b52ffd0058 180000 616263", "", ErrTruncated},
		{"block type 3", Zstd, "28b52ffd0058 1f0000 616263", "", ErrMalformed},
		{"magic", Zstd, "27b52ffd0058 180000 616263 010000", "", ErrMalformed},
		{"bytes behind the frame", Zstd, abcZstd + "0000000000000000", "", ErrMalformed},
		{"few bytes behind the frame", Zstd, abcZstd + "00", "", ErrTruncated},
		{"content size that is a lie", Zstd, "28b52ffdc058 0000000000000040 190000 616263", "", ErrMalformed},
		{"content size, single segment", Zstd, "28b52ffd20 03 190000 616263", "abc", nil},
		{"header beyond the end", Zstd, "28b52ffdc0580000", "", ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.codec.String()+"/"+tt.name, func(t *testing.T) {
			got, err := decompress(tt.codec, nil, unhex(t, tt.hex), 1<<20)
			if !errors.Is(err, tt.err) || err == nil && string(got) != tt.want {
				t.Errorf("got %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
			if _, err := decompress(tt.codec, nil, nil, 1<<20); tt.codec != Zstd && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTruncated) {
				t.Errorf("nothing at all: got %v", err)
			}
		})
	}
}

func TestXXH32(t *testing.T) {
	for in, want := range map[string]uint32{"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff, "Nobody inspects the spammish repetition": 0xe2293b2f} {
		if got := xxh32([]byte(in)); got != want {
			t.Errorf("%q: got %08x, want %08x", in, got, want)
		}
	}
}

// TestForeignLZ4 decodes frames of the library's own writer, with each option that a reader must take.
func TestForeignLZ4(t *testing.T) {
	data := bytes.Repeat([]byte("what a frame of several blocks may hold. "), 20_000)
	noise := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	data = append(data, noise...)
	for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
		for _, sums := range []bool{false, true} {
			for _, content := range []uint64{0, uint64(len(data))} {
				var b bytes.Buffer
				w := lz4.NewWriter(&b)
				err := w.Apply(lz4.BlockSizeOption(size), lz4.BlockChecksumOption(sums), lz4.ChecksumOption(sums), lz4.SizeOption(content))
				if err != nil {
					t.Fatal(err)
				}
				w.Write(data)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				got, err := decompress(LZ4, nil, b.Bytes(), int64(len(data)))
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%v, checksums %v, content size %d: got %d bytes, %v, want %d", size, sums, content, len(got), err, len(data))
				}
				if sums {
					b.Bytes()[20] ^= 1
					if _, err := decompress(LZ4, nil, b.Bytes(), int64(len(data))); !errors.Is(err, ErrCRC) {
						t.Errorf("%v: byte changed: got %v, want a wrong checksum", size, err)
					}
				}
			}
		}
	}
}

// TestForeignZstd decodes frames with checksums, content sizes, other windows and levels.
func TestForeignZstd(t *testing.T) {
	data := bytes.Repeat([]byte("what a frame of several blocks may hold. "), 20_000)
	noise := make([]byte, 200_000)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	data = append(data, noise...)
	for _, n := range []int{0, 1, 100, 70_000, len(data)} {
		for _, opts := range [][]zstd.EOption{
			{zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true)},
			{zstd.WithSingleSegment(true), zstd.WithZeroFrames(true)},
			{zstd.WithWindowSize(1 << 10), zstd.WithZeroFrames(true)},
			{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8 << 20), zstd.WithZeroFrames(true)},
		} {
			e, err := zstd.NewWriter(nil, append(opts, zstd.WithEncoderConcurrency(1))...)
			if err != nil {
				t.Fatal(err)
			}
			var stream bytes.Buffer
			e.Reset(&stream)
			e.Write(data[:n])
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			for _, b := range [][]byte{e.EncodeAll(data[:n], nil), stream.Bytes()} {
				for _, limit := range []int64{int64(max(n, 1)), 1 << 30} {
					got, err := decompress(Zstd, nil, b, limit)
					if err != nil || !bytes.Equal(got, data[:n]) {
						t.Errorf("limit %d: got %d bytes, %v, want %d", limit, len(got), err, n)
					}
				}
				if n > 1 {
					if got, err := decompress(Zstd, nil, b, int64(n-1)); !errors.Is(err, ErrTooLarge) {
						t.Errorf("limit one below: got %d bytes, %v, want too large", len(got), err)
					}
				}
			}
		}
	}
}

// TestOurFramings looks at what our writers write.
func TestOurFramings(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for codec, want := range map[Codec]string{Gzip: "1f8b08000000000000ff", Snappy: "82534e41505059000000000100000001", LZ4: "04224d18604082", Zstd: "28b52ffd0058"} {
		b, err := compress(codec, nil, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(b[:len(want)/2]); got != want {
			t.Errorf("%v: starts with %s, want %s", codec, got, want)
		}
		if codec == Snappy {
			var sizes []uint64
			for rest := b[xerialHeader:]; len(rest) > 0; {
				n := binary.BigEndian.Uint32(rest)
				size, _ := binary.Uvarint(rest[4:])
				sizes = append(sizes, size)
				rest = rest[4+n:]
			}
			if len(sizes) != 4 || sizes[0] != 32<<10 || sizes[3] != 100_000-3*32<<10 {
				t.Errorf("snappy blocks of %v bytes", sizes)
			}
		}
		if codec == LZ4 {
			if ok, err := lz4.ValidFrameHeader(b); !ok {
				t.Errorf("lz4: %v", err)
			}
		}
	}
}
