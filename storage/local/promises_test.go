package local

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// count returns how many records a log shows.
func count(t *testing.T, p storage.Partition) int {
	t.Helper()
	s, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := s.Records(s.Start())
	defer c.Close()
	for n := 0; ; n++ {
		if _, err := c.Next(t.Context()); errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func partitionOf(t *testing.T, e *Engine, topic string) storage.Partition {
	t.Helper()
	p, err := e.Partition(t.Context(), storage.TopicPartition{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestImportCompacted: compaction leaves offsets out at the end of segments. What lies behind must not be taken for what follows a lost segment.
func TestImportCompacted(t *testing.T) {
	m := memfs.New()
	if err := vfs.MkdirAll(m, "/data/c-0", 0o755); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, seg := range []struct {
		base    storage.Offset
		offsets []storage.Offset
	}{{0, []storage.Offset{0, 3, 7}}, {10, []storage.Offset{12, 15}}, {20, []storage.Offset{20, 21}}} {
		var recs []storage.Record
		for _, o := range seg.offsets {
			recs = append(recs, storage.Record{Offset: o, Timestamp: 1000, Value: []byte("v")})
		}
		p, err := record.Encode(nil, record.NewHeader(recs, 0), recs, record.None)
		if err != nil {
			t.Fatal(err)
		}
		writeBytes(t, m, "/data/c-0/"+state.FileName(seg.base, state.ExtLog), string(p))
		want += len(recs)
	}
	syncTree(t, m, "/data")
	if _, err := Import(t.Context(), testOptions(m), "c"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e := mustOpen(t, testOptions(m))
		if got := count(t, partitionOf(t, e, "c")); got != want {
			t.Fatalf("%d records, want %d", got, want)
		}
		mustClose(t, e)
	}
}

// TestDeleteWithOpenTransaction: what an open transaction wrote is not shown under read_committed, and may be yet.
func TestDeleteWithOpenTransaction(t *testing.T) {
	m := memfs.New()
	o := testOptions(m)
	o.Exact = true
	e := mustOpen(t, o)
	p := mustCreate(t, e, "t")
	recs := []storage.Record{{Timestamp: 1, Value: []byte("v")}}
	h := record.NewHeader(recs, 0)
	h.ProducerID, h.ProducerEpoch, h.BaseSequence, h.Attributes = 7, 0, 0, record.AttrTransactional
	b, err := record.Encode(nil, h, recs, record.None)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.AppendBatches(t.Context(), [][]byte{b}, false); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	o.Committed = true
	e = mustOpen(t, o)
	defer mustClose(t, e)
	if err := e.DeleteTopic(t.Context(), "t", false); !errors.Is(err, storage.ErrNotEmpty) {
		t.Errorf("got %v, want %v", err, storage.ErrNotEmpty)
	}
}

// TestRefusedStart: a start that could not be moved has not moved at the next mount either.
func TestRefusedStart(t *testing.T) {
	f := faultfs.New(memfs.New())
	o := testOptions(f)
	e := mustOpen(t, o)
	p := mustCreate(t, e, "t")
	for range 3 {
		if _, err := p.Append(t.Context(), []storage.Record{{Timestamp: 1, Value: []byte("v")}}, 100); err != nil {
			t.Fatal(err)
		}
	}
	f.Hook(func(op faultfs.Op, name string) error {
		if op == faultfs.OpOpen && strings.Contains(name, state.FileName(3, "")) {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := p.SetStart(t.Context(), 3); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want %v", err, syscall.ENOSPC)
	}
	f.Hook(nil)
	mustClose(t, e)
	e = mustOpen(t, o)
	defer mustClose(t, e)
	if got := count(t, partitionOf(t, e, "t")); got != 3 {
		t.Errorf("refused, and yet %d records are left of 3", got)
	}
}

// TestTornOnFullDisk: a log whose torn end cannot be kept for lack of room is read as it is, and recovered once there is some.
func TestTornOnFullDisk(t *testing.T) {
	m := memfs.New()
	e := mustOpen(t, testOptions(m))
	p := mustCreate(t, e, "t")
	for range 3 {
		if _, err := p.Append(t.Context(), []storage.Record{{Timestamp: 1, Value: []byte("v")}}, 100); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, e)
	remove(t, m, markerPath)
	edit(t, m, "/data/t-0/"+state.FileName(0, state.ExtLog), func(s string) string { return s + "torn" })
	f := faultfs.New(m)
	f.Hook(func(op faultfs.Op, name string) error {
		if op == faultfs.OpWrite && strings.HasSuffix(name, state.SuffixTorn) {
			return syscall.ENOSPC
		}
		return nil
	})
	e = mustOpen(t, testOptions(f))
	p = partitionOf(t, e, "t")
	if got := count(t, p); got != 3 {
		t.Errorf("%d records, want 3", got)
	}
	if err := p.Writable(t.Context()); !errors.Is(err, storage.ErrReadOnly) || !strings.Contains(err.Error(), "room") {
		t.Errorf("got %v, want %v and the reason", err, storage.ErrReadOnly)
	}
	mustClose(t, e)
	if there, err := vfs.Exists(f, markerPath); there || err != nil {
		t.Errorf("the marker of a clean shutdown is there: %v, %v", there, err)
	}
	f.Hook(nil)
	e = mustOpen(t, testOptions(f))
	defer mustClose(t, e)
	p = partitionOf(t, e, "t")
	if _, err := p.Append(t.Context(), []storage.Record{{Timestamp: 1, Value: []byte("v")}}, 100); err != nil || count(t, p) != 4 {
		t.Errorf("with room again: %v, %d records, want 4", err, count(t, p))
	}
	if _, err := f.Stat("/data/t-0/" + state.FileName(0, state.ExtLog) + state.SuffixTorn); err != nil {
		t.Errorf("what was cut off was not kept: %v", err)
	}
}
