package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// sampleFiles makes the files of a partition with one segment of base offset 100: 5 batches of 3 records, with an aborted transaction in the fourth and
// its marker in the fifth.
func sampleFiles(tb testing.TB) (files map[string][]byte, at []int) {
	tb.Helper()
	log, at := testLog(tb, 100, 3, 50)
	at = append(at, len(log))
	recs := []storage.Record{{Offset: 109, Timestamp: 1700000000200, Value: []byte("gone")}}
	h := record.NewHeader(recs, 3)
	h.ProducerID, h.ProducerEpoch, h.BaseSequence, h.Attributes = 1000, 1, 7, record.AttrTransactional
	var err error
	if log, err = record.Encode(log, h, recs, record.None); err != nil {
		tb.Fatal(err)
	}
	at = append(at, len(log))
	recs = []storage.Record{{Offset: 110, Timestamp: 1700000000300, Key: []byte{0, 0, 0, 0}, Value: []byte{0, 0, 0, 0, 0, 9}}}
	h = record.NewHeader(recs, 3)
	h.ProducerID, h.ProducerEpoch, h.BaseSequence, h.Attributes = 1000, 1, -1, record.AttrTransactional|record.AttrControl
	if log, err = record.Encode(log, h, recs, record.None); err != nil {
		tb.Fatal(err)
	}
	var offsets, times []byte
	for i, last := range []storage.Offset{105, 108} {
		if offsets, err = index.AppendOffsetEntry(offsets, 100, index.OffsetEntry{Offset: last, Pos: storage.Pos(at[i+1])}); err != nil {
			tb.Fatal(err)
		}
		if times, err = index.AppendTimeEntry(times, 100, index.TimeEntry{Timestamp: 1700000000000 + int64(last), Offset: last}); err != nil {
			tb.Fatal(err)
		}
	}
	seg := func(ext string) string { return state.FileName(100, ext) }
	return map[string][]byte{
		seg(".log"): log, seg(".index"): offsets, seg(".timeindex"): times,
		seg(".txnindex"):         index.AppendTxnEntry(nil, index.TxnEntry{ProducerID: 1000, First: 109, Last: 110, Stable: 111}),
		seg(".snapshot"):         state.EncodeSnapshot([]state.ProducerEntry{{ProducerID: 1000, Epoch: 1, LastSequence: 7, LastOffset: 109, Timestamp: 1700000000200, CoordinatorEpoch: 9, TxnFirst: -1}}),
		seg(".sizeindex"):        index.EncodeSizes(index.SizeHeader{Base: 100, NextOffset: 111, LogSize: int64(len(log)), LastPos: storage.Pos(at[4]), Total: index.Sums{Records: 10}}, []index.SizeEntry{{Offset: 100}}),
		state.EpochsFile:         []byte("0\n1\n3 100\n"),
		state.MetadataFile:       state.FormatPartitionMetadata("4WdnnuLgQ7OG9Bd2zp8EWg"),
		state.RecoveryPointFile:  []byte("0\n1\norders 0 111\n"),
		state.TopicsFile:         []byte(`{"version":1,"topics":{"orders":{"id":"x","partitions":1}}}`),
		quorumStateFile:          []byte(`{"leaderId":1,"data_version":0}`),
		state.MetaPropertiesFile: []byte("#\n#date\nnode.id=1\nversion=1\ncluster.id=c\n"),
		state.CleanMarkerFile:    state.FormatCleanMarker(12),
	}, at
}

// writeFiles writes files into a new directory.
func writeFiles(tb testing.TB, files map[string][]byte) string {
	tb.Helper()
	dir := tb.TempDir()
	writeInto(tb, dir, files)
	return dir
}

