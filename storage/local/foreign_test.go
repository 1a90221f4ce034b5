package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// brokerDir copies a broker's directory to /data of a disk in memory: the files at the top, the metadata log, and the partitions that are named.
func brokerDir(t *testing.T, archive string, partitions ...string) *memfs.FS {
	t.Helper()
	root := filepath.Join(fixture.Unpack(t, archive+"-4.4.0"), archive)
	m := memfs.New()
	copyDir(t, m, root, "/data", func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		if top == "__cluster_metadata-0" && strings.HasSuffix(name, "index") {
			return false // large, and nobody reads them
		}
		return !strings.Contains(name, "/") && !isDir(filepath.Join(root, name)) || slices.Contains(append(partitions, "__cluster_metadata-0"), top)
	})
	syncTree(t, m, "/data")
	if err := m.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return m
}

// cloneDisk returns a copy of a disk on which everything has been synced.
func cloneDisk(m *memfs.FS) *memfs.FS {
	return m.Crash(rand.New(rand.NewSource(1)), memfs.CrashOptions{})
}

func isDir(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}

func copyDir(t *testing.T, m *memfs.FS, from, to string, want func(name string) bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if name != "." && !want(name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return m.Mkdir(filepath.Join(to, name), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := m.OpenFile(filepath.Join(to, name), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 { // a preallocated file is a hole
			if _, err := f.WriteAt(b[:n], 0); err != nil {
				return err
			}
		}
		return errors.Join(f.Truncate(int64(len(b))), f.Sync(), f.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func syncTree(t *testing.T, m vfs.FS, dir string) {
	t.Helper()
	entries, err := m.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Mode.IsDir() {
			syncTree(t, m, filepath.Join(dir, e.Name))
		}
	}
	if err := m.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
}

// treeOf reads all files below a directory.
func treeOf(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name)
		if e.Mode.IsDir() {
			for k, v := range treeOf(t, fsys, name) {
				out[k] = v
			}
			continue
		}
		b, err := vfs.ReadFile(fsys, name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// changes lists the files that differ.
func changes(before, after map[string]string) []string {
	var out []string
	for name, b := range before {
		if a, there := after[name]; !there || a != b {
			out = append(out, name)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func foreignOptions(fsys vfs.FS) Options {
	o := testOptions(fsys)
	o.ReadWrite = true
	return o
}

// headersFrom returns the headers of the batches from position pos on.
func headersFrom(t *testing.T, log string, pos int) []record.Header {
	t.Helper()
	var out []record.Header
	for b := []byte(log)[pos:]; len(b) > 0; {
		h, err := record.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := record.CheckCRC(b[:h.Size()]); err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
		b = b[h.Size():]
	}
	return out
}

func TestBrokersLogGoesOn(t *testing.T) {
	const name = "codec-none-0"
	fsys := brokerDir(t, "clean", name, "transactions-0", "start-moved-0", "segments-0", "compacted-0")
	before := treeOf(t, fsys, "/data")
	e := mustOpen(t, foreignOptions(fsys))
	if fileText(t, fsys, markerPath) != "none" {
		t.Error("the marker is still there")
	}
	p := mustPartition(t, e, "codec-none", 0)
	for i := range 3 {
		a, err := p.Append(t.Context(), []storage.Record{{Timestamp: 1, Value: []byte("a")}, {Timestamp: 2, Key: []byte("k")}}, 1<<14)
		if want := storage.Offset(247 + 2*i); err != nil || a.First != want || a.Next != want+2 {
			t.Fatalf("append: got %+v, %v, want offsets from %d", a, err, want)
		}
	}
	mustAppend(t, mustPartition(t, e, "transactions", 0), "x")
	if err := mustPartition(t, e, "start-moved", 0).SetStart(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"segments", "compacted"} { // looked at only
		s, err := mustPartition(t, e, topic, 0).Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(t.Context(), s.Start()); err != nil {
			t.Error(err)
		}
		if err := mustPartition(t, e, topic, 0).Sync(t.Context()); err != nil {
			t.Error(err)
		}
	}
	mustClose(t, e)
	after := treeOf(t, fsys, "/data")
	want := []string{
		"/data/codec-none-0/00000000000000000000.log", "/data/codec-none-0/00000000000000000247.snapshot", "/data/codec-none-0/00000000000000000253.snapshot",
		"/data/log-start-offset-checkpoint", "/data/recovery-point-offset-checkpoint", "/data/replication-offset-checkpoint",
		"/data/transactions-0/00000000000000000010.log", "/data/transactions-0/00000000000000000065.snapshot", "/data/transactions-0/00000000000000000066.snapshot",
	}
	var got []string
	for _, c := range changes(before, after) {
		if !strings.Contains(c, "index") { // below
			got = append(got, c)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("changed files: got %q, want %q", got, want)
	}
	if b, a := before["/data/codec-none-0/00000000000000000247.snapshot"], after["/data/codec-none-0/00000000000000000253.snapshot"]; a != b {
		t.Errorf("producers: got %x, want %x", a, b)
	}
	for _, c := range []string{"recovery-point-offset-checkpoint", "replication-offset-checkpoint"} {
		was := strings.NewReplacer("codec-none 0 247", "codec-none 0 253", "transactions 0 65", "transactions 0 66").Replace(before["/data/"+c])
		if got := after["/data/"+c]; got != was {
			t.Errorf("%s: got %q, want %q", c, got, was)
		}
	}
	if got, want := after["/data/log-start-offset-checkpoint"], "0\n1\nstart-moved 0 50\n"; got != want {
		t.Errorf("log starts: got %q, want %q", got, want)
	}
	log := "/data/codec-none-0/00000000000000000000.log"
	if !strings.HasPrefix(after[log], before[log]) {
		t.Fatal("what the broker wrote has changed")
	}
	for _, h := range headersFrom(t, after[log], len(before[log])) {
		if h.LeaderEpoch != 0 || h.ProducerID != -1 || h.BaseSequence != -1 {
			t.Errorf("got %+v, want epoch 0 and no producer", h)
		}
	}
	checkIndex(t, after, log)
}

// checkIndex compares the indexes of a segment with a rebuild.
func checkIndex(t *testing.T, files map[string]string, log string) {
	t.Helper()
	b := index.NewBuilder(0, 4096, 10<<20)
	var offsets, times []byte
	pos := 0
	for _, h := range headersFrom(t, files[log], 0) {
		addOffset, oe, addTime, te := b.Add(h.LastOffset(), h.MaxTimestamp, storage.Pos(pos), h.Size())
		if addOffset {
			offsets, _ = index.AppendOffsetEntry(offsets, 0, oe)
		}
		if addTime {
			times, _ = index.AppendTimeEntry(times, 0, te)
		}
		pos += int(h.Size())
	}
	if te, ok := b.Close(); ok {
		times, _ = index.AppendTimeEntry(times, 0, te)
	}
	stem := strings.TrimSuffix(log, ".log")
	if files[stem+".index"] != string(offsets) || files[stem+".timeindex"] != string(times) {
		t.Errorf("%s: indexes of %d and %d bytes are not those of a rebuild, %d and %d", stem, len(files[stem+".index"]), len(files[stem+".timeindex"]), len(offsets), len(times))
	}
}

// TestUnclosedBrokersLog appends to logs that a broker did not close: they are checked first, and their preallocated indexes trimmed.
func TestUnclosedBrokersLog(t *testing.T) {
	fsys := brokerDir(t, "live", "codec-gzip-0", "segments-0")
	before := treeOf(t, fsys, "/data")
	e := mustOpen(t, foreignOptions(fsys))
	mustAppend(t, mustPartition(t, e, "codec-gzip", 0), "x")
	mustPartition(t, e, "segments", 0)
	mustClose(t, e)
	after := treeOf(t, fsys, "/data")
	if _, there := after[markerPath]; there {
		t.Error("a marker was made")
	}
	checkIndex(t, after, "/data/codec-gzip-0/00000000000000000000.log")
	for _, c := range changes(before, after) {
		if strings.Contains(c, "segments-0") {
			t.Errorf("%s was changed", c)
		}
	}
	var c state.Checkpoint
	c, err := state.ParseCheckpoint([]byte(after["/data/"+state.RecoveryPointFile]))
	if o, _ := c.Get(storage.TopicPartition{Topic: "codec-gzip"}); err != nil || o != 248 {
		t.Errorf("recovery point: got %d, %v, want 248", o, err)
	}
}

func writeBytes(t *testing.T, fsys vfs.FS, name, b string) {
	t.Helper()
	if err := vfs.WriteFile(fsys, name, []byte(b), 0o644, nil); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, fsys vfs.FS, name string, change func(string) string) {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	writeBytes(t, fsys, name, change(string(b)))
}

// remove takes away files or a directory of files.
func remove(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	for path := range treeOf(t, fsys, filepath.Dir(name)) {
		if path == name || strings.HasPrefix(path, name+"/") {
			if err := fsys.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = fsys.Remove(name)
}

func TestWhoMayAppend(t *testing.T) {
	const log = "/data/codec-none-0/00000000000000000000.log"
	disk := brokerDir(t, "clean", "codec-none-0", "codec-gzip-0", "compacted-0", "__transaction_state-0")
	meta := func(t *testing.T, fsys vfs.FS) { t.Helper(); remove(t, fsys, "/data/__cluster_metadata-0") }
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, fsys vfs.FS)
		options func(o *Options)
		topic   string // codec-none if empty
		err     error  // of Writable; nil: appends work
		why     string
	}{
		{name: "the sole replica"},
		{name: "not asked for", options: func(o *Options) { o.ReadWrite = false }, err: storage.ErrReadOnly, why: "broker's log directory"},
		{name: "read-only", options: func(o *Options) { o.ReadOnly = true }, err: storage.ErrReadOnly, why: "opened read-only"},
		{name: "internal", topic: "__transaction_state", err: storage.ErrNotPermitted, why: "internal topic"},
		{name: "the metadata log", topic: "__cluster_metadata", err: storage.ErrNotPermitted, why: "internal topic"},
		{name: "internal, assumed", topic: "__transaction_state", options: func(o *Options) { o.Unreplicated = []string{"__transaction_state"} }, err: storage.ErrNotPermitted},
		{name: "no metadata", prepare: meta, err: storage.ErrReadOnly, why: "assume-unreplicated=codec-none"},
		{name: "no metadata, assumed", prepare: meta, options: func(o *Options) { o.Unreplicated = []string{"x", "codec-none"} }},
		{name: "no metadata, another assumed", prepare: meta, options: func(o *Options) { o.Unreplicated = []string{"x"} }, err: storage.ErrReadOnly},
		{name: "metadata elsewhere", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			if err := fsys.Mkdir("/meta", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := fsys.Rename("/data/__cluster_metadata-0", "/meta/__cluster_metadata-0"); err != nil {
				t.Fatal(err)
			}
		}, options: func(o *Options) { o.MetadataDirs = []string{"/nowhere", "/meta"} }},
		{name: "metadata elsewhere of another cluster", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			if err := fsys.Mkdir("/meta", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := fsys.Rename("/data/__cluster_metadata-0", "/meta/__cluster_metadata-0"); err != nil {
				t.Fatal(err)
			}
			writeBytes(t, fsys, "/meta/meta.properties", "version=1\nnode.id=1\ncluster.id=other\n")
		}, options: func(o *Options) { o.MetadataDirs = []string{"/meta/__cluster_metadata-0"} }, err: storage.ErrReadOnly, why: "of cluster other"},
		{name: "damaged metadata", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/__cluster_metadata-0/00000000000000000000.log", func(s string) string { return s[:300] + "x" + s[301:] })
		}, err: storage.ErrReadOnly, why: "nobody tells"},
		{name: "torn metadata", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/__cluster_metadata-0/00000000000000000000.log", func(s string) string { return s[:len(s)-3] })
		}},
		{name: "another node", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/meta.properties", func(s string) string { return strings.Replace(s, "node.id=1", "node.id=2", 1) })
		}, err: storage.ErrReadOnly, why: "replicas on nodes 1, this is node 2"},
		{name: "no node", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/meta.properties", func(s string) string { return strings.Replace(s, "node.id=1", "", 1) })
		}, err: storage.ErrReadOnly, why: "node.id"},
		{name: "another topic of that name", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/codec-none-0/partition.metadata", func(s string) string { return s[:len(s)-4] + "AAAA" })
		}, err: storage.ErrReadOnly, why: "do not know it"},
		{name: "the id of another topic", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/codec-none-0/partition.metadata", func(string) string { return fileText(t, fsys, "/data/codec-gzip-0/partition.metadata") })
		}, err: storage.ErrReadOnly, why: "do not know it"},
		{name: "no topic id", prepare: func(t *testing.T, fsys vfs.FS) { t.Helper(); remove(t, fsys, "/data/codec-none-0/partition.metadata") }, err: storage.ErrReadOnly, why: "topic id"},
		{name: "tiered", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/log-start-offset-checkpoint", func(string) string { return "0\n1\ncompacted 0 0\n" })
			remove(t, fsys, "/data/compacted-0/00000000000000000000.log")
		}, topic: "compacted", err: storage.ErrReadOnly, why: "remote storage"},
		{name: "a copy", prepare: func(t *testing.T, fsys vfs.FS) { t.Helper(); meta(t, fsys); remove(t, fsys, "/data/meta.properties") }},
		{name: "an internal topic of a copy", prepare: func(t *testing.T, fsys vfs.FS) { t.Helper(); remove(t, fsys, "/data/meta.properties") }, topic: "__transaction_state", err: storage.ErrNotPermitted},
		{name: "a torn end", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, log, func(s string) string { return s[:len(s)-1] })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "zeros at the end", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, log, func(s string) string { return s + strings.Repeat("\x00", 4096) })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "a last batch with a wrong checksum", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, log, func(s string) string { return s[:len(s)-1] + "\xfe" })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "damage in the middle of a log that was closed", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, log, func(s string) string { return s[:200] + "\xfe" + s[201:] })
		}},
		{name: "damage in the middle of one that was not", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			remove(t, fsys, markerPath)
			edit(t, fsys, log, func(s string) string { return s[:200] + "\xfe" + s[201:] })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "not closed, and whole", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			remove(t, fsys, markerPath)
			remove(t, fsys, "/data/"+state.RecoveryPointFile)
		}},
		{name: "not closed, and torn", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			remove(t, fsys, markerPath)
			edit(t, fsys, log, func(s string) string { return s[:len(s)-1] })
		}, err: storage.ErrReadOnly, why: "repair --apply"},
		{name: "a compaction cut short", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			writeBytes(t, fsys, log+".cleaned", "x")
		}, err: storage.ErrReadOnly, why: "compaction was cut short"},
		{name: "no indexes", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			remove(t, fsys, strings.TrimSuffix(log, "log")+"index")
			remove(t, fsys, strings.TrimSuffix(log, "log")+"timeindex")
		}},
		{name: "no time index", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			remove(t, fsys, strings.TrimSuffix(log, "log")+"timeindex")
		}},
		{name: "no epochs", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			writeBytes(t, fsys, "/data/codec-none-0/leader-epoch-checkpoint", "")
		}},
		{name: "a start above the end", prepare: func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			edit(t, fsys, "/data/log-start-offset-checkpoint", func(string) string { return "0\n1\ncodec-none 0 999\n" })
		}, err: storage.ErrReadOnly, why: "above its end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.topic == "" {
				tt.topic = "codec-none"
			}
			fsys := cloneDisk(disk)
			if tt.prepare != nil {
				tt.prepare(t, fsys)
			}
			before := treeOf(t, fsys, "/data")
			o := foreignOptions(fsys)
			if tt.options != nil {
				tt.options(&o)
			}
			e := mustOpen(t, o)
			p := mustPartition(t, e, tt.topic, 0)
			s, err := p.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			end := s.End()
			werr := p.Writable()
			a, aerr := p.Append(t.Context(), []storage.Record{{Timestamp: 1, Value: []byte("new")}}, 100)
			serr := p.SetStart(t.Context(), end)
			for what, err := range map[string]error{"writable": werr, "append": aerr, "start": serr} {
				if !errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), tt.why) {
					t.Errorf("%s: got %v, want %v because of %q", what, err, tt.err, tt.why)
				}
			}
			if tt.err == nil && (a.First != end || a.Next != end+1) {
				t.Errorf("append: got %+v, want offset %d", a, end)
			}
			mustClose(t, e)
			after := treeOf(t, fsys, "/data")
			if tt.err != nil {
				if got := changes(before, after); len(got) > 0 {
					t.Errorf("a log that was refused: %q changed", got)
				}
				return
			}
			if after[markerPath] != before[markerPath] {
				t.Errorf("marker: got %q, want %q", after[markerPath], before[markerPath])
			}
			if e := after["/data/codec-none-0/leader-epoch-checkpoint"]; e != "0\n1\n0 0\n" {
				t.Errorf("epochs: got %q", e)
			}
			o.ReadWrite, o.ReadOnly = false, true
			e = mustOpen(t, o)
			defer mustClose(t, e)
			s, err = mustPartition(t, e, tt.topic, 0).Snapshot(t.Context())
			if err != nil || s.End() != end+1 || s.Start() != end {
				t.Fatalf("afterwards: got %v, want %d to %d", err, end, end+1)
			}
			r, err := s.Records(end).Next(t.Context())
			if err != nil || string(r.Value) != "new" {
				t.Errorf("afterwards: got %v, %v", r, err)
			}
		})
	}
}

