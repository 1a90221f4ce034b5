package repair

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/fixture"
)

// indexFiles returns the files beside the logs of a directory, by their paths.
func indexFiles(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*index"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		out[name] = b
	}
	return out
}

func runIndex(tb testing.TB, dir string, opt IndexOptions) []IndexResult {
	tb.Helper()
	var list []IndexResult
	if err := Index(tb.Context(), vfs.OS(), dir, opt, func(r IndexResult) { list = append(list, r) }); err != nil {
		tb.Fatalf("index: %v", err)
	}
	return list
}

func TestIndexEqualsTheBrokers(t *testing.T) {
	dir := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	found := map[string]int64{}
	for _, r := range runIndex(t, dir, IndexOptions{Check: true}) {
		if len(r.Differ) > 0 || r.Damaged != "" {
			t.Errorf("%+v", r)
		}
		if r.Found {
			found[filepath.Dir(r.Log)] = r.Interval
		}
	}
	if len(found) == 0 {
		t.Error("the interval of no topic was found out")
	}
	t.Logf("intervals: %v", found)
	before := indexFiles(t, dir)
	for name := range before {
		if strings.Contains(name, state.MetadataTopic) { // preallocated: it is never closed
			delete(before, name)
			continue
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runIndex(t, dir, IndexOptions{}) {
		if !r.Written && !strings.HasPrefix(r.Log, state.MetadataTopic) || r.Interval != usualInterval {
			t.Errorf("%+v", r)
		}
	}
	runIndex(t, dir, IndexOptions{Select: []string{"times-unordered"}, Interval: 200})
	after := indexFiles(t, dir)
	for name, want := range before {
		got, ok := after[name]
		if !ok || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
		delete(after, name)
	}
	for name := range after {
		if strings.Contains(name, state.MetadataTopic) {
			continue
		}
		t.Errorf("%s: made, but there was none", name)
	}
	if _, err := os.Stat(filepath.Join(dir, ".lock")); err == nil {
		t.Error("the lock was left")
	}
}

func TestIndexOfRunningAndOldBrokers(t *testing.T) {
	for _, test := range []struct{ archive, dir string }{
		{"live-4.4.0", "live"}, {"killed-4.4.0", "killed"}, {"legacy-3.9.1", "legacy/v0"}, {"legacy-3.9.1", "legacy/v1"},
	} {
		t.Run(strings.ReplaceAll(test.dir, "/", " "), func(t *testing.T) {
			dir := filepath.Join(fixture.Unpack(t, test.archive), test.dir)
			for _, r := range runIndex(t, dir, IndexOptions{Check: true}) {
				if len(r.Differ) > 0 || r.Damaged != "" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}
