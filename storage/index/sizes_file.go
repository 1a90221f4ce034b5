package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/logmount/logmount/storage"
)

// A size index file, all of it written at once:
//
//	 0   6  magic "LMSIZE"
//	 6   2  version, 1
//	 8   4  CRC-32C of all bytes from 12 on
//	12   4  number of entries
//	16   8  base offset of the segment
//	24   8  next offset: one above the last offset of the last batch covered
//	32   8  bytes of log covered
//	40   8  position of the first batch covered
//	48   8  position of the last batch covered
//	56   4  CRC field of the first batch covered
//	60   4  CRC field of the last batch covered
//	64  24  visible data records, key bytes and value bytes of all batches covered
//	88   8  largest timestamp of a visible record, or -1
//	96   8  modification time of the log, in nanoseconds since the Unix epoch
//	104     entries of 32 bytes: relative offset (4), position (4), records, key bytes and value bytes before it (8 each)

const (
	// SizeHeaderSize is the size of the header of a size index.
	SizeHeaderSize = 104
	// SizeEntrySize is the size of an entry of a size index.
	SizeEntrySize = 32

	sizeVersion = 1
)

var (
	sizeMagic  = []byte("LMSIZE")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// SizeHeader says which log a size index belongs to and what it adds up to. A log that was replaced or went on is told by its length, by position and
// checksum of the first and last batch, and by its modification time.
type SizeHeader struct {
	Base         storage.Offset // base offset of the segment
	NextOffset   storage.Offset // one above the last offset of the last batch covered
	LogSize      int64          // bytes of log covered
	FirstPos     storage.Pos    // where the first batch covered starts
	LastPos      storage.Pos    // where the last one starts
	FirstCRC     uint32         // CRC field of the first batch covered
	LastCRC      uint32         // CRC field of the last one
	Total        Sums           // of all batches covered
	MaxTimestamp int64          // largest of the visible records, or storage.NoTimestamp
	Modified     int64          // modification time of the log, in nanoseconds since the Unix epoch
	N            int            // number of entries
}

// EncodeSizes returns a whole size index file. h.N is not used: it is the number of entries. An entry whose offset or position is too large for the file is
// left out, which makes lookups start earlier.
func EncodeSizes(h SizeHeader, entries []SizeEntry) []byte {
	b := make([]byte, SizeHeaderSize, SizeHeaderSize+len(entries)*SizeEntrySize)
	n := uint32(0)
	for _, e := range entries {
		if !relative(h.Base, e.Offset) || e.Pos < 0 || e.Pos > math.MaxUint32 {
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(e.Offset-h.Base))
		b = binary.BigEndian.AppendUint32(b, uint32(e.Pos))
		b = appendSums(b, e.Before)
		n++
	}
	copy(b, sizeMagic)
	binary.BigEndian.PutUint16(b[6:], sizeVersion)
	w := b[:12]
	w = binary.BigEndian.AppendUint32(w, n)
	w = binary.BigEndian.AppendUint64(w, uint64(h.Base))
	w = binary.BigEndian.AppendUint64(w, uint64(h.NextOffset))
	w = binary.BigEndian.AppendUint64(w, uint64(h.LogSize))
	w = binary.BigEndian.AppendUint64(w, uint64(h.FirstPos))
	w = binary.BigEndian.AppendUint64(w, uint64(h.LastPos))
	w = binary.BigEndian.AppendUint32(w, h.FirstCRC)
	w = binary.BigEndian.AppendUint32(w, h.LastCRC)
	w = appendSums(w, h.Total)
	w = binary.BigEndian.AppendUint64(w, uint64(h.MaxTimestamp))
	binary.BigEndian.AppendUint64(w, uint64(h.Modified))
	binary.BigEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

func appendSums(b []byte, s Sums) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.Records))
	b = binary.BigEndian.AppendUint64(b, uint64(s.KeyBytes))
	return binary.BigEndian.AppendUint64(b, uint64(s.ValueBytes))
}

func decodeSums(b []byte) Sums { return Sums{i64(b), i64(b[8:]), i64(b[16:])} }

func decodeSizeEntry(b []byte, base storage.Offset) SizeEntry {
	return SizeEntry{
		Offset: base + storage.Offset(binary.BigEndian.Uint32(b)),
		Pos:    storage.Pos(binary.BigEndian.Uint32(b[4:])),
		Before: decodeSums(b[8:]),
	}
}

