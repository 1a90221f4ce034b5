package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/logmount/logmount/storage"
)

const (
	snapshotHeader  = 10
	snapshotEntry   = 46
	snapshotVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ProducerEntry is what a log knows of one producer. The comments say what stands where there is nothing.
type ProducerEntry struct {
	ProducerID       int64
	Epoch            int16          // -1
	LastSequence     int32          // -1
	LastOffset       storage.Offset // of the last data batch; -1
	OffsetDelta      int32          // last offset less first offset of that batch; 0
	Timestamp        int64          // largest of the last batch, or the marker's; -1
	CoordinatorEpoch int32          // of the last marker; -1
	TxnFirst         storage.Offset // first offset of the open transaction; -1
}

// Open reports whether the producer has a transaction that is neither committed nor aborted.
func (e *ProducerEntry) Open() bool { return e.TxnFirst >= 0 }

// EncodeSnapshot returns the bytes of a producer snapshot file.
func EncodeSnapshot(entries []ProducerEntry) []byte {
	b := make([]byte, snapshotHeader, snapshotHeader+len(entries)*snapshotEntry)
	for i := range entries {
		e := &entries[i]
		b = binary.BigEndian.AppendUint64(b, uint64(e.ProducerID))
		b = binary.BigEndian.AppendUint16(b, uint16(e.Epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(e.LastSequence))
		b = binary.BigEndian.AppendUint64(b, uint64(e.LastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(e.OffsetDelta))
		b = binary.BigEndian.AppendUint64(b, uint64(e.Timestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(e.CoordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(e.TxnFirst))
	}
	binary.BigEndian.PutUint16(b, snapshotVersion)
	binary.BigEndian.PutUint32(b[6:], uint32(len(entries)))
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

// DecodeSnapshot reads a producer snapshot file. Bytes behind the last entry are under the checksum and otherwise ignored.
func DecodeSnapshot(b []byte) ([]ProducerEntry, error) {
	if len(b) < snapshotHeader {
		return nil, corruptSnapshot("%d bytes", len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return nil, corruptSnapshot("version %d is not known", v)
	}
	if got, want := crc32.Checksum(b[6:], castagnoli), binary.BigEndian.Uint32(b[2:]); got != want {
		return nil, corruptSnapshot("checksum %08x, not %08x", got, want)
	}
	n := int64(int32(binary.BigEndian.Uint32(b[6:])))
	if n < 0 || n > int64(len(b)-snapshotHeader)/snapshotEntry {
		return nil, corruptSnapshot("%d entries in %d bytes", n, len(b))
	}
	entries := make([]ProducerEntry, n)
	for i := range entries {
		r := b[snapshotHeader+i*snapshotEntry:]
		entries[i] = ProducerEntry{
			ProducerID:       int64(binary.BigEndian.Uint64(r)),
			Epoch:            int16(binary.BigEndian.Uint16(r[8:])),
			LastSequence:     int32(binary.BigEndian.Uint32(r[10:])),
			LastOffset:       storage.Offset(binary.BigEndian.Uint64(r[14:])),
			OffsetDelta:      int32(binary.BigEndian.Uint32(r[22:])),
			Timestamp:        int64(binary.BigEndian.Uint64(r[26:])),
			CoordinatorEpoch: int32(binary.BigEndian.Uint32(r[34:])),
			TxnFirst:         storage.Offset(binary.BigEndian.Uint64(r[38:])),
		}
	}
	return entries, nil
}

func corruptSnapshot(format string, args ...any) error {
	return fmt.Errorf("producer snapshot: %s: %w", fmt.Sprintf(format, args...), storage.ErrCorrupt)
}
