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

// each runs a test for every version.
func each(t *testing.T, test func(t *testing.T, k *Kafka)) {
	t.Helper()
	Wanted(t)
	for _, v := range Versions() {
		t.Run(v, func(t *testing.T) { test(t, Find(t, v)) })
	}
}

// newest runs a test for the first version alone: it takes long, and the other versions do the same.
func newest(t *testing.T, test func(t *testing.T, k *Kafka)) {
	t.Helper()
	Wanted(t)
	test(t, Find(t, Versions()[0]))
}
