package inspect

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
)

// commitRecord is a record of __consumer_offsets as another library writes it; without an offset it is a tombstone.
func commitRecord(version int16, group, topic string, partition int32, offset int64, metadata string) storage.Record {
	k := kmsg.OffsetCommitKey{Version: 1, Group: group, Topic: topic, Partition: partition}
	r := storage.Record{Key: k.AppendTo(nil), Timestamp: 1700000000000}
	if offset >= 0 {
		v := kmsg.OffsetCommitValue{Version: version, Offset: offset, LeaderEpoch: 7, Metadata: metadata, CommitTimestamp: 1700000000001, ExpireTimestamp: -1}
		r.Value = v.AppendTo(nil)
	}
	return r
}

// appendCommits appends a batch of commits, in a transaction of a producer if that is not -1.
func appendCommits(tb testing.TB, log []byte, next *storage.Offset, producer int64, recs ...storage.Record) []byte {
	tb.Helper()
	for i := range recs {
		recs[i].Offset = *next
		*next++
	}
	h := record.NewHeader(recs, 0)
	if producer >= 0 {
		h.ProducerID, h.ProducerEpoch, h.BaseSequence, h.Attributes = producer, 0, 0, record.AttrTransactional
	}
	log, err := record.Encode(log, h, recs, record.None)
	if err != nil {
		tb.Fatal(err)
	}
	return log
}

func appendMarker(tb testing.TB, log []byte, next *storage.Offset, producer int64, t record.ControlType) []byte {
	tb.Helper()
	recs := []storage.Record{{Offset: *next, Timestamp: 1700000000000, Key: []byte{0, 0, 0, byte(t)}, Value: make([]byte, 6)}}
	*next++
	h := record.NewHeader(recs, 0)
	h.ProducerID, h.ProducerEpoch, h.Attributes = producer, 0, record.AttrTransactional|record.AttrControl
	log, err := record.Encode(log, h, recs, record.None)
	if err != nil {
		tb.Fatal(err)
	}
	return log
}

// groupsOf describes the commits in a log directory.
func groupsOf(tb testing.TB, dir string) (list []string, damage int) {
	tb.Helper()
	got, err := GroupOffsets(tb.Context(), vfs.OS(), []string{dir}, func(*storage.CorruptError) { damage++ })
	if err != nil {
		tb.Fatal(err)
	}
	for _, o := range got {
		list = append(list, fmt.Sprintf("%s/%s/%d=%d", o.Group, o.Topic, o.Partition, o.Offset))
	}
	return list, damage
}

func TestGroupOffsetsOfABroker(t *testing.T) {
	got, damage := groupsOf(t, filepath.Join("testdata", "kafka-4.4.0"))
	want := "classic one/a.b-c/1=13 classic one/orders/0=50 classic-two/a.b-c/1=13 classic-two/orders/0=50 new-style/orders/0=20 txn/orders/0=9"
	if strings.Join(got, " ") != want || damage != 0 {
		t.Errorf("got %v, %d times damage, want %s", got, damage, want)
	}
}

