package inspect

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

const (
	dir0  = "orders-0/"
	first = dir0 + "00000000000000000000"
)

// segmentsOf lists the paths of a partition's logs without their extension.
func segmentsOf(t tree, dir string) []string {
	var out []string
	for name := range t {
		if rest, ok := strings.CutSuffix(name, state.ExtLog); ok && strings.HasPrefix(name, dir) {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

// stretchCase is damage to a log that is told as a stretch of bytes.
type stretchCase struct {
	name string
	seg  int // number of the segment; -1 is the last one
	// edit damages the log and says which batches the stretch should take: from the start of list[from] to the start of list[to].
	edit     func(b []byte, list []Batch) []byte
	from, to int
	what     What
	unclean  bool // the marker is taken away, and the recovery point put to 0
	severity Severity
}

// at returns the start of batch i; of the one behind the last the end of the log.
func startOf(list []Batch, i int) storage.Pos {
	if i == len(list) {
		return list[i-1].End()
	}
	return list[i].Pos
}

func flipAt(i, at int) func([]byte, []Batch) []byte {
	return func(b []byte, list []Batch) []byte { b[int(list[i].Pos)+at] ^= 0x10; return b }
}

func TestVerifyFindsStretches(t *testing.T) {
	const last = -1 // batch number, counted from the end
	cases := []stretchCase{
		{"payload", 0, flipAt(3, 200), 3, 4, BatchCRC, false, Damage},
		{"first batch", 1, flipAt(0, 70), 0, 1, BatchCRC, false, Damage},
		{"stored checksum", 0, flipAt(3, 17), 3, 4, BatchCRC, false, Damage},
		{"attributes", 0, flipAt(3, 22), 3, 4, BatchCRC, false, Damage},
		{"count", 0, flipAt(3, 60), 3, 4, BatchCRC, false, Damage},
		{"version", 0, flipAt(3, 16), 3, 4, BatchHeader, false, Damage},
		{"length", 0, flipAt(3, 11), 3, 4, BatchCRC, false, Damage},
		{"length beyond the file", 0, flipAt(3, 9), 3, 4, BatchFrame, false, Damage},
		{"negative length", 0, func(b []byte, l []Batch) []byte { b[l[3].Pos+8] = 0xff; return b }, 3, 4, BatchFrame, false, Damage},
		{"base offset lower", 0, func(b []byte, l []Batch) []byte { b[l[3].Pos+7] = 0; return b }, 3, 4, BatchOffset, false, Damage},
		{"base offset higher", 0, func(b []byte, l []Batch) []byte { b[l[3].Pos+6] = 3; return b }, 3, 4, BatchOffset, false, Damage},
		{"base offset negative", 0, func(b []byte, l []Batch) []byte { b[l[3].Pos] = 0xff; return b }, 3, 4, BatchFrame, false, Damage},
		{"last batch's base offset", 0, func(b []byte, l []Batch) []byte { b[l[len(l)-1].Pos+5] = 9; return b }, last, 0, BatchOffset, false, Damage},
		{"zeros in the middle", 0, func(b []byte, l []Batch) []byte { clear(b[l[3].Pos:l[5].Pos]); return b }, 3, 5, BatchFrame, false, Damage},
		{"two batches", 0, func(b []byte, l []Batch) []byte { clear(b[l[3].Pos+40 : l[4].Pos+40]); return b }, 3, 5, BatchCRC, false, Damage},
		{"noise", 1, func(b []byte, l []Batch) []byte {
			for i := l[2].Pos; i < l[6].Pos; i++ {
				b[i] = byte(i*7 + i/13)
			}
			return b
		}, 2, 6, BatchFrame, false, Damage},
		{"inserted bytes", 0, func(b []byte, l []Batch) []byte {
			return slices.Insert(b, int(l[3].Pos), []byte("these do not belong here, not at all; a header takes 61 bytes or so")...)
		}, -100, 0, BatchFrame, false, Damage},
		{"a batch twice", 0, func(b []byte, l []Batch) []byte { return slices.Insert(b, int(l[4].Pos), l[3].Raw...) }, -101, 0, BatchOffset, false, Damage},
		{"cut end of a closed segment", 0, func(b []byte, _ []Batch) []byte { return b[:len(b)-5] }, last, 0, TornTail, false, Damage},
		{"cut end of the last one, closed in order", -1, func(b []byte, _ []Batch) []byte { return b[:len(b)-5] }, last, 0, TornTail, false, Damage},
		{"cut end of the last one", -1, func(b []byte, _ []Batch) []byte { return b[:len(b)-5] }, last, 0, TornTail, true, Notice},
		{"half a header", -1, func(b []byte, l []Batch) []byte { return b[:l[len(l)-1].Pos+11] }, last, 0, TornTail, true, Notice},
		{"bad last batch", -1, func(b []byte, _ []Batch) []byte { b[len(b)-1] ^= 1; return b }, last, 0, TornTail, true, Notice},
		{"bad batch before the torn one", -1, func(b []byte, l []Batch) []byte { b[l[len(l)-2].Pos+100] ^= 1; return b[:len(b)-5] }, -2, 0, TornTail, true, Notice},
		{"bad last batch, closed in order", -1, func(b []byte, _ []Batch) []byte { b[len(b)-1] ^= 1; return b }, last, 0, BatchCRC, false, Damage},
		{"bad batch before good ones, above the recovery point", -1, flipAt(2, 100), 2, 3, BatchCRC, true, Damage},
		{"zeros at the end", -1, func(b []byte, _ []Batch) []byte { return append(b, make([]byte, 5000)...) }, -102, 0, LogZeros, true, Notice},
		{"zeros at the end, closed in order", -1, func(b []byte, _ []Batch) []byte { return append(b, make([]byte, 5000)...) }, -102, 0, LogZeros, false, Damage},
		{"undecodable records", 0, func(b []byte, l []Batch) []byte {
			x := b[l[3].Pos:l[4].Pos]
			x[record.HeaderSize] ^= 0x40 // length of the first record
			reseal(x)
			return b
		}, 3, 4, BatchRecords, false, Damage},
		{"unknown codec", 0, func(b []byte, l []Batch) []byte {
			x := b[l[3].Pos:l[4].Pos]
			x[22] |= 7
			reseal(x)
			return b
		}, 3, 4, BatchHeader, false, Damage},
		{"wrong codec", 0, func(b []byte, l []Batch) []byte {
			x := b[l[3].Pos:l[4].Pos]
			x[22] |= 4
			reseal(x)
			return b
		}, 3, 4, BatchRecords, false, Damage},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			own := cloneTree(ownTree())
			segs := segmentsOf(own, dir0)
			seg := segs[(test.seg+len(segs))%len(segs)]
			list := batchesOf(t, own[seg+state.ExtLog])
			own.Edit(seg+state.ExtLog, func(b []byte) []byte { return test.edit(b, list) })
			if test.unclean {
				delete(own, state.CleanMarkerFile)
				delete(own, state.RecoveryPointFile)
			}
			found, sum := verify(t, own.Disk(t), VerifyOptions{})
			found = slices.DeleteFunc(found, func(f Finding) bool { return f.What == NotClean || f.What == SizeIndexStale })
			size := storage.Pos(len(own[seg+state.ExtLog]))
			var want Finding
			switch test.from {
			case -100:
				want.Pos, want.End = list[3].Pos, list[3].Pos+67
				want.Offset, want.Next = list[3].Header.BaseOffset, list[3].Header.BaseOffset
			case -101:
				want.Pos, want.End = list[4].Pos, list[4].Pos+storage.Pos(list[3].Size)
				want.Offset, want.Next = list[4].Header.BaseOffset, list[4].Header.BaseOffset
			case -102:
				want.Pos, want.End, want.Offset, want.Next = startOf(list, len(list)), size, list[len(list)-1].Header.NextOffset(), -1
			case -2:
				want.Pos, want.End, want.Offset, want.Next = list[len(list)-2].Pos, size, list[len(list)-2].Header.BaseOffset, -1
			case last:
				want.Pos, want.End, want.Offset, want.Next = list[len(list)-1].Pos, size, list[len(list)-1].Header.BaseOffset, -1
			default:
				want.Pos, want.End = list[test.from].Pos, startOf(list, test.to)
				want.Offset, want.Next = list[test.from].Header.BaseOffset, list[test.to].Header.BaseOffset
			}
			i := slices.IndexFunc(found, func(f Finding) bool { return f.End > 0 })
			if i < 0 {
				t.Fatalf("no stretch: %+v", found)
			}
			got := found[i]
			if got.Path != seg+state.ExtLog || got.Pos != want.Pos || got.End != want.End || got.Offset != want.Offset || got.Next != want.Next ||
				got.What != test.what || got.Severity != test.severity {
				t.Errorf("got %+v\nwant %s %s %d to %d, offset %d, next %d", got, test.severity, test.what, want.Pos, want.End, want.Offset, want.Next)
			}
			if got.Repair == "" || got.Detail == "" {
				t.Errorf("nothing for people: %+v", got)
			}
			if (sum.Damage > 0) != (test.severity == Damage) {
				t.Errorf("all findings: %+v", found)
			}
			// What shifts the batches behind it makes the indexes wrong too, and what cuts them off leaves them ahead.
			for _, f := range found {
				if f.End == 0 && !strings.Contains(string(f.What), "index") && f.What != CheckpointAhead && f.What != EpochsAhead && f.What != OffsetGap {
					t.Errorf("also %+v", f)
				}
			}
		})
	}
}

// reseal puts the right checksum into a batch.
func reseal(b []byte) { binary.BigEndian.PutUint32(b[17:], crcOf(b[21:])) }

func TestVerifyFindsSwappedBatches(t *testing.T) {
	own := cloneTree(ownTree())
	list := batchesOf(t, own[first+state.ExtLog])
	own.Edit(first+state.ExtLog, func(b []byte) []byte {
		two := slices.Concat(list[4].Raw, list[3].Raw)
		copy(b[list[3].Pos:], two)
		return b
	})
	found, sum := verify(t, own.Disk(t), VerifyOptions{})
	if sum.Damage == 0 || found[0].What != BatchOffset || found[0].Pos != list[3].Pos {
		t.Errorf("%+v", found)
	}
}

// fileCase is damage that is told of a file as such.
type fileCase struct {
	name string
	edit func(t tree, segs []string)
	want []string // severity, kind and path of all findings
}

func cut(n int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:len(b)-n] }
}

