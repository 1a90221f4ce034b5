package broker

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"
)

// Dir makes a directory that every user can pass through, which those of testing are not. It is removed with the test.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "logmount-broker-") //nolint:usetesting // another user cannot pass through what TempDir makes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// port finds a free port below those that the kernel gives to outgoing connections, which could take it before a broker does.
func port(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		p := 20000 + rand.IntN(10000)
		l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(p))
		if err != nil {
			continue
		}
		_ = l.Close()
		return p
	}
	tb.Fatal("no free port")
	return 0
}