func TestGroupOffsets(t *testing.T) {
	var next storage.Offset
	var log []byte
	plain := func(recs ...storage.Record) { log = appendCommits(t, log, &next, -1, recs...) }
	for v := range int16(4) {
		plain(commitRecord(v, fmt.Sprint("v", v), "t", 0, 10+int64(v), "note"))
	}
	plain(commitRecord(3, "moved", "t", 0, 1, ""), commitRecord(3, "moved", "t", 0, 2, ""), commitRecord(3, "moved", "t", 1, 3, ""))
	plain(commitRecord(3, "removed", "t", 0, 1, ""))
	plain(commitRecord(3, "removed", "t", 0, -1, ""))
	plain(commitRecord(3, "back", "t", 0, 1, ""), commitRecord(3, "back", "t", 0, -1, ""), commitRecord(3, "back", "t", 0, 5, ""))
	log = appendCommits(t, log, &next, 1, commitRecord(3, "committed", "t", 0, 4, ""))
	log = appendCommits(t, log, &next, 2, commitRecord(3, "aborted", "t", 0, 4, ""))
	log = appendCommits(t, log, &next, 3, commitRecord(3, "open", "t", 0, 4, ""))
	log = appendCommits(t, log, &next, 1, commitRecord(3, "overtaken", "t", 0, 4, ""))
	plain(commitRecord(3, "overtaken", "t", 0, 8, ""))
	first := len(log)
	log = appendMarker(t, log, &next, 2, record.Abort)
	log = appendMarker(t, log, &next, 1, record.Commit)
	log = appendCommits(t, log, &next, 2, commitRecord(3, "again", "t", 0, 6, ""))
	log = appendMarker(t, log, &next, 2, record.Commit)
	group := kmsg.GroupMetadataKey{Version: 2, Group: "v0"}
	plain(storage.Record{Key: group.AppendTo(nil), Value: []byte{0, 3, 0}}, storage.Record{Key: []byte("x")}, storage.Record{Value: []byte("no key")})
	bad := len(log)
	plain(commitRecord(3, "lost", "t", 0, 4, ""))
	log[bad+90] ^= 1
	plain(commitRecord(3, "last", "t", 0, 4, ""))

	// The log goes over two segments, and another partition lies beside it.
	root := t.TempDir()
	part := filepath.Join(root, "__consumer_offsets-3")
	writeInto(t, part, map[string][]byte{"00000000000000000000.log": log[:first], fmt.Sprintf("%020d.log", 20): log[first:]})
	var zero storage.Offset
	writeInto(t, filepath.Join(root, "__consumer_offsets-12"), map[string][]byte{"00000000000000000000.log": append(appendCommits(t, nil, &zero, -1, commitRecord(3, "other", "t", 0, 9, "")), 0, 0, 0)})
	writeInto(t, filepath.Join(root, "__consumer_offsets-4.0123456789abcdef0123456789abcdef-delete"), map[string][]byte{"00000000000000000000.log": log})
	writeInto(t, filepath.Join(root, "other-0"), map[string][]byte{"00000000000000000000.log": log})

	got, damage := groupsOf(t, root)
	want := "again/t/0=6 back/t/0=5 committed/t/0=4 last/t/0=4 moved/t/0=2 moved/t/1=3 other/t/0=9 overtaken/t/0=8 v0/t/0=10 v1/t/0=11 v2/t/0=12 v3/t/0=13"
	if strings.Join(got, " ") != want || damage != 1 {
		t.Errorf("got  %s, %d times damage\nwant %s, once", strings.Join(got, " "), damage, want)
	}
	all, err := GroupOffsets(t.Context(), vfs.OS(), []string{root}, func(*storage.CorruptError) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.Group == "v3" && (o.LeaderEpoch != 7 || o.Metadata != "note" || o.Committed != 1700000000001) || o.Group == "v0" && o.LeaderEpoch != -1 {
			t.Errorf("got %+v", o)
		}
	}
	// Of a broker with several log directories the partitions may be in any.
	second := t.TempDir()
	writeInto(t, filepath.Join(second, "__consumer_offsets-7"), map[string][]byte{"00000000000000000000.log": appendCommits(t, nil, new(storage.Offset), -1, commitRecord(3, "elsewhere", "t", 0, 9, ""))})
	both, err := GroupOffsets(t.Context(), vfs.OS(), []string{root, second}, func(*storage.CorruptError) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(both) != len(all)+1 || !slices.ContainsFunc(both, func(o GroupOffset) bool { return o.Group == "elsewhere" }) {
		t.Errorf("two directories: got %v", both)
	}
	if got, damage := groupsOf(t, t.TempDir()); len(got) != 0 || damage != 0 {
		t.Errorf("an empty directory: got %v", got)
	}
}
