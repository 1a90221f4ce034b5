// Package logtree has log directories in memory for tests: made by the engine or taken from a real broker, to be damaged and put on a disk.
package logtree

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
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
)

// Tree is a log directory: its files by their paths. A path that ends in a slash is an empty directory.
type Tree map[string][]byte

// Edit replaces a file by a copy that fn changes.
func (t Tree) Edit(name string, fn func(b []byte) []byte) {
	b, ok := t[name]
	if !ok {
		panic("no file " + name)
	}
	t[name] = fn(slices.Clone(b))
}

// Flip changes one bit of a byte of a file.
func (t Tree) Flip(name string, at int) {
	t.Edit(name, func(b []byte) []byte { b[at] ^= 0x10; return b })
}

// Disk puts a tree on a disk under /data, durably.
func (t Tree) Disk(tb testing.TB) *memfs.FS {
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
		if strings.HasSuffix(name, "/") {
			continue
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

// All takes every name.
func All(string) bool { return true }

// TB stands in where there is no test: what would end one panics.
type TB struct{ testing.TB }

// Helper implements testing.TB.
func (TB) Helper() {}

// Fatal implements testing.TB.
func (TB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf implements testing.TB.
func (TB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Read reads a log directory; names says which of its partitions and files to take.
func Read(tb testing.TB, fsys vfs.FS, dir string, names func(string) bool) Tree {
	tb.Helper()
	t := Tree{}
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

// Now is when Write appends.
var Now = time.UnixMilli(1_788_000_000_000)

// Write appends to partition 0 of topics that are ours, making those that are not on m yet, and closes the engine in order. Where there is no disk it makes one.
// It panics where it fails: what it returns is often made once for all tests of a package.
func Write(m *memfs.FS, appends int, config map[string]string, topics ...string) Tree {
	ctx := context.Background()
	if m == nil {
		m = memfs.New()
	}
	e := Must(local.Open(ctx, local.Options{FS: m, Dir: "/data", Create: true, Now: func() time.Time { return Now }, Rand: rand.New(rand.NewSource(1))}))
	for _, topic := range topics {
		if _, err := e.Topic(ctx, topic); err != nil {
			if err := e.CreateTopic(ctx, storage.TopicSpec{Name: topic, Partitions: 1, Config: config}); err != nil {
				panic(err)
			}
		}
		p := Must(e.Partition(ctx, storage.TopicPartition{Topic: topic}))
		for i := range appends {
			var recs []storage.Record
			for j := range 60 {
				recs = append(recs, storage.Record{Timestamp: Now.UnixMilli() + int64(i*100+j), Key: fmt.Appendf(nil, "k%d", j), Value: fmt.Appendf(nil, "%0100d", i*1000+j)})
			}
			Must(p.Append(ctx, recs, 1000))
		}
	}
	if err := e.Close(); err != nil {
		panic(err)
	}
	return Read(TB{}, m, "/data", All)
}

// Must returns v, or panics where there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Broker is part of what a real broker left in the directory sub of an archive of package fixture.
func Broker(tb testing.TB, archive, sub string, partitions ...string) Tree {
	tb.Helper()
	dir := filepath.Join(fixture.Unpack(tb, archive), sub)
	t := Read(tb, vfs.OS(), dir, func(name string) bool {
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
