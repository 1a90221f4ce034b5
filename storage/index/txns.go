package index

import (
	"encoding/binary"
	"fmt"

	"github.com/logmount/logmount/storage"
)

// TxnEntrySize is the size of an entry of a transaction index.
const TxnEntrySize = 34

// TxnEntry is one aborted transaction. It stands in the index of the segment that holds its abort marker.
type TxnEntry struct {
	ProducerID int64
	First      storage.Offset // first data offset of the transaction
	Last       storage.Offset // offset of the abort marker
	Stable     storage.Offset // last stable offset when the marker was written
}

// AppendTxnEntry appends an entry as it lies in the file.
func AppendTxnEntry(dst []byte, e TxnEntry) []byte {
	dst = append(dst, 0, 0) // version
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.ProducerID))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.First))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Last))
	return binary.BigEndian.AppendUint64(dst, uint64(e.Stable))
}

// ParseTxns reads a whole transaction index file of the segment with that base offset. An entry cut short at its end is left out. Entries up to a wrong
// one are returned along with the error, a corruption error, see At.
func ParseTxns(b []byte, base storage.Offset) ([]TxnEntry, error) {
	entries := make([]TxnEntry, 0, len(b)/TxnEntrySize)
	last := base - 1
	for i := range len(b) / TxnEntrySize {
		at := i * TxnEntrySize
		raw := b[at : at+TxnEntrySize]
		e := TxnEntry{i64(raw[2:]), storage.Offset(i64(raw[10:])), storage.Offset(i64(raw[18:])), storage.Offset(i64(raw[26:]))}
		reason := ""
		switch v := binary.BigEndian.Uint16(raw); {
		case v != 0:
			reason = fmt.Sprintf("version %d is not known", v)
		case e.Last < base:
			reason = fmt.Sprintf("marker offset %d is below the segment's base offset %d", e.Last, base)
		case e.Last <= last:
			reason = fmt.Sprintf("marker offset %d is not above the one before, %d", e.Last, last)
		case e.First < 0 || e.First > e.Last:
			reason = fmt.Sprintf("transaction from %d to %d", e.First, e.Last)
		}
		if reason != "" {
			return entries, corruptEntry(i, int64(at), reason)
		}
		last = e.Last
		entries = append(entries, e)
	}
	return entries, nil
}
