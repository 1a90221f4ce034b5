package fs

import (
	"strings"
	"syscall"
	"testing"
)

// TestStartTellsAtTheClose: a start that could not be moved is told where shells look, as they do not look at the error of close(2).
func TestStartTellsAtTheClose(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		err        error
		want       syscall.Errno // of close
	}{
		{"full disk", "1\n", syscall.ENOSPC, syscall.ENOSPC},
		{"full disk, no newline", "1", syscall.ENOSPC, 0},
		{"quota", "1\n", syscall.EDQUOT, syscall.EDQUOT},
		{"broken disk", "1\n", syscall.EIO, syscall.EIO},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			k.write("orders/0/tail", "a\nb\n")
			d := k.mustOpen("orders/0/start", syscall.O_WRONLY|syscall.O_TRUNC)
			d.flush() // of the descriptor that was open before bash moved it to 1
			if errno := d.write(tc.line); errno != 0 {
				t.Fatalf("write: %v", errno)
			}
			k.engine.Fail("start", tc.err)
			if errno := d.flush(); errno != tc.want {
				t.Errorf("close: %v, want %v", errno, tc.want)
			}
			d.release()
			if got := k.reports(); !strings.Contains(got, `"path":"/orders/0/start","reason":"`) {
				t.Errorf("reports: %q", got)
			}
			k.wantRead("orders/0/start", "0\n")
			k.write("orders/0/start", "1\n")
			k.wantRead("orders/0/tail", "b\n")
		})
	}
}

// TestSignalDoesNotEndAStart: a close(2) that was interrupted is not repeated.
func TestSignalDoesNotEndAStart(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "a\nb\n")
	d := k.mustOpen("orders/0/start", syscall.O_WRONLY)
	d.write("1\n")
	cancel := k.cancel
	k.cancel = make(chan struct{})
	close(k.cancel)
	if errno := d.close(); errno != 0 {
		t.Errorf("close: %v", errno)
	}
	k.cancel = cancel
	k.wantRead("orders/0/tail", "b\n")
}
