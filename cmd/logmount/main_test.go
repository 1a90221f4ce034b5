package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// runIn runs the program with arguments and returns its exit status and what it wrote.
func runIn(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestBadArgumentsAreOneLine(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"one argument", []string{"./data"}, "the form is: logmount DATA MNT"},
		{"three arguments", []string{"mount", "a", "b", "c"}, "3 arguments given"},
		{"an unknown verb", []string{"frobnicate"}, `no verb "frobnicate"`},
		{"a misspelt verb", []string{"umonut", "/mnt"}, "did you mean `logmount umount`"},
		{"an unknown flag", []string{"--frobnicate", "a", "b"}, "unknown flag: --frobnicate"},
		{"a flag that there is not", []string{"--frobnicate", "a", "b"}, "unknown flag: --frobnicate"},
		{"an unknown option", []string{"a", "b", "-o", "ro,frob"}, `unknown option "frob"`},
		{"an unknown log level", []string{"a", "b", "--log-level", "loud"}, `unknown log level "loud"`},
		{"a mount on itself", []string{".", "."}, "would hide the log directory"},
		{"a mount in DATA", []string{".", "./mnt"}, "mnt"},
		{"DATA below the mount", []string{"./data", "."}, "would hide the log directory"},
		{"no mountpoint", []string{"./data", "./mnt"}, "mnt"},
		{"a file as mountpoint", []string{"./data", "./file"}, "not a directory"},
		{"a log below the mount", []string{"./data", "./mnt", "--log-file", "mnt/log"}, "lies below the mountpoint"},
		{"an empty DATA", []string{"", "mnt"}, "DATA is empty"},
		{"an empty MNT", []string{"data", ""}, "MNT is empty"},
		{"umount of nothing", []string{"umount"}, "logmount umount MNT"},
		{"a verb of topics", []string{"topics", "frob"}, "topics has list, describe, create, delete and import"},
		{"a shell without completion", []string{"completion", "foo"}, `no completion for "foo": there is bash, fish, powershell, zsh`},
		{"help on nothing", []string{"help", "foo"}, `no verb "foo"`},
		{"help on a verb of nothing", []string{"help", "topics", "foo"}, `no verb "topics foo"`},
		{"a setting without a value", []string{"topics", "create", "d", "t", "--config", "x"}, "NAME=VALUE"},
		{"a setting twice", []string{"topics", "create", "d", "t", "--config", "x=1", "--config", "x=2"}, "given twice"},
		{"no partitions", []string{"topics", "create", "d", "t", "--partitions", "0"}, `--partitions "0": it is a whole number from 1 to`},
		{"partitions that are no number", []string{"topics", "create", "d", "t", "--partitions", "x"}, `--partitions "x": it is a whole number from 1 to`},
		{"a negative interval", []string{"index", "--check", "--index-interval-bytes", "-5", "."}, `--index-interval-bytes "-5": it is a whole number from 1 to`},
		{"a negative interval of a repair", []string{"repair", "--index-interval-bytes", "-5", "."}, `--index-interval-bytes "-5"`},
		{"a negative size", []string{"index", "--segment-index-bytes=-1", "."}, `--segment-index-bytes "-1": it is a whole number from 4 to`},
		{"a negative size of a repair", []string{"repair", "--segment-index-bytes=-1", "."}, `--segment-index-bytes "-1"`},
		{"negative jobs", []string{"verify", "--jobs", "-1", "."}, `--jobs "-1": it is a whole number from 1 to`},
		{"negative jobs of a repair", []string{"repair", "--jobs", "-1", "."}, `--jobs "-1"`},
		{"a switch with a word", []string{"topics", "list", "d", "--json=maybe"}, `--json "maybe": it is true or false`},
		{"a flag without its value", []string{"topics", "create", "d", "t", "--partitions"}, "--partitions needs a value; see `logmount topics create --help`"},
		{"a short flag without its value", []string{"d", "m", "-o"}, "-o needs a value"},
		{"an unknown short flag", []string{"d", "m", "-fz"}, "unknown flag: -z; see `logmount --help`"},
		{"a flag without a name", []string{"d", "m", "--=x"}, `"--=x" is no flag`},
		{"two questions", []string{"offsets", "d", "--groups", "--time", "now"}, "--groups and --time exclude each other"},
		{"a topic twice", []string{"topics", "create", "d", "t", "t"}, "topic t is given twice"},
		{"a topic deleted twice", []string{"topics", "delete", "d", "t", "t"}, "topic t is given twice"},
		{"a topic imported twice", []string{"topics", "import", "d", "t", "t"}, "topic t is given twice"},
		{"the mount's own name", []string{"topics", "create", "d", "t", ".logmount"}, "a mount has a directory of its own of that name"},
		{"a name that no topic has", []string{"topics", "create", "d", "t", "a/b"}, `holds '/'`},
		{"topics where there is no place", []string{"topics", "create", "no/d", "t"}, "mkdir -p "},
		{"topics deleted of nothing", []string{"topics", "delete", "missing", "t"}, "missing is not there; give the path of a log directory"},
		{"topics imported of nothing", []string{"topics", "import", "missing", "t"}, "missing is not there; give"},
		{"offsets of nothing", []string{"offsets", "missing"}, "missing is not there; give"},
		{"groups of nothing", []string{"offsets", "missing", "--groups"}, "missing is not there; give"},
		{"verifying nothing", []string{"verify", "missing"}, "missing is not there; give"},
		{"repairing nothing", []string{"repair", "missing"}, "missing is not there; give"},
		{"nothing named to dump", []string{"dump"}, "no file given; the form is: logmount dump"},
		{"nothing named to index", []string{"index"}, "no directory given; the form is: logmount index"},
		{"completion and more", []string{"completion", "bash", "x"}, "the form is: logmount completion bash"},
		{"no time", []string{"offsets", "d", "--time", "yesterday-ish"}, "is not a time"},
		{"topics of a file", []string{"topics", "list", "file"}, "file"},
		{"topics of nothing", []string{"topics", "list", "missing"}, "missing is not there; give the path of a log directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := runIn(t, tt.args...)
			if code != exitFailed {
				t.Errorf("exit status: got %d, want %d", code, exitFailed)
			}
			if stdout != "" {
				t.Errorf("stdout: got %q, want nothing", stdout)
			}
			if !strings.HasPrefix(stderr, "logmount: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
				t.Errorf("stderr: got %q, want one line with %q", stderr, tt.want)
			}
		})
	}
	if d, err := os.ReadDir(dir); err != nil || len(d) != 1 {
		t.Errorf("a refused command left something behind: %v, %v", d, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"topics"}, {"mount", "--help"}, {"completion"}, {"completion", "bash"}, {"help"}, {"help", "topics"}, {"help", "topics", "list"}, {"version"}, {"--version"}} {
		code, stdout, stderr := runIn(t, args...)
		if code != exitOK || stdout == "" || stderr != "" {
			t.Errorf("%q: got %d, %q, stderr %q; want 0 and something on stdout", args, code, stdout, stderr)
		}
	}
	_, stdout, _ := runIn(t, "version", "--json")
	var v struct{ Version string }
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || v.Version == "" {
		t.Errorf("version --json: got %q, %v", stdout, err)
	}
	_, help, _ := runIn(t, "--help")
	if strings.Contains(help, "status-fd") {
		t.Error("the help shows a flag that is not for people")
	}
}

func TestDataPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "real", "abs": filepath.Join(dir, "real"), "twice": "link", "loop": "loop", "dangling": "gone"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	tests := []struct{ in, want string }{
		{"real", "real"},
		{"./real/", "real"},
		{"link", "real"},
		{"abs", "real"},
		{"twice", "real"},
		{"missing", "missing"},
		{"link/sub", "real/sub"},
		{"loop", "loop"},
		{"dangling", "dangling"},
		{"no/such/dir", "no/such/dir"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if got, err := dataPath(tt.in); err != nil || got != filepath.Join(dir, tt.want) {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestArgumentsOfTheDaemon(t *testing.T) {
	t.Chdir(t.TempDir())
	f := mountFlags{options: []string{"ro,defaults", "umask=077"}, logFile: "log", logLevel: "warn", create: true}
	r, err := f.request([]string{"data", "mnt"})
	if err != nil {
		t.Fatal(err)
	}
	var again mountFlags
	set := pflag.NewFlagSet("mount", pflag.ContinueOnError)
	again.register(set)
	if err := set.Parse(append(r.arguments()[1:], "--", r.data, r.mnt)); err != nil {
		t.Fatal(err)
	}
	got, err := again.request(set.Args())
	if err != nil {
		t.Fatal(err)
	}
	if got.data != r.data || got.mnt != r.mnt || got.logFile != r.logFile || got.logLevel != r.logLevel || got.create != r.create || *got.opts.umask != *r.opts.umask || got.opts.readOnly != r.opts.readOnly {
		t.Errorf("the daemon would mount %+v, want %+v", got, r)
	}
	if !filepath.IsAbs(got.logFile) || !filepath.IsAbs(got.data) || !filepath.IsAbs(got.mnt) {
		t.Errorf("not absolute: %+v", got)
	}
}

func TestLastWords(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"the last line", "one\ntwo\n", ": two"},
		{"a crash", "level=INFO msg=x\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n", ": panic: boom"},
		{"a flood", strings.Repeat("x\n", maxLastWords) + "end\n", ": end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w lastWords
			if n, err := w.Write([]byte(tt.in)); n != len(tt.in) || err != nil {
				t.Errorf("Write: got %d, %v", n, err)
			}
			if got := w.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if len(w.buf) > maxLastWords {
				t.Errorf("kept %d bytes", len(w.buf))
			}
		})
	}
}
