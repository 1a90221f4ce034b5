package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

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

// TestForeignEpochs appends with the epoch that the log's next record must have.
func TestForeignEpochs(t *testing.T) {
	const file = "/data/codec-none-0/leader-epoch-checkpoint"
	for _, tt := range []struct {
		name, file, want string
		epoch            int32
		unclean          bool
	}{
		{name: "one", file: "0\n1\n0 0\n", want: "0\n1\n0 0\n"},
		{name: "the last", file: "0\n2\n0 0\n7 100\n", want: "0\n2\n0 0\n7 100\n", epoch: 7},
		{name: "of a leader that wrote nothing", file: "0\n2\n0 0\n7 247\n", want: "0\n2\n0 0\n7 247\n", epoch: 7},
		{name: "behind the end", file: "0\n3\n0 0\n7 247\n8 300\n", want: "0\n2\n0 0\n7 247\n", epoch: 7},
		{name: "empty", file: "", want: "0\n1\n0 0\n"},
		{name: "not to be read", file: "0\n9\n", want: "0\n1\n0 0\n"},
		{name: "unclean", file: "0\n1\n0 0\n", want: "0\n1\n0 0\n", unclean: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := brokerDir(t, "clean", "codec-none-0")
			const log = "/data/codec-none-0/00000000000000000000.log"
			before := len(fileText(t, fsys, log))
			writeBytes(t, fsys, file, tt.file)
			if tt.unclean {
				remove(t, fsys, markerPath)
			}
			e := mustOpen(t, foreignOptions(fsys))
			mustAppend(t, mustPartition(t, e, "codec-none", 0), "x")
			mustClose(t, e)
			if got := fileText(t, fsys, file); got != tt.want {
				t.Errorf("file: got %q, want %q", got, tt.want)
			}
			if h := headersFrom(t, fileText(t, fsys, log), before); len(h) != 1 || h[0].LeaderEpoch != tt.epoch {
				t.Errorf("batch: got %+v, want epoch %d", h, tt.epoch)
			}
		})
	}
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
			werr := p.Writable(context.Background())
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
