package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// tree is a log directory: its files by their paths.
type tree map[string][]byte

// edit replaces a file by a copy that fn changes.
func (t tree) edit(name string, fn func(b []byte) []byte) {
	b, ok := t[name]
	if !ok {
		panic("no file " + name)
	}
	t[name] = fn(slices.Clone(b))
}

func (t tree) flip(name string, at int) {
	t.edit(name, func(b []byte) []byte { b[at] ^= 0x10; return b })
}

// disk puts a tree on a disk under /data, durably.
func (t tree) disk(tb testing.TB) *memfs.FS {
	tb.Helper()
	m := memfs.New()
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	made := map[string]bool{}
	must(m.Mkdir("/data", 0o755))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if dir := path.Dir(name); dir != "." && !made[dir] {
			made[dir] = true
			must(m.Mkdir("/data/"+dir, 0o755))
		}
		f, err := m.OpenFile("/data/"+name, os.O_RDWR|os.O_CREATE, 0o644)
		must(err)
		_, err = f.WriteAt(t[name], 0)
		must(err)
		must(f.Sync())
		must(f.Close())
	}
	for dir := range made {
		must(m.SyncDir("/data/" + dir))
	}
	must(m.SyncDir("/data"))
	must(m.SyncDir("/"))
	return m
}

// readTree reads a log directory; names says which of its partitions and files to take.
func readTree(tb testing.TB, fsys vfs.FS, dir string, names func(string) bool) tree {
	tb.Helper()
	t := tree{}
	var walk func(rel string)
	walk = func(rel string) {
		list, err := fsys.ReadDir(filepath.Join(dir, rel))
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range list {
			name := path.Join(rel, e.Name)
			if rel == "" && !names(e.Name) {
				continue
			}
			if e.Mode.IsDir() {
				walk(name)
				continue
			}
			b, err := vfs.ReadFile(fsys, filepath.Join(dir, name), 64<<20)
			if err != nil {
				tb.Fatal(err)
			}
			t[name] = b
		}
	}
	walk("")
	return t
}

func all(string) bool { return true }

func ok[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var testNow = time.UnixMilli(1_788_000_000_000)

func config(m map[string]string) (storage.TopicConfig, error) { return local.ParseConfig(m) }

// ownTree is a directory of ours: orders-0 with several segments and users-0, closed in order.
var ownTree = sync.OnceValue(func() tree {
	ctx := context.Background()
	m := memfs.New()
	e := ok(local.Open(ctx, local.Options{FS: m, Dir: "/data", Create: true, Now: func() time.Time { return testNow }, Rand: rand.New(rand.NewSource(1))}))
	for _, topic := range []string{"orders", "users"} {
		spec := storage.TopicSpec{Name: topic, Partitions: 1, Config: map[string]string{"segment.bytes": "20000", "index.interval.bytes": "2000"}}
		if err := e.CreateTopic(ctx, spec); err != nil {
			panic(err)
		}
		p := ok(e.Partition(ctx, storage.TopicPartition{Topic: topic}))
		for i := range 8 {
			var recs []storage.Record
			for j := range 60 {
				recs = append(recs, storage.Record{Timestamp: testNow.UnixMilli() + int64(i*100+j), Key: fmt.Appendf(nil, "k%d", j), Value: fmt.Appendf(nil, "%0100d", i*1000+j)})
			}
			ok(p.Append(ctx, recs, 1000))
		}
	}
	if err := e.Close(); err != nil {
		panic(err)
	}
	return readTree(panicTB{}, m, "/data", all)
})

// panicTB stands in where there is no test.
type panicTB struct{ testing.TB }

func (panicTB) Helper()           {}
func (panicTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// brokerTree is part of what a real broker left.
func brokerTree(tb testing.TB, archive, sub string, partitions ...string) tree {
	tb.Helper()
	dir := filepath.Join(fixture.Unpack(tb, archive), sub)
	t := readTree(tb, vfs.OS(), dir, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir() || slices.Contains(partitions, name)
	})
	delete(t, state.LockFile)
	for name, b := range t {
		if !strings.HasSuffix(name, "-checkpoint") || strings.Contains(name, "/") {
			continue
		}
		var kept []string
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[2:] {
			f := strings.Fields(line)
			if slices.Contains(partitions, f[0]+"-"+f[1]) {
				kept = append(kept, line)
			}
		}
		t[name] = fmt.Appendf(nil, "0\n%d\n%s", len(kept), strings.Join(append(kept, ""), "\n"))
	}
	return t
}

// records returns all records that can be read, as text, by partition and offset.
func records(tb testing.TB, fsys vfs.FS) map[string]string {
	tb.Helper()
	ctx := tb.Context()
	e, err := local.Open(ctx, local.Options{FS: fsys, Dir: "/data", ReadOnly: true, Now: func() time.Time { return testNow }, Rand: rand.New(rand.NewSource(1))})
	if err != nil {
		tb.Logf("open: %v", err)
		return nil
	}
	defer func() { _ = e.Close() }()
	topics, err := e.Topics(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]string{}
	for _, t := range topics {
		for _, n := range t.Partitions {
			tp := storage.TopicPartition{Topic: t.Name, Partition: n}
			p, err := e.Partition(ctx, tp)
			if err != nil {
				tb.Logf("%s: %v", tp, err)
				continue
			}
			s, err := p.Snapshot(ctx)
			if err != nil {
				tb.Logf("%s: %v", tp, err)
				continue
			}
			c := s.Records(s.Start())
			for bad := 0; bad < 10000; {
				r, err := c.Next(ctx)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					bad++
					continue
				}
				out[fmt.Sprintf("%s %d", tp, r.Offset)] = fmt.Sprintf("%d %q %q %q", r.Timestamp, r.Key, r.Value, r.Headers)
			}
			c.Close()
		}
	}
	return out
}

// lost returns the records that were there before and are not afterwards.
func lost(before, after map[string]string) []string {
	var out []string
	for k, v := range before {
		if after[k] != v {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// verified returns what Verify finds.
func verified(tb testing.TB, fsys vfs.FS) (damage, notices []inspect.Finding) {
	tb.Helper()
	_, err := inspect.Verify(context.Background(), fsys, "/data", inspect.VerifyOptions{Jobs: 1}, func(f inspect.Finding) {
		if f.Severity == inspect.Damage {
			damage = append(damage, f)
		} else {
			notices = append(notices, f)
		}
	})
	if err != nil {
		tb.Fatalf("verify: %v", err)
	}
	return damage, notices
}

// repaired repairs and returns the actions.
func repaired(tb testing.TB, fsys vfs.FS, opt Options) ([]Action, Result) {
	tb.Helper()
	actions, res, err := tryRepair(fsys, opt)
	if err != nil {
		for _, a := range actions {
			tb.Log(a.String())
		}
		tb.Fatalf("repair: %v", err)
	}
	return actions, res
}

func tryRepair(fsys vfs.FS, opt Options) (actions []Action, res Result, err error) {
	opt.Jobs, opt.Config, opt.Now = 1, config, func() time.Time { return testNow }
	opt.Emit = func(a Action) { actions = append(actions, a) }
	res, err = Repair(context.Background(), fsys, "/data", opt)
	return actions, res, err
}

// readJournal reads the journal.
func readJournal(tb testing.TB, t tree) []Entry {
	tb.Helper()
	var out []Entry
	for line := range strings.Lines(string(t[JournalFile])) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			tb.Fatalf("journal: %v", err)
		}
		out = append(out, e)
	}
	return out
}
