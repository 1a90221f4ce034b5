package record

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

// kmsgRecord is rec as franz-go's record.
func kmsgRecord(rec *storage.Record, h *Header) kmsg.Record {
	k := kmsg.Record{TimestampDelta64: rec.Timestamp - h.BaseTimestamp, OffsetDelta: int32(rec.Offset - h.BaseOffset), Key: rec.Key, Value: rec.Value}
	for _, x := range rec.Headers {
		k.Headers = append(k.Headers, kmsg.Header{Key: string(x.Key), Value: x.Value})
	}
	// The length that it writes is the one in the struct: its own bytes without the one byte of a length of 0.
	k.Length = int32(len(k.AppendTo(nil)) - 1)
	return k
}

// TestOracle compares both directions with an independent implementation of the format.
func TestOracle(t *testing.T) {
	var r Reader
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRecords(t)
		h := NewHeader(recs, rapid.Int32Range(-1, 1000).Draw(t, "epoch"))
		h.ProducerID = rapid.Int64Range(-1, 1<<40).Draw(t, "producer")
		h.ProducerEpoch = rapid.Int16Range(-1, 100).Draw(t, "producer epoch")
		h.BaseSequence = rapid.Int32Range(-1, 1000).Draw(t, "sequence")
		ours, err := Encode(nil, h, recs, None)
		if err != nil {
			t.Fatal(err)
		}

		k := kmsg.RecordBatch{FirstOffset: int64(h.BaseOffset), PartitionLeaderEpoch: h.LeaderEpoch, Magic: 2, LastOffsetDelta: h.LastOffsetDelta,
			FirstTimestamp: h.BaseTimestamp, MaxTimestamp: h.MaxTimestamp, ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch,
			FirstSequence: h.BaseSequence, NumRecords: int32(len(recs))}
		for i := range recs {
			kr := kmsgRecord(&recs[i], &h)
			k.Records = kr.AppendTo(k.Records)
		}
		k.Length = int32(49 + len(k.Records))
		k.CRC = int32(crc32.Checksum(k.AppendTo(nil)[21:], castagnoli))
		if theirs := k.AppendTo(nil); !bytes.Equal(theirs, ours) {
			t.Fatalf("encoded:\ngot  %x\nwant %x", ours, theirs)
		}

		codec := rapid.SampledFrom(codecs).Draw(t, "codec")
		if ours, err = Encode(nil, h, recs, codec); err != nil {
			t.Fatal(err)
		}
		var back kmsg.RecordBatch
		if err := back.ReadFrom(ours); err != nil {
			t.Fatal(err)
		}
		got, _, err := r.Validate(ours)
		if err != nil {
			t.Fatal(err)
		}
		want := Header{storage.Offset(back.FirstOffset), back.Length, back.PartitionLeaderEpoch, back.Magic, uint32(back.CRC), Attributes(back.Attributes),
			back.LastOffsetDelta, back.FirstTimestamp, back.MaxTimestamp, back.ProducerID, back.ProducerEpoch, back.FirstSequence, back.NumRecords}
		if got != want {
			t.Fatalf("header: got %+v, want %+v", got, want)
		}
	})
}
