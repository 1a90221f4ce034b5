package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/repair"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/fixture"
)

// TestOtherPeoplesFiles: a directory with a name like a partition's in it does not make a log directory of what it lies in, and nothing is put there.
func TestOtherPeoplesFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("etc/dbus-1/conf.d", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "etc"}, {"repair", "etc"}, {"repair", "etc", "--apply"}, {"index", "etc"}, {"index", "etc", "--check"}, {"topics", "list", "etc"},
		{"topics", "create", "etc", "t"}, {"offsets", "etc"},
	} {
		code, out, said := runIn(t, args...)
		if code != exitFailed || out != "" || !strings.HasSuffix(said, "etc: not a log directory: it holds no partition and other files: dbus-1; give a log directory, or an empty one\n") {
			t.Errorf("%s: got %d, %q, %q", strings.Join(args, " "), code, out, said)
		}
	}
	if all, err := filepath.Glob("etc/*"); err != nil || len(all) != 1 {
		t.Errorf("now there is %q, %v", all, err)
	}
}

// Each is one line that says what was wrong and what would be right.
func TestMessages(t *testing.T) {
	clean := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	t.Chdir(t.TempDir())
	if code, _, said := runIn(t, "topics", "create", "own", "orders"); code != exitOK || !strings.HasPrefix(said, "created /") || !strings.HasSuffix(said, "/own\n") {
		t.Fatalf("create: got %d, %q", code, said)
	}
	if code, _, said := runIn(t, "topics", "create", "own", "more"); code != exitOK || said != "" {
		t.Errorf("create in what is there: got %d, %q", code, said)
	}
	log := "own/orders-0/00000000000000000000.log"
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("own/orders-0/00000000000000000000.log.0.quarantine", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS("copy/codec-none-0", os.DirFS(filepath.Join(clean, "codec-none-0"))); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"an unknown setting", []string{"topics", "create", "own", "t", "--config", "foo=1"}, []string{`"foo" is not known`, "max.message.bytes, segment.bytes", "nothing is deleted by itself"}},
		{"a topic of no group", []string{"offsets", clean, "nosuch", "--groups"}, []string{"nosuch", "no such topic"}},
		{"an unknown topic", []string{"offsets", clean, "nosuch"}, []string{"nosuch", "no such topic"}},
		{"indexes of a file", []string{"index", log}, []string{log + " is a file", "logmount index own/orders-0"}},
		{"indexes of nothing", []string{"index", "nosuch"}, []string{"nosuch is not there"}},
		{"indexes of a list of which one is missing", []string{"index", "--check", "own,nosuch"}, []string{"nosuch is not there"}},
		{"a repair of a list of which one is missing", []string{"repair", "own,nosuch"}, []string{"nosuch"}},
		{"a dump of what was taken out", []string{"dump", "own/orders-0/00000000000000000000.log.0.quarantine"}, []string{"--type log"}},
		{"a partition as DATA", []string{"topics", "list", "own/orders-0"}, []string{"the directory of one partition", "/own"}},
		{"topics in a broker's", []string{"topics", "create", clean, "t"}, []string{"a broker's log directory", "its broker alone makes and deletes topics", "a directory of logmount's own"}},
		{"topics in a copy", []string{"topics", "create", "copy", "t"}, []string{"logmount topics import"}},
		{"a topic that is there, after one that is not", []string{"topics", "create", "own", "fresh", "orders"}, []string{"orders: topic exists"}},
		{"a partition that is not there", []string{"offsets", "own", "orders", "1"}, []string{"orders-1: no such partition"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, said := runIn(t, tt.args...)
			if code != exitFailed || strings.Count(said, "\n") != 1 || out != "" {
				t.Errorf("got %d, %q, %q, want %d and one line on stderr alone", code, out, said, exitFailed)
			}
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("got %q, want %q in it", said, want)
				}
			}
		})
	}
}

func TestTopicsAreMadeAllOrNone(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, said := runIn(t, "topics", "create", "own", "there"); code != exitOK {
		t.Fatal(said)
	}
	runIn(t, "topics", "create", "own", "fresh", "there")
	runIn(t, "topics", "create", "own", "fresh", "fresh")
	runIn(t, "topics", "create", "own", "fresh", ".logmount")
	if _, out, said := runIn(t, "topics", "list", "own"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "there") {
		t.Errorf("got %q, %q", out, said)
	}
}