func TestForeignTopicsStay(t *testing.T) {
	fsys := brokerDir(t, "clean", "codec-none-0")
	before := treeOf(t, fsys, "/data")
	e := mustOpen(t, foreignOptions(fsys))
	ctx := t.Context()
	for what, err := range map[string]error{
		"create": e.CreateTopic(ctx, storage.TopicSpec{Name: "new", Partitions: 1}),
		"delete": e.DeleteTopic(ctx, "codec-none", true),
		"add":    e.AddPartition(ctx, "codec-none", 1),
	} {
		if !errors.Is(err, storage.ErrNotPermitted) {
			t.Errorf("%s: got %v, want %v", what, err, storage.ErrNotPermitted)
		}
	}
	e.checkpointTick(ctx)
	mustClose(t, e)
	if got := changes(before, treeOf(t, fsys, "/data")); len(got) > 0 {
		t.Errorf("changed: %q", got)
	}
}

func TestForeignOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, fsys vfs.FS)
	}{
		{"a checkpoint that cannot be read", func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			writeBytes(t, fsys, "/data/"+state.RecoveryPointFile, "0\n7\n")
		}},
		{"high watermarks that cannot be read", func(t *testing.T, fsys vfs.FS) {
			t.Helper()
			writeBytes(t, fsys, "/data/"+state.HighWatermarkFile, "?")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := brokerDir(t, "clean", "codec-none-0")
			tt.prepare(t, fsys)
			before := treeOf(t, fsys, "/data")
			if _, err := Open(t.Context(), foreignOptions(fsys)); !errors.Is(err, storage.ErrReadOnly) {
				t.Errorf("got %v, want %v", err, storage.ErrReadOnly)
			}
			if got := changes(before, treeOf(t, fsys, "/data")); len(got) > 0 {
				t.Errorf("changed: %q", got)
			}
		})
	}
}

