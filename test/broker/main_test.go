package broker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is logmount as it was built for these tests.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv("LOGMOUNT_KAFKA") != "1" {
		return m.Run()
	}
	if program = os.Getenv("LOGMOUNT_PROGRAM"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "logmount-broker-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "logmount")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/logmount").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// each lists the versions for a test that runs for every one of them. Tests run beside each other: brokers spend most of their time starting up and waiting.
func each(t *testing.T) []string {
	t.Helper()
	Wanted(t)
	t.Parallel()
	return Versions()
}

// newest finds the first version for a test that runs for that one alone: it takes long, and the other versions do the same.
func newest(t *testing.T) *Kafka {
	t.Helper()
	Wanted(t)
	t.Parallel()
	return Find(t, Versions()[0])
}
