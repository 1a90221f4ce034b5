package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/vfs"
)

func TestDataPaths(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, d := range []string{"a", "b", "x,y"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", "l"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"one", "a", []string{"a"}},
		{"two", "a,b", []string{"a", "b"}},
		{"links and blanks, as in server.properties", " l , ./b ,", []string{"a", "b"}},
		{"a directory with a comma", "x,y", []string{"x,y"}},
		{"a new directory with a comma", "new,", []string{"new,"}},
		{"a list of which one is missing", "a,none", []string{"a", "none"}},
		{"absolute, as the daemon gets them", dir + "/a," + dir + "/b", []string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := dataPaths(c.in)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				c.want[i] = filepath.Join(dir, c.want[i])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := dataPaths(""); err == nil {
		t.Error("an empty DATA is taken")
	}
}

// brokerDirs makes two log directories of a broker in the current directory: t-0 in a, t-1 in b.
func brokerDirs(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if code, _, said := runIn(t, "topics", "create", "a", "t", "--partitions", "2"); code != exitOK {
		t.Fatal(said)
	}
	if err := os.Remove("a/.logmount-topics.json"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a", "b"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		properties(t, d, "1")
	}
	if err := os.Rename("a/t-1", "b/t-1"); err != nil {
		t.Fatal(err)
	}
}

func properties(t *testing.T, dir, node string) {
	t.Helper()
	if err := os.WriteFile(dir+"/meta.properties", []byte("version=1\ncluster.id=c\nnode.id="+node+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerbsTakeSeveralDirectories(t *testing.T) {
	brokerDirs(t)
	code, out, said := runIn(t, "offsets", "a,b", "--json")
	var list []offsetsJSON
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitOK || len(list) != 2 || list[1].Partition != 1 {
		t.Errorf("offsets: got %d, %s%s", code, out, said)
	}
	if code, out, said := runIn(t, "offsets", "a,b", "--groups", "--json"); code != exitOK || out != "[]\n" {
		t.Errorf("offsets of groups: got %d, %s%s", code, out, said)
	}
	if code, out, said := runIn(t, "topics", "list", "a,b"); code != exitOK || !strings.Contains(out, "t      2") {
		t.Errorf("topics list: got %d, %s%s", code, out, said)
	}
	if code, out, said := runIn(t, "topics", "describe", "b,a", "t"); code != exitOK || strings.Count(out, "\n") != 5 {
		t.Errorf("topics describe: got %d, %s%s", code, out, said)
	}
	if code, _, said := runIn(t, "topics", "create", "a,b", "u"); code != exitFailed || !strings.Contains(said, "read-only") {
		t.Errorf("topics create: got %d, %s", code, said)
	}
}

func TestSeveralDirectoriesMustFit(t *testing.T) {
	for _, c := range []struct {
		name, data string
		spoil      func(t *testing.T) error
		want       []string
	}{
		{"missing", "a,b,c", func(*testing.T) error { return nil }, []string{"/c is not there"}},
		{"an empty one", "a,b,c", func(*testing.T) error { return os.Mkdir("c", 0o755) }, []string{"/c: ", "is a disk not mounted there?"}},
		{"one of ours", "a,b,c", func(t *testing.T) error {
			t.Helper()
			code, _, said := runIn(t, "topics", "create", "c", "u")
			if code != exitOK {
				t.Fatal(said)
			}
			return nil
		}, []string{"/c: ", "mount it by itself"}},
		{"the same twice", "a,b,./a", func(*testing.T) error { return nil }, []string{"/a is given twice"}},
		{"another node's", "a,b", func(t *testing.T) error { t.Helper(); properties(t, "b", "2"); return nil }, []string{"/a is of node 1", "/b of node 2"}},
		{"a log twice", "a,b", func(*testing.T) error { return os.CopyFS("b/t-0", os.DirFS("a/t-0")) }, []string{"t-0 is in ", "/a and in ", "/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			brokerDirs(t)
			if err := c.spoil(t); err != nil {
				t.Fatal(err)
			}
			code, _, said := runIn(t, "offsets", c.data)
			if code != exitFailed || strings.Count(said, "\n") != 1 {
				t.Errorf("got %d, %s", code, said)
			}
			for _, w := range c.want {
				if !strings.Contains(said, w) {
					t.Errorf("got %q, want %q in it", said, w)
				}
			}
			if there, err := vfs.Exists(vfs.OS(), "c/.logmount-topics.json"); c.name == "an empty one" && (there || err != nil) {
				t.Errorf("it was made ours: %v", err)
			}
		})
	}
}
