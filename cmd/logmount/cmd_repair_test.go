package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/repair"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/fixture"
)

// flipByte damages a file.
func flipByte(t *testing.T, name string, at int) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 1
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRepairVerb(t *testing.T) {
	data := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	code, out, errs := runIn(t, "repair", data)
	if code != exitOK || errs != "" || out != data+": nothing to do\n" {
		t.Fatalf("clean: %d %q %q", code, out, errs)
	}
	flipByte(t, filepath.Join(data, "codec-none-0", "00000000000000000000.log"), 100)
	code, out, errs = runIn(t, "repair", data)
	if code != exitDamage || errs != "" || !strings.Contains(out, "bytes out of codec-none-0/00000000000000000000.log: 0 to ") || !strings.Contains(out, "2 actions to do") {
		t.Errorf("dry run: %d %q %q", code, out, errs)
	}
	if code, _, errs := runIn(t, "repair", data, "nobody"); code != exitFailed || !strings.Contains(errs, "nobody: no such topic") {
		t.Errorf("unknown topic: %d %q", code, errs)
	}
	if code, out, _ := runIn(t, "repair", data, "codec-gzip", "--apply"); code != exitOK || !strings.Contains(out, "nothing to do") {
		t.Errorf("another topic: %d %q", code, out)
	}
	lock, err := vfs.OS().Lock(filepath.Join(data, state.LockFile), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runIn(t, "repair", data, "--apply"); code != exitFailed || !strings.Contains(errs, "locked by another process") || strings.Count(errs, "\n") != 1 {
		t.Errorf("locked: %d %q", code, errs)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	code, out, errs = runIn(t, "repair", data, "--apply", "--json")
	if code != exitOK || errs != "" {
		t.Errorf("apply: %d %q %q", code, out, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var first repair.Action
	var last struct {
		Summary repair.Result
		Applied bool
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first.Kind != repair.Cut || len(first.Cuts) != 1 {
		t.Errorf("%v: %s", err, lines[0])
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Summary.Actions != 2 || !last.Applied {
		t.Errorf("%v: %s", err, lines[len(lines)-1])
	}
	if code, out, _ := runIn(t, "verify", data); code != exitOK {
		t.Errorf("verify afterwards: %d %s", code, out)
	}
}

func TestIndexVerb(t *testing.T) {
	data := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	code, out, errs := runIn(t, "index", "--check", data)
	if code != exitOK || errs != "" || !strings.Contains(out, "times-unordered-0/00000000000000000000.log: the indexes were made with an index.interval.bytes of") ||
		!strings.HasSuffix(out, "20 segments, 0 different, 0 damaged\n") {
		t.Fatalf("clean: %d %q %q", code, out, errs)
	}
	part := filepath.Join(data, "segments-0")
	name := filepath.Join(part, "00000000000000000000.index")
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, name, 20)
	if code, out, _ := runIn(t, "index", "--check", part); code != exitDamage || !strings.Contains(out, name[:len(name)-6]+".log: differs 00000000000000000000.index\n") {
		t.Errorf("different: %d %q", code, out)
	}
	if code, out, _ := runIn(t, "index", part); code != exitOK || !strings.HasSuffix(out, "3 segments, 1 written, 0 damaged\n") {
		t.Errorf("written: %d %q", code, out)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if code, _, errs := runIn(t, "index", "--sizes", part); code != exitFailed || !strings.Contains(errs, "ours alone") {
		t.Errorf("sizes: %d %q", code, errs)
	}
	// A partition outside of any log directory.
	copied := filepath.Join(t.TempDir(), "segments-0")
	if err := os.CopyFS(copied, os.DirFS(part)); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runIn(t, "index", copied); code != exitOK || !strings.Contains(out, "0 written") {
		t.Errorf("a copy: %d %q %q", code, out, errs)
	}
	if code, _, errs := runIn(t, "index", filepath.Join(data, "nothing")); code != exitFailed || strings.Count(errs, "\n") != 1 {
		t.Errorf("nothing: %d %q", code, errs)
	}
}

// TestJSONTellsTheDirectory: DATA may be a list, and paths are below one of it.
func TestJSONTellsTheDirectory(t *testing.T) {
	brokerDirs(t)
	for _, name := range []string{"a/t-0/00000000000000000000.index", "b/t-1/00000000000000000000.index"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"repair", "--json", "a,b"}, {"index", "--check", "--json", "a,b"}} {
		code, out, said := runIn(t, args...)
		if code != exitDamage {
			t.Fatalf("%v: %d, %s", args, code, said)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(out) {
			var o struct{ Data string }
			if err := json.Unmarshal([]byte(line), &o); err != nil || !filepath.IsAbs(o.Data) {
				t.Fatalf("%v: data %q in %s, %v", args, o.Data, line, err)
			}
			seen[filepath.Base(o.Data)] = true
		}
		if !seen["a"] || !seen["b"] {
			t.Errorf("%v: of directories %v, want a and b", args, seen)
		}
	}
}
