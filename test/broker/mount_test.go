package broker

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// logmount prepares a command line of the program under test.
func logmount(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "TZ=UTC")
	return cmd
}

// does runs the program under test, which must succeed.
func does(t *testing.T, args ...string) string {
	t.Helper()
	return finish(t, logmount(t, args...), "")
}

// mounted mounts data and returns the mountpoint. At the end of the test it is unmounted, whatever happened.
func mounted(t *testing.T, data string, flags ...string) string {
	t.Helper()
	mnt := filepath.Join(Dir(t), "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(filepath.Dir(mnt), "log")
	does(t, append([]string{"mount", data, mnt, "--log-file", log}, flags...)...)
	var status struct {
		PID int `json:"pid"`
	}
	b, err := os.ReadFile(filepath.Join(mnt, ".logmount/status"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &status); err != nil || status.PID <= 1 {
		t.Fatalf("status %s: %v", b, err)
	}
	t.Cleanup(func() {
		if !isMounted(mnt) {
			return
		}
		if t.Failed() {
			said, _ := os.ReadFile(log)
			t.Logf("log of the mount:\n%s", tail(string(said), 30))
			bad, _ := os.ReadFile(filepath.Join(mnt, ".logmount/errors"))
			t.Logf(".logmount/errors:\n%s", tail(string(bad), 20))
		}
		if out, err := logmount(t, "umount", mnt).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
			_ = unix.Unmount(mnt, unix.MNT_DETACH)
			_ = syscall.Kill(status.PID, syscall.SIGKILL)
		}
	})
	return mnt
}

func isMounted(mnt string) bool {
	b, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(b), " "+mnt+" ")
}

func unmount(t *testing.T, mnt string) {
	t.Helper()
	does(t, "umount", mnt)
}

// sh runs a script in which the program under test is on PATH.
func sh(t *testing.T, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+t.TempDir(), "TZ=UTC")
	cmd.Env = append(cmd.Env, env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\nstdout: %s\nstderr: %s", err, script, tail(out.String(), 10), tail(said.String(), 20))
	}
	return out.String()
}

// row is a record as .json shows it, as far as dump-log and kcat show it too.
type row struct {
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`
	Timestamp int64   `json:"timestamp"`
	Key       *string `json:"key"`
	Value     *string `json:"value"`
	Headers   []struct {
		Key string `json:"key"`
	} `json:"headers"`
}

// headerKeys joins the keys of the headers.
func (r *row) headerKeys() string {
	var l []string
	for _, h := range r.Headers {
		l = append(l, h.Key)
	}
	return strings.Join(l, ",")
}

// text shows a record in a message.
func (r *row) text() string {
	b, _ := json.Marshal(r)
	if len(b) > 200 {
		b = append(b[:200], "..."...)
	}
	return string(b)
}

// rows reads a .json file.
func rows(t *testing.T, file string) []row {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parseRows(t, b)
}

func parseRows(t *testing.T, b []byte) []row {
	t.Helper()
	var all []row
	for line := range bytes.Lines(b) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, r)
	}
	return all
}

// same compares what two readers saw.
func same(t *testing.T, what string, got, want []row) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d records, want %d", what, len(got), len(want))
	}
	bad := 0
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if g.Offset != w.Offset || g.Timestamp != w.Timestamp || !equal(g.Key, w.Key) || !equal(g.Value, w.Value) || g.headerKeys() != w.headerKeys() {
			if bad++; bad > 3 {
				break
			}
			t.Errorf("%s: record %d: got %s, want %s", what, i, g.text(), w.text())
		}
	}
}

func equal(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