// writeInto writes files into a directory, and makes it where there is none.
func writeInto(tb testing.TB, dir string, files map[string][]byte) {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestDumpText(t *testing.T) {
	files, at := sampleFiles(t)
	dir := writeFiles(t, files)
	lines, res := mustDump(t, withRecords(), dir)
	if res.Damage != 0 || res.Files != len(files) {
		t.Errorf("%d files of %d, %d times damage", res.Files, len(files), res.Damage)
	}
	text := strings.Join(lines, "\n") + "\n"
	for _, want := range []string{
		"file: " + dir + "/00000000000000000100.log type: log baseOffset: 100 size: ",
		"baseOffset: 100 lastOffset: 102 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: none position: 0 CreateTime: 1700000000102 size: ",
		" magic: 2 compresscodec: none crc: ",
		"| offset: 101 CreateTime: 1700000000101 keySize: 5 valueSize: 50 sequence: -1 key: \"key 1\" payload: bbbbb",
		"| offset: 109 CreateTime: 1700000000200 keySize: -1 valueSize: 4 sequence: 7 payload: gone\n",
		"| offset: 110 CreateTime: 1700000000300 keySize: 4 valueSize: 6 sequence: -1 endTxnMarker: ABORT coordinatorEpoch: 9\n",
		"batches: 5 records: 11 damagedBytes: 0\n",
		fmt.Sprintf("\noffset: 105 position: %d\noffset: 108 position: %d\n", at[1], at[2]),
		"\ntimestamp: 1700000000105 offset: 105\ntimestamp: 1700000000108 offset: 108\n",
		"\nversion: 0 producerId: 1000 firstOffset: 109 lastOffset: 110 lastStableOffset: 111\n",
		"type: snapshot endOffset: 100 size: 56\nproducerId: 1000 producerEpoch: 1 coordinatorEpoch: 9 currentTxnFirstOffset: none lastTimestamp: 1700000000200 firstSequence: 7 lastSequence: 7 lastOffset: 109 offsetDelta: 0\n",
		"\nversion: 1 baseOffset: 100 nextOffset: 111 logSize: ",
		"\noffset: 100 position: 0 records: 0 keyBytes: 0 valueBytes: 0\n",
		"\nepoch: 3 startOffset: 100\n", "\ntopic_id: 4WdnnuLgQ7OG9Bd2zp8EWg\n", "\ntopic: orders partition: 0 offset: 111\n",
		"\ntopic: orders settings: {\"id\":\"x\",\"partitions\":1}\n", "\nleaderId: 1\ndata_version: 0\n", "\ncluster.id: c\nnode.id: 1\nversion: 1\n", "\nbrokerEpoch: 12\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not there: %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestDumpDamage(t *testing.T) {
	const seg = "00000000000000000100"
	_, at := sampleFiles(t)
	end := func(files map[string][]byte) int { return len(files[seg+".log"]) }
	tests := []struct {
		name   string
		damage func(f map[string][]byte)
		want   string // of the lines that tell, the first
		n      int    // times that damage is told
	}{
		{"record", func(f map[string][]byte) { f[seg+".log"][at[1]+80] ^= 1 }, "damage: position: %1 reason: checksum mismatch", 1},
		{"length", func(f map[string][]byte) { f[seg+".log"][at[1]+9] ^= 1 }, "gap: what: damaged position: %1 size:", 3},
		{"offset", func(f map[string][]byte) { f[seg+".log"][at[1]+7] += 50 }, "damage: position: %2 reason: offset 106 behind a batch that ends at 155", 3},
		{"below the base", func(f map[string][]byte) { f[seg+".log"][7] = 9 }, "damage: position: 0 reason: offset 9 is below the base offset of the segment, 100", 1},
		{"index position", func(f map[string][]byte) { f[seg+".index"][7]++ }, "damage: position: 0 reason: no batch starts at", 1},
		{"index offset", func(f map[string][]byte) { f[seg+".index"][3] = 1 }, "damage: position: 0 reason: index offset: 101, log offset: 105", 1},
		{"index order", func(f map[string][]byte) { f[seg+".index"][11] = 2 }, "damage: position: 8 reason: offset 102 at", 1},
		{"index of one append", func(f map[string][]byte) { f[seg+".index"][11] = 9 }, "note: position: 8 reason: index offset: 109, log offset: 108; usable", 0},
		{"index inside a batch", func(f map[string][]byte) { f[seg+".index"][3] = 4 }, "note: position: 0 reason: index offset: 104, log offset: 105; usable", 0},
		{"index negative", func(f map[string][]byte) { f[seg+".index"][0] = 0x80 }, "damage: position: 0 reason: negative offset or position", 1},
		{"index cut", func(f map[string][]byte) { f[seg+".index"] = f[seg+".index"][:13] }, "damage: position: 8 reason: 5 bytes behind the last whole entry", 1},
		{"index padded", func(f map[string][]byte) { f[seg+".index"] = append(f[seg+".index"], make([]byte, 100)...) }, "note: position: 16 reason: 100 bytes of padding", 0},
		{"padding", func(f map[string][]byte) { f[seg+".index"] = append(append(f[seg+".index"], make([]byte, 99)...), 1) }, "damage: position: 115 reason: padding is not zero", 1},
		{"time", func(f map[string][]byte) { f[seg+".timeindex"][7]++ }, "damage: position: 0 reason: index timestamp: 1700000000106, log timestamp: 1700000000105", 1},
		{"time order", func(f map[string][]byte) { f[seg+".timeindex"][19] -= 5 }, "damage: position: 12 reason: timestamp 1700000000103 at offset 108 is not above", 1},
		{"time offset", func(f map[string][]byte) { f[seg+".timeindex"][23] = 200 }, "damage: position: 12 reason: no batch of the log ends at offset 300", 1},
		{"transaction", func(f map[string][]byte) { f[seg+".txnindex"][9]++ }, "damage: position: 0 reason: no marker of producer 1001 at offset 110 of the log", 1},
		{"transaction version", func(f map[string][]byte) { f[seg+".txnindex"][1] = 1 }, "damage: position: 0 reason: version 1 is not known", 1},
		{"marker", func(f map[string][]byte) { f[seg+".log"][at[4]+61+8] = 1 }, "damage: position: 0 reason: the marker at offset 110 of the log is COMMIT", 2},
		{"snapshot", func(f map[string][]byte) { f[seg+".snapshot"][20] ^= 1 }, "damage: reason: ", 1},
		{"sizes", func(f map[string][]byte) { f[seg+".sizeindex"][70] ^= 1 }, "damage: position: 8 reason: checksum", 1},
		{"epochs", func(f map[string][]byte) { f[state.EpochsFile] = []byte("0\n2\n3 100\n2 200\n") }, "damage: reason: ", 1},
		{"checkpoint", func(f map[string][]byte) { f[state.RecoveryPointFile] = []byte("0\n2\norders 0 111\n") }, "damage: reason: ", 1},
		{"checkpoint number", func(f map[string][]byte) { f[state.RecoveryPointFile] = []byte("0\n1\norders 0 x\n") }, "damage: reason: partition or offset is not a number: orders 0 x", 1},
		{"metadata", func(f map[string][]byte) { f[state.MetadataFile] = []byte("version: 0\n") }, "damage: reason: ", 1},
		{"properties", func(f map[string][]byte) { f[state.MetaPropertiesFile] = []byte("version=9\n") }, "damage: reason: ", 1},
		{"catalog", func(f map[string][]byte) { f[state.TopicsFile] = []byte("{") }, "damage: reason: ", 1},
		{"quorum state", func(f map[string][]byte) { f[quorumStateFile] = []byte("{} x") }, "damage: reason: not a JSON object", 1},
		{"marker file", func(f map[string][]byte) { f[state.CleanMarkerFile] = nil }, "note: reason: the shutdown was clean", 0},
		{"no log", func(f map[string][]byte) { delete(f, seg+".log") }, "note: reason: entries are not compared with the log: ", 0},
		{"torn", func(f map[string][]byte) { f[seg+".log"] = append(f[seg+".log"], testBatch(t, 111, 1, 9)[:70]...) }, "gap: what: torn position: %e size: 70 damage: false", 0},
		{"zeros", func(f map[string][]byte) { f[seg+".log"] = append(f[seg+".log"], make([]byte, 70)...) }, "gap: what: zeros position: %e size: 70 damage: false", 0},
		{"torn before another segment", func(f map[string][]byte) {
			f[seg+".log"] = append(f[seg+".log"], testBatch(t, 111, 1, 9)[:70]...)
			f["00000000000000000200.log"] = nil
		}, "gap: what: torn position: %e size: 70 damage: true", 1},
		{"garbage", func(f map[string][]byte) { f[seg+".log"] = append(f[seg+".log"], strings.Repeat("x", 70)...) }, "gap: what: damaged position: %e size: 70 damage: true", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, _ := sampleFiles(t)
			whole := end(files)
			tt.damage(files)
			lines, res := mustDump(t, withRecords(), writeFiles(t, files))
			want := strings.NewReplacer("%1", fmt.Sprint(at[1]), "%2", fmt.Sprint(at[2]), "%e", fmt.Sprint(whole)).Replace(tt.want)
			found := false
			for _, line := range lines {
				found = found || strings.HasPrefix(line, want)
			}
			if !found || res.Damage != tt.n {
				t.Errorf("damage %d times, want %d; %q is there: %t", res.Damage, tt.n, want, found)
				for _, line := range lines {
					if strings.HasPrefix(line, "damage") || strings.HasPrefix(line, "note") || strings.HasPrefix(line, "gap") {
						t.Log(line)
					}
				}
			}
		})
	}
}