// A lock that somebody holds is told of; a file that was left by somebody who was killed is not.
func TestVerifyAsksTheLock(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, said := runIn(t, "topics", "create", "own", "t"); code != exitOK {
		t.Fatal(said)
	}
	lock, err := vfs.OS().Lock("own/.lock", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, out, _ := runIn(t, "verify", "own"); !strings.Contains(out, "somebody has it locked") {
		t.Errorf("held: got %q", out)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("own/.lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runIn(t, "verify", "own", "--json")
	if code != exitOK || strings.Contains(out, "locked") || !strings.Contains(out, `"clean_shutdown":true`) {
		t.Errorf("left: got %d, %q", code, out)
	}
}

// The help names every field that --json prints.
func TestHelpNamesTheFields(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		fields []any
	}{
		{[]string{"topics", "list"}, []any{topicJSON{}}},
		{[]string{"topics", "describe"}, []any{partitionJSON{}}},
		{[]string{"offsets"}, []any{offsetsJSON{}, timedJSON{}, groupJSON{}}},
		{[]string{"verify"}, []any{inspect.Summary{}, inspect.Finding{}}},
		{[]string{"index"}, []any{repair.IndexResult{}}},
		{[]string{"repair"}, []any{repair.Action{}, repair.Result{}}},
	} {
		_, help, _ := runIn(t, append(tt.args, "--help")...)
		words := strings.FieldsFunc(help, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
		for _, v := range tt.fields {
			for f := range reflect.TypeOf(v).Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name != "" && name != "-" && name != "partition_list" && !slices.Contains(words, name) {
					t.Errorf("%s --help does not name %q", strings.Join(tt.args, " "), name)
				}
			}
		}
	}
}

func TestOffsetsOfATimeToCome(t *testing.T) {
	clean := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	code, out, said := runIn(t, "offsets", clean, "codec-none", "--time", "2099-01-01")
	if code != exitOK || !strings.HasSuffix(out, "  -\n") {
		t.Errorf("got %d, %q, %q", code, out, said)
	}
	code, out, said = runIn(t, "offsets", clean, "codec-none", "--time", "2099-01-01", "--json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitOK {
		t.Fatalf("%v: got %d, %q, %q", err, code, out, said)
	}
	if at, there := list[0]["offset"]; !there || at != nil || list[0]["time"] == nil {
		t.Errorf("got %v", list[0])
	}
	_, out, _ = runIn(t, "offsets", clean, "codec-none", "--time", "0", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || list[0]["offset"] != 0.0 {
		t.Errorf("%v: got %q", err, out)
	}
	_, out, _ = runIn(t, "offsets", clean, "codec-none", "--json")
	if strings.Contains(out, `"offset"`) || strings.Contains(out, `"time"`) {
		t.Errorf("without --time: got %q", out)
	}
}

func TestRepairAndIndexTakeSeveralDirectories(t *testing.T) {
	a := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	b := filepath.Join(fixture.Unpack(t, "killed-4.4.0"), "killed")
	flipByte(t, filepath.Join(a, "codec-none-0", "00000000000000000000.log"), 100)
	code, out, said := runIn(t, "repair", a+","+b)
	if code != exitDamage || !strings.Contains(out, "\n"+a+": 2 actions to do") || !strings.Contains(out, "\n"+b+": ") {
		t.Errorf("repair: got %d, %q, %q", code, out, said)
	}
	code, out, said = runIn(t, "repair", a+","+b, "codec-gzip")
	if code != exitOK || out != a+": nothing to do\n" {
		t.Errorf("repair of a topic: got %d, %q, %q", code, out, said)
	}
	if _, out, said = runIn(t, "index", "--check", a+","+b); !strings.Contains(out, a) || said != "" {
		t.Errorf("index: got %q, %q", out, said)
	}
	if code, out, _ := runIn(t, "dump", a+"/codec-gzip-0,"+b); code > exitDamage || !strings.Contains(out, b) {
		t.Errorf("dump: got %d", code)
	}
	if _, out, _ = runIn(t, "verify", a); !strings.HasSuffix(out, "\nlogmount repair "+a+" shows what can be put right\n") {
		t.Errorf("verify: got %q", out)
	}
}