func text(s string) func([]byte) []byte {
	return func([]byte) []byte { return []byte(s) }
}

func TestVerifyFindsWrongFiles(t *testing.T) {
	segs := segmentsOf(ownTree(), dir0)
	if len(segs) < 3 {
		t.Fatalf("segments: %v", segs)
	}
	s0, s1, active := segs[0], segs[1], segs[len(segs)-1]
	unclean := func(t tree) { delete(t, state.CleanMarkerFile); delete(t, state.RecoveryPointFile) }
	const notClean = "notice not-clean .kafka_cleanshutdown"
	for _, test := range []fileCase{
		{"index missing", func(t tree, _ []string) { delete(t, s0+".index") }, []string{"notice index-missing " + s0 + ".index"}},
		{"time index missing", func(t tree, _ []string) { delete(t, s0+".timeindex") }, []string{"damage timeindex-missing " + s0 + ".timeindex"}},
		{"index entry's offset", func(t tree, _ []string) { t.Flip(s0+".index", 8+3) }, []string{"damage index-entry " + s0 + ".index"}},
		{"index entry's position", func(t tree, _ []string) { t.Flip(s0+".index", 8+7) }, []string{"damage index-entry " + s0 + ".index"}},
		{"index entry negative", func(t tree, _ []string) { t.Edit(s0+".index", func(b []byte) []byte { b[0] = 0x80; return b }) }, []string{"damage index-entry " + s0 + ".index"}},
		{"index entries swapped", func(t tree, _ []string) {
			t.Edit(s0+".index", func(b []byte) []byte { return slices.Concat(b[8:16], b[:8], b[16:]) })
		}, []string{"damage index-entry " + s0 + ".index"}},
		{"index entry twice", func(t tree, _ []string) {
			t.Edit(s0+".index", func(b []byte) []byte { return slices.Concat(b[:8], b[:8], b[8:]) })
		}, []string{"damage index-entry " + s0 + ".index"}},
		{"index cut", func(t tree, _ []string) { t.Edit(s0+".index", cut(3)) }, []string{"damage index-length " + s0 + ".index"}},
		{"index of another segment", func(t tree, _ []string) { t[s0+".index"] = t[s1+".index"] }, []string{"damage index-entry " + s0 + ".index"}},
		{"index padded", func(t tree, _ []string) {
			t.Edit(s0+".index", func(b []byte) []byte { return append(b, make([]byte, 80)...) })
		}, []string{"damage index-padding " + s0 + ".index"}},
		{"active index padded, closed in order", func(t tree, _ []string) {
			t.Edit(active+".index", func(b []byte) []byte { return append(b, make([]byte, 80)...) })
		}, []string{"damage index-padding " + active + ".index"}},
		{"active index padded", func(t tree, _ []string) {
			unclean(t)
			t.Edit(active+".index", func(b []byte) []byte { return append(b, make([]byte, 80)...) })
		}, []string{notClean}},
		{"active index with rubbish in its padding", func(t tree, _ []string) {
			unclean(t)
			t.Edit(active+".index", func(b []byte) []byte { return append(append(b, make([]byte, 80)...), 0, 0, 0, 0, 0, 0, 0, 1) })
		}, []string{notClean, "damage index-padding " + active + ".index"}},
		{"index ahead of a log that lost its end", func(t tree, _ []string) {
			unclean(t)
			t.Edit(active+".log", func(b []byte) []byte { return b[:len(b)/2] })
		}, []string{notClean, "notice index-ahead " + active + ".index", "notice sizeindex-stale " + active + ".sizeindex", "notice torn-tail " + active + ".log"}},
		{"time index entry's timestamp", func(t tree, _ []string) { t.Flip(s0+".timeindex", 12+7) }, []string{"damage timeindex-entry " + s0 + ".timeindex"}},
		{"time index entry's offset", func(t tree, _ []string) { t.Flip(s0+".timeindex", 12+11) }, []string{"damage timeindex-entry " + s0 + ".timeindex"}},
		{"time index cut", func(t tree, _ []string) { t.Edit(s0+".timeindex", cut(5)) }, []string{"damage timeindex-closing " + s0 + ".timeindex", "damage timeindex-length " + s0 + ".timeindex"}},
		{"closing entry missing", func(t tree, _ []string) { t.Edit(s0+".timeindex", cut(12)) }, []string{"damage timeindex-closing " + s0 + ".timeindex"}},
		{"time index empty", func(t tree, _ []string) { t[s0+".timeindex"] = nil }, []string{"damage timeindex-closing " + s0 + ".timeindex"}},
		{"time index padded", func(t tree, _ []string) {
			t.Edit(s0+".timeindex", func(b []byte) []byte { return append(b, make([]byte, 24)...) })
		}, []string{"damage timeindex-padding " + s0 + ".timeindex"}},
		{"size index damaged", func(t tree, _ []string) { t.Flip(s0+".sizeindex", 70) }, []string{"notice sizeindex-stale " + s0 + ".sizeindex"}},
		{"size index of another log", func(t tree, _ []string) { t[s0+".sizeindex"] = t[s1+".sizeindex"] }, []string{"notice sizeindex-stale " + s0 + ".sizeindex"}},
		{"size index missing", func(t tree, _ []string) { delete(t, s0+".sizeindex") }, []string{}},
		{"size index that adds up wrong", func(t tree, _ []string) {
			t.Edit(s0+".sizeindex", func(b []byte) []byte {
				b[64+7]++
				binary.BigEndian.PutUint32(b[8:], crcOf(b[12:]))
				return b
			})
		}, []string{"damage sizeindex-wrong " + s0 + ".sizeindex"}},
		{"size index entry that adds up wrong", func(t tree, _ []string) {
			t.Edit(s0+".sizeindex", func(b []byte) []byte {
				b[96+32+8+7]--
				binary.BigEndian.PutUint32(b[8:], crcOf(b[12:]))
				return b
			})
		}, []string{"damage sizeindex-wrong " + s0 + ".sizeindex"}},
		{"segment missing", func(t tree, _ []string) {
			for _, ext := range []string{".log", ".index", ".timeindex", ".sizeindex"} {
				delete(t, s1+ext)
			}
		}, []string{"notice offset-gap " + segs[2] + ".log"}},
		{"log missing", func(t tree, _ []string) { delete(t, s1+".log") }, []string{
			"notice file-orphan " + s1 + ".index", "notice file-orphan " + s1 + ".sizeindex", "notice file-orphan " + s1 + ".timeindex", "notice offset-gap " + segs[2] + ".log",
		}},
		{"all logs missing", func(t tree, _ []string) {
			for _, s := range segs {
				for _, ext := range []string{".log", ".index", ".timeindex", ".sizeindex"} {
					delete(t, s+ext)
				}
			}
		}, []string{"damage log-missing orders-0"}},
		{"log under another name", func(t tree, _ []string) {
			for _, ext := range []string{".log", ".index", ".timeindex", ".sizeindex"} {
				t[dir0+"00000000000000000007"+ext] = t[s0+ext]
				delete(t, s0+ext)
			}
		}, []string{
			"damage batch-offset " + dir0 + "00000000000000000007.log", "damage index-entry " + dir0 + "00000000000000000007.index",
			"damage timeindex-ahead " + dir0 + "00000000000000000007.timeindex", "damage timeindex-entry " + dir0 + "00000000000000000007.timeindex",
			"notice sizeindex-stale " + dir0 + "00000000000000000007.sizeindex",
		}},
		{"leader epochs garbled", func(t tree, _ []string) { t.Edit(dir0+state.EpochsFile, text("0\n1\n0 x\n")) }, []string{"damage epochs-syntax " + dir0 + state.EpochsFile}},
		{"leader epochs descend", func(t tree, _ []string) { t.Edit(dir0+state.EpochsFile, text("0\n2\n1 0\n0 5\n")) }, []string{"damage epochs-syntax " + dir0 + state.EpochsFile}},
		{"leader epochs of another log", func(t tree, _ []string) { t.Edit(dir0+state.EpochsFile, text("0\n2\n0 0\n3 100\n")) }, []string{
			"damage epoch-mismatch " + s0 + ".log", "damage epoch-mismatch " + s1 + ".log", "damage epoch-mismatch " + active + ".log",
		}},
		{"leader epochs missing", func(t tree, _ []string) { delete(t, dir0+state.EpochsFile) }, []string{"notice epochs-missing " + dir0 + state.EpochsFile}},
		{"leader epochs ahead", func(t tree, _ []string) { t.Edit(dir0+state.EpochsFile, text("0\n2\n0 0\n3 100000\n")) }, []string{"notice epochs-ahead " + dir0 + state.EpochsFile}},
		{"batch of another epoch", func(t tree, _ []string) {
			t.Edit(s0+".log", func(b []byte) []byte { b[15] = 2; return b })
		}, []string{"damage epoch-mismatch " + s0 + ".log", "damage epoch-order " + s0 + ".log"}},
		{"partition.metadata missing", func(t tree, _ []string) { delete(t, dir0+state.MetadataFile) }, []string{"notice metadata-missing " + dir0 + state.MetadataFile}},
		{"partition.metadata garbled", func(t tree, _ []string) { t.Edit(dir0+state.MetadataFile, cut(3)) }, []string{"damage metadata-syntax " + dir0 + state.MetadataFile}},
		{"another topic's id", func(t tree, _ []string) {
			t.Edit(dir0+state.MetadataFile, text("version: 0\ntopic_id: 4WdnnuLgQ7OG9Bd2zp8EWg"))
		}, []string{"damage topic-id " + dir0 + state.MetadataFile}},
		{"recovery point ahead", func(t tree, _ []string) { t.Edit(state.RecoveryPointFile, text("0\n1\norders 0 100000\n")) }, []string{"damage checkpoint-ahead " + state.RecoveryPointFile}},
		{"log start ahead", func(t tree, _ []string) { t[state.LogStartFile] = []byte("0\n1\norders 0 100000\n") }, []string{"damage checkpoint-ahead " + state.LogStartFile}},
		{"high watermark ahead", func(t tree, _ []string) { t[state.HighWatermarkFile] = []byte("0\n1\norders 0 100000\n") }, []string{"damage checkpoint-ahead " + state.HighWatermarkFile}},
		{"cleaner ahead", func(t tree, _ []string) { t[state.CleanerOffsetFile] = []byte("0\n1\norders 0 100000\n") }, []string{"notice checkpoint-ahead " + state.CleanerOffsetFile}},
		{"checkpoint garbled", func(t tree, _ []string) { t.Edit(state.RecoveryPointFile, text("0\n2\norders 0 1\n")) }, []string{"damage checkpoint-syntax " + state.RecoveryPointFile}},
		{"checkpoint of nobody", func(t tree, _ []string) { t[state.HighWatermarkFile] = []byte("0\n2\norders 0 1\ngone 3 1\n") }, []string{"notice checkpoint-line " + state.HighWatermarkFile}},
		{"unusable line", func(t tree, _ []string) { t[state.HighWatermarkFile] = []byte("0\n1\norders x 1\n") }, []string{"notice checkpoint-line " + state.HighWatermarkFile}},
		{"no number", func(t tree, _ []string) { t[dir0+"foo.log"] = nil }, []string{"damage file-name " + dir0 + "foo.log"}},
		{"no number, snapshot", func(t tree, _ []string) { t[dir0+"foo.snapshot"] = nil }, []string{"damage file-name " + dir0 + "foo.snapshot"}},
		{"short number", func(t tree, _ []string) { t[dir0+"5.log"] = nil }, []string{"damage file-name " + dir0 + "5.log"}},
		{"unknown file", func(t tree, _ []string) { t[dir0+"notes.txt"] = nil }, []string{"notice file-unknown " + dir0 + "notes.txt"}},
		{"moved aside", func(t tree, _ []string) { t[s1+".log.torn"], t[s1+".log.2.torn"] = nil, nil }, []string{"notice file-torn " + s1 + ".log.2.torn", "notice file-torn " + s1 + ".log.torn"}},
		{"strange directory", func(t tree, _ []string) { t["tmp/file"] = nil }, []string{"damage dir-name tmp"}},
		{"lost+found", func(t tree, _ []string) { t["lost+found/"] = nil }, []string{"notice dir-name lost+found"}},
		{"partition 00", func(t tree, _ []string) { t["orders-00/x"] = nil }, []string{"damage dir-name orders-00"}},
		{"being deleted", func(t tree, _ []string) { t["gone-0.0123456789abcdef0123456789abcdef-delete/"] = nil }, []string{"notice dir-leftover gone-0.0123456789abcdef0123456789abcdef-delete"}},
		{"directory missing", func(t tree, _ []string) {
			for name := range t {
				if strings.HasPrefix(name, dir0) {
					delete(t, name)
				}
			}
			delete(t, state.RecoveryPointFile)
		}, []string{"damage catalog-mismatch .logmount-topics.json"}},
		{"catalogue garbled", func(t tree, _ []string) { t.Edit(".logmount-topics.json", cut(5)) }, []string{"damage catalog-syntax .logmount-topics.json"}},
		{"catalogue of the future", func(t tree, _ []string) { t[state.TopicsFile] = []byte(`{"version":2}`) }, []string{"damage catalog-syntax .logmount-topics.json"}},
		{"catalogue that leads out", func(t tree, _ []string) {
			t.Edit(state.TopicsFile, func(b []byte) []byte {
				return append(b[:bytes.LastIndexByte(b, '}')], `,"deleting":[{"dir":"../etc-0","as":"x"}]}`...)
			})
		}, []string{"damage catalog-syntax .logmount-topics.json"}},
		{"catalogue of too many partitions", func(t tree, _ []string) {
			t.Edit(state.TopicsFile, func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"partitions": `), []byte(`"partitions": 10000`), 1)
			})
		}, []string{"damage catalog-syntax .logmount-topics.json"}},
		{"marker missing", func(t tree, _ []string) { delete(t, state.CleanMarkerFile) }, []string{notClean}},
		{"a lock that nobody holds", func(t tree, _ []string) { t[state.LockFile] = nil }, nil},
		{"meta.properties garbled", func(t tree, _ []string) { t[state.MetaPropertiesFile] = []byte("version=1\nnode.id=x\n") }, []string{"damage properties-wrong meta.properties"}},
		{"meta.properties without a cluster", func(t tree, _ []string) { t[state.MetaPropertiesFile] = []byte("version=1\nnode.id=1\n") }, []string{"damage properties-wrong meta.properties"}},
		{"snapshot garbled", func(t tree, _ []string) { t[dir0+"00000000000000000720.snapshot"] = []byte("no") }, []string{"damage snapshot-syntax " + dir0 + "00000000000000000720.snapshot"}},
		{"snapshot ahead", func(t tree, _ []string) { t[dir0+"00000000000000090000.snapshot"] = state.EncodeSnapshot(nil) }, []string{"notice snapshot-ahead " + dir0 + "00000000000000090000.snapshot"}},
		{"snapshot of producers that never were", func(t tree, _ []string) {
			t[dir0+"00000000000000000720.snapshot"] = state.EncodeSnapshot([]state.ProducerEntry{{ProducerID: 7, LastOffset: 3}})
		}, []string{"damage snapshot-mismatch " + dir0 + "00000000000000000720.snapshot"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			own := cloneTree(ownTree())
			test.edit(own, segs)
			found, sum := verify(t, own.Disk(t), VerifyOptions{})
			got := kinds(found)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v\n%+v", got, test.want, found)
			}
			if damaged := slices.ContainsFunc(test.want, func(s string) bool { return strings.HasPrefix(s, "damage") }); damaged != (sum.Damage > 0) {
				t.Errorf("%+v", sum)
			}
		})
	}
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