func TestForeignOwners(t *testing.T) {
	fsys := brokerDir(t, "clean", "codec-none-0", "segments-0")
	for name, mode := range map[string]fs.FileMode{"/data": 0o750, "/data/segments-0": 0o700} {
		if err := errors.Join(fsys.Chown(name, 77, 88), fsys.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
	}
	e := mustOpen(t, foreignOptions(fsys))
	p := mustPartition(t, e, "segments", 0)
	for range 2 { // the first one rolls: the broker's records are old
		if _, err := p.Append(t.Context(), []storage.Record{{Timestamp: 4e12, Value: []byte("x")}}, 100); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, uid uint32, mode fs.FileMode) {
		t.Helper()
		st, err := fsys.Stat(name)
		if err != nil || st.UID != uid || st.Mode.Perm() != mode {
			t.Errorf("%s: got %+v, %v, want user %d, mode %o", name, st, err, uid, mode)
		}
	}
	check("/data/.lock", 77, 0o640)
	if err := p.SetStart(t.Context(), 20001); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	for _, f := range []string{".kafka_cleanshutdown", state.RecoveryPointFile, state.LogStartFile, state.HighWatermarkFile} {
		check("/data/"+f, 77, 0o640)
	}
	entries, err := fsys.ReadDir("/data/segments-0")
	if err != nil {
		t.Fatal(err)
	}
	news := 0
	for _, en := range entries {
		if base, _, _, ok := state.ParseFileName(en.Name); ok && base >= 20000 {
			check("/data/segments-0/"+en.Name, 77, 0o600)
			news++
		}
	}
	if news < 4 {
		t.Errorf("got %d new files, want a segment and a snapshot", news)
	}
}

func TestForeignOwnersOutOfReach(t *testing.T) {
	fsys := brokerDir(t, "clean", "codec-none-0")
	if err := fsys.Chown("/data/codec-none-0", 77, 88); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, fsys, "/data")
	_, err := Open(t.Context(), foreignOptions(noChown{fsys}))
	if !errors.Is(err, storage.ErrReadOnly) || !strings.Contains(fmt.Sprint(err), "codec-none-0") {
		t.Errorf("got %v, want %v naming codec-none-0", err, storage.ErrReadOnly)
	}
	if got := changes(before, treeOf(t, fsys, "/data")); len(got) > 0 {
		t.Errorf("changed: %q", got)
	}
}

// noChown is a disk on which nothing can be given away.
type noChown struct{ vfs.FS }

func (noChown) Chown(name string, _, _ uint32) error {
	return &fs.PathError{Op: "chown", Path: name, Err: fs.ErrPermission}
}

func TestForeignLockLost(t *testing.T) {
	fsys := brokerDir(t, "clean", "codec-none-0")
	e := mustOpen(t, foreignOptions(fsys))
	p := mustPartition(t, e, "codec-none", 0)
	mustAppend(t, p, "x")
	if err := fsys.Remove("/data/.lock"); err != nil {
		t.Fatal(err)
	}
	e.lockTick()
	if _, err := p.Append(context.Background(), []storage.Record{{Value: []byte("y")}}, 100); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("append: got %v, want %v", err, storage.ErrReadOnly)
	}
	_ = e.Close()
	if fileText(t, fsys, markerPath) != "none" {
		t.Error("a marker was made although another may have the directory")
	}
}