// DecodeSizeHeader reads the header of a size index from the first SizeHeaderSize bytes of its file and verifies its numbers, but neither the checksum nor
// the entries. Errors are corruption errors, see At.
func DecodeSizeHeader(b []byte, base storage.Offset) (SizeHeader, error) {
	if len(b) < SizeHeaderSize {
		return SizeHeader{}, corrupt(0, fmt.Sprintf("%d bytes are no size index", len(b)))
	}
	if !bytes.Equal(b[:6], sizeMagic) {
		return SizeHeader{}, corrupt(0, "not a size index")
	}
	if v := binary.BigEndian.Uint16(b[6:]); v != sizeVersion {
		return SizeHeader{}, corrupt(6, fmt.Sprintf("version %d of the size index is not known", v))
	}
	h := SizeHeader{
		N:            int(binary.BigEndian.Uint32(b[12:])),
		Base:         storage.Offset(i64(b[16:])),
		NextOffset:   storage.Offset(i64(b[24:])),
		LogSize:      i64(b[32:]),
		FirstPos:     storage.Pos(i64(b[40:])),
		LastPos:      storage.Pos(i64(b[48:])),
		FirstCRC:     binary.BigEndian.Uint32(b[56:]),
		LastCRC:      binary.BigEndian.Uint32(b[60:]),
		Total:        decodeSums(b[64:]),
		MaxTimestamp: i64(b[88:]),
		Modified:     i64(b[96:]),
	}
	switch {
	case h.Base != base:
		return SizeHeader{}, corrupt(16, fmt.Sprintf("base offset %d, not %d", h.Base, base))
	case h.NextOffset < h.Base:
		return SizeHeader{}, corrupt(24, fmt.Sprintf("next offset %d is below the base", h.NextOffset))
	case h.LogSize < 0 || h.FirstPos < 0 || h.LastPos < h.FirstPos || int64(h.LastPos) > h.LogSize:
		return SizeHeader{}, corrupt(32, fmt.Sprintf("batches at %d to %d in a log of %d bytes", h.FirstPos, h.LastPos, h.LogSize))
	case !h.Total.atLeast(Sums{}):
		return SizeHeader{}, corrupt(64, "a total is negative")
	case int64(h.N) > h.LogSize:
		return SizeHeader{}, corrupt(12, fmt.Sprintf("%d entries for %d bytes of log", h.N, h.LogSize))
	}
	return h, nil
}

// CheckSizes verifies a whole size index file of the segment with that base offset: checksum, header and entries. That it belongs to the log as it is
// now is for the caller to compare.
func CheckSizes(whole []byte, base storage.Offset) (SizeHeader, error) {
	h, err := DecodeSizeHeader(whole, base)
	if err != nil {
		return SizeHeader{}, err
	}
	if want := SizeHeaderSize + int64(h.N)*SizeEntrySize; int64(len(whole)) != want {
		return SizeHeader{}, corrupt(int64(len(whole)), fmt.Sprintf("%d bytes, not %d", len(whole), want))
	}
	if got, want := crc32.Checksum(whole[12:], castagnoli), binary.BigEndian.Uint32(whole[8:]); got != want {
		return SizeHeader{}, corrupt(8, fmt.Sprintf("checksum %08x, not %08x", got, want))
	}
	var last SizeEntry
	for i := range h.N {
		at := SizeHeaderSize + i*SizeEntrySize
		e := decodeSizeEntry(whole[at:at+SizeEntrySize], base)
		reason := ""
		switch {
		case e.Offset < base || e.Offset >= h.NextOffset:
			reason = fmt.Sprintf("offset %d is not in %d to %d", e.Offset, base, h.NextOffset)
		case int64(e.Pos) >= h.LogSize:
			reason = fmt.Sprintf("position %d is not inside the log of %d bytes", e.Pos, h.LogSize)
		case i == 0 && e.Before != Sums{}:
			reason = "the first entry has records before it"
		case i > 0 && (e.Offset <= last.Offset || e.Pos <= last.Pos):
			reason = "offset or position is not above the one before"
		case !e.Before.atLeast(last.Before) || !h.Total.atLeast(e.Before):
			reason = "sums descend"
		}
		if reason != "" {
			return SizeHeader{}, corruptEntry(i, int64(at), reason)
		}
		last = e
	}
	if h.N == 0 && h.Total != (Sums{}) {
		return SizeHeader{}, corrupt(12, "no entries for a log with records")
	}
	return h, nil
}

// DecodeSizes is CheckSizes that returns the entries too.
func DecodeSizes(whole []byte, base storage.Offset) (SizeHeader, SizeEntries, error) {
	h, err := CheckSizes(whole, base)
	if err != nil {
		return SizeHeader{}, nil, err
	}
	entries := make(SizeEntries, h.N)
	for i := range entries {
		entries[i] = decodeSizeEntry(whole[SizeHeaderSize+i*SizeEntrySize:], base)
	}
	return h, entries, nil
}
