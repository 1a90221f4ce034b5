package inspect

import (
	"context"
	"fmt"
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
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// tree is a log directory: its files by their paths.
type tree map[string][]byte

func cloneTree(t tree) tree { return maps.Clone(t) }

// edit replaces a file by a copy that fn changes.
func (t tree) edit(name string, fn func(b []byte) []byte) {
	if _, ok := t[name]; !ok {
		panic("no file " + name)
	}
	t[name] = fn(slices.Clone(t[name]))
}

func (t tree) flip(name string, at int) {
	t.edit(name, func(b []byte) []byte { b[at] ^= 0x10; return b })
}

// disk puts a tree on a disk under /data.
func (t tree) disk(tb testing.TB) *memfs.FS {
	tb.Helper()
	m := memfs.New()
	made := map[string]bool{}
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	must(m.Mkdir("/data", 0o755))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if dir := path.Dir(name); dir != "." && !made[dir] {
			made[dir] = true
			must(m.Mkdir("/data/"+dir, 0o755))
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		f, err := m.OpenFile("/data/"+name, os.O_RDWR|os.O_CREATE, 0o644)
		must(err)
		_, err = f.WriteAt(t[name], 0)
		must(err)
		must(f.Close())
	}
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

// ownTree is a directory of ours: orders-0 with several segments, closed in order.
var ownTree = sync.OnceValue(func() tree { return writeOwn(nil, 12) })

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// writeOwn appends to orders-0, on a disk that may hold it already, and closes the engine.
func writeOwn(m *memfs.FS, appends int) tree {
	ctx := context.Background()
	if m == nil {
		m = memfs.New()
	}
	now := time.UnixMilli(1_788_000_000_000)
	e := must(local.Open(ctx, local.Options{FS: m, Dir: "/data", Create: true, Now: func() time.Time { return now }, Rand: rand.New(rand.NewSource(1))}))
	tp := storage.TopicPartition{Topic: "orders"}
	if _, err := e.Topic(ctx, "orders"); err != nil {
		spec := storage.TopicSpec{Name: "orders", Partitions: 1, Config: map[string]string{"segment.bytes": "30000", "index.interval.bytes": "2000"}}
		if err := e.CreateTopic(ctx, spec); err != nil {
			panic(err)
		}
	}
	p := must(e.Partition(ctx, tp))
	for i := range appends {
		var recs []storage.Record
		for j := range 60 {
			recs = append(recs, storage.Record{Timestamp: now.UnixMilli() + int64(i*100+j), Key: fmt.Appendf(nil, "k%d", j), Value: fmt.Appendf(nil, "%0100d", i*1000+j)})
		}
		must(p.Append(ctx, recs, 1000))
	}
	if err := e.Close(); err != nil {
		panic(err)
	}
	return readTree(panicTB{}, m, "/data", func(string) bool { return true })
}

// panicTB stands in where there is no test.
type panicTB struct{ testing.TB }

func (panicTB) Helper()           {}
func (panicTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// brokerTree is part of what a real broker left after an orderly stop.
func brokerTree(tb testing.TB, partitions ...string) tree {
	tb.Helper()
	dir := filepath.Join(fixture.Unpack(tb, "clean-4.4.0"), "clean")
	t := readTree(tb, vfs.OS(), dir, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir() || slices.Contains(partitions, name)
	})
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

// verify returns what Verify finds in a tree.
func verify(tb testing.TB, fsys vfs.FS, opt VerifyOptions) ([]Finding, Summary) {
	tb.Helper()
	var list []Finding
	sum, err := Verify(context.Background(), fsys, "/data", opt, func(f Finding) { list = append(list, f) })
	if err != nil {
		tb.Fatalf("verify: %v", err)
	}
	return list, sum
}

// kinds returns severity, kind and path of findings, sorted; what is found in the undamaged tree, and leftovers, are left out.
func kinds(list []Finding) []string {
	var out []string
	for _, f := range list {
		if f.What != FileLeftover {
			out = append(out, fmt.Sprintf("%s %s %s", f.Severity, f.What, f.Path))
		}
	}
	slices.Sort(out)
	return out
}

// batchesOf lists the batches of a log.
func batchesOf(tb testing.TB, log []byte) []Batch {
	tb.Helper()
	var list []Batch
	err := Walk(strings.NewReader(string(log)), int64(len(log)), -1, func(b Batch) error {
		b.Raw = slices.Clone(b.Raw)
		list = append(list, b)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return list
}
