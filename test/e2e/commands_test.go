package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// patience bounds every wait of a scenario; it says that something hangs, not that it is slow.
const patience = 60 * time.Second

var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"refused":  cmdRefused,
	"until":    cmdUntil,
	"daemon":   cmdDaemon,
	"signal":   cmdSignal,
	"ended":    cmdEnded,
	"reads":    cmdReads,
	"detached": cmdDetached,
}

// usage ends a scenario that calls a command wrongly.
func usage(ts *testscript.TestScript, neg, ok bool, form string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", form)
	}
}

// poll calls done until it is true.
func poll(ts *testscript.TestScript, what string, done func() bool) {
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("waited in vain: %s", what)
		}
	}
}

func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) >= 3, "refused STATUS PATTERN CMD...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[2], args[3:]...)
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		ts.Fatalf("%s: got %v, want exit status %d", args[2], err, want)
	}
	said := ts.ReadFile("stderr")
	if got := ee.ExitCode(); got != want {
		ts.Fatalf("%s: got exit status %d, want %d: %s", args[2], got, want, said)
	}
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "logmount: ") {
		ts.Fatalf("want one line on stderr, got: %s", said)
	}
	if !regexp.MustCompile(args[1]).MatchString(said) {
		ts.Fatalf("stderr does not match %q: %s", args[1], said)
	}
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) >= 2, "until PATTERN CMD...")
	re := regexp.MustCompile("(?m)" + args[0])
	poll(ts, strings.Join(args, " "), func() bool {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
		out, _ := cmd.Output()
		return re.Match(out)
	})
}

// daemonOf reads the process id from a mount's status.
func daemonOf(ts *testscript.TestScript, mnt string) int {
	b, err := os.ReadFile(filepath.Join(ts.MkAbs(mnt), ".logmount/status"))
	ts.Check(err)
	var s struct {
		PID int `json:"pid"`
	}
	ts.Check(json.Unmarshal(b, &s))
	if s.PID <= 1 {
		ts.Fatalf("no pid in %s", b)
	}
	return s.PID
}

func cmdDaemon(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "daemon VAR MNT")
	ts.Setenv(args[0], strconv.Itoa(daemonOf(ts, args[1])))
}

func pidOf(ts *testscript.TestScript, arg string) int {
	pid, err := strconv.Atoi(strings.TrimSpace(arg))
	ts.Check(err)
	if pid <= 1 {
		ts.Fatalf("process id %d", pid)
	}
	return pid
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "signal NAME PID")
	sig := unix.SignalNum("SIG" + args[0])
	if sig == 0 {
		ts.Fatalf("no signal %s", args[0])
	}
	ts.Check(syscall.Kill(pidOf(ts, args[1]), sig))
}

// gone reports whether a process has ended; one that waits to be reaped by whoever took it over has.
func gone(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "ended PID")
	pid := pidOf(ts, args[0])
	poll(ts, "the end of process "+args[0], func() bool { return gone(pid) })
}

// cmdReads waits for a process by its name: a scenario does not know the id of what it runs in the background.
func cmdReads(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2, "reads COMM MNT")
	mnt := ts.MkAbs(args[1])
	poll(ts, args[0]+" has something of "+mnt+" open", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/comm")
		for _, f := range all {
			if b, err := os.ReadFile(f); err != nil || strings.TrimSpace(string(b)) != args[0] {
				continue
			}
			fds, _ := filepath.Glob(filepath.Join(filepath.Dir(f), "fd/*"))
			for _, fd := range fds {
				if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, mnt+"/") {
					return true
				}
			}
		}
		return false
	})
}

func cmdDetached(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "detached MNT")
	if mnt := ts.MkAbs(args[0]); len(mountsBelow(mnt)) > 0 {
		ts.Fatalf("%s is still mounted", mnt)
	}
}

// mountsBelow lists the mountpoints at or below dir.
func mountsBelow(dir string) []string {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var list []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && (f[4] == dir || strings.HasPrefix(f[4], dir+"/")) {
			list = append(list, f[4])
		}
	}
	return list
}

// clear removes mounts below dir and kills daemons that serve something in it, so that a scenario that fails leaves nothing behind.
func clear(dir string) {
	for _, m := range mountsBelow(dir) {
		if unix.Unmount(m, unix.MNT_DETACH) != nil {
			_ = exec.Command("fusermount3", "-uz", m).Run()
		}
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil || !strings.HasPrefix(string(b), "logmount\x00") || !strings.Contains(string(b), dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
