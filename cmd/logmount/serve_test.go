package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"
)

// pipeVariable makes this test binary play a mount whose stderr nobody reads any more.
const pipeVariable = "LOGMOUNT_TEST_BROKEN_PIPE"

// TestBrokenStderr: whoever read what a foreground mount logs may go away, `logmount -f 2>&1 | head -1` for one. The mount stays.
func TestBrokenStderr(t *testing.T) {
	if os.Getenv(pipeVariable) != "" {
		ctx, release := stopOnSignal(context.Background(), slog.New(slog.DiscardHandler), true)
		defer release()
		for range 3 {
			if _, err := os.Stderr.WriteString("mounted\n"); err == nil {
				t.Error("the pipe is not broken")
			}
		}
		if ctx.Err() != nil {
			t.Error("the mount is ended")
		}
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer func() { _ = w.Close() }()
	c := exec.Command(os.Args[0], "-test.run=^TestBrokenStderr$")
	c.Env = append(os.Environ(), pipeVariable+"=1")
	c.Stderr = w
	if err := c.Run(); err != nil {
		t.Errorf("with a broken pipe as stderr: %v", err)
	}
}
