package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// bin is the directory of the program under test; empty where a mount is impossible.
var bin string

// buildFlags has -race where the tests themselves run with it: it is the daemon in which races would be.
var buildFlags []string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "logmount-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Everybody must be able to run it and to report a race: one scenario is another user's.
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	args := append([]string{"build", "-o", filepath.Join(dir, "logmount")}, buildFlags...)
	build := exec.Command("go", append(args, "../../cmd/logmount")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	bin = dir
	code := m.Run()
	if races, _ := filepath.Glob(filepath.Join(dir, "race.*")); len(races) > 0 {
		b, _ := os.ReadFile(races[0])
		fmt.Fprintf(os.Stderr, "%d data races in the program; the first:\n%s", len(races), b)
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	needMounts(t)
	testscript.Run(t, testscript.Params{
		Dir:         "testdata/script",
		Cmds:        commands,
		Condition:   condition,
		Setup:       setup,
		WorkdirRoot: workdirs(t),
	})
}

// needMounts skips, aloud, where nothing can be mounted. LOGMOUNT_REQUIRE_FUSE=1 makes that a failure.
func needMounts(t *testing.T) {
	t.Helper()
	why := ""
	if _, err := os.Stat("/dev/fuse"); err != nil {
		why = "there is no /dev/fuse"
	} else if _, err := exec.LookPath("fusermount3"); err != nil {
		why = "there is no fusermount3 (package fuse3)"
	}
	if why == "" {
		return
	}
	if os.Getenv("LOGMOUNT_REQUIRE_FUSE") == "1" {
		t.Fatalf("nothing can be mounted here: %s", why)
	}
	t.Skipf("NOT TESTED: nothing can be mounted here: %s", why)
}

// workdirs is a directory that another user can pass through; those of t.TempDir are not.
func workdirs(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "logmount-e2e-work-") //nolint:usetesting // another user cannot pass through what t.TempDir makes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// setup gives each scenario directories data and mnt, a home, and an end at which no mount and no daemon is left.
func setup(e *testscript.Env) error {
	e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	e.Setenv("BIN", bin)
	// Of a program that is built with -race: where it reports a race, its stderr being the null device, and no pause at its end.
	e.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+filepath.Join(bin, "race"))
	fixtures, err := filepath.Abs("../testdata/kafka")
	if err != nil {
		return err
	}
	e.Setenv("FIXTURES", fixtures)
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("LC_ALL", "C.UTF-8")
	e.Setenv("TZ", "UTC")
	for _, d := range []string{"home", "data", "mnt"} {
		if err := os.MkdirAll(filepath.Join(e.WorkDir, d), 0o755); err != nil {
			return err
		}
	}
	e.Defer(func() { clear(e.WorkDir) })
	return nil
}

func condition(cond string) (bool, error) {
	if cond == "root" {
		return os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}
