package fs

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestShutdownFinishesLines(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", appendOnly)
	d.write("one\ntwo")
	r := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	k.tree.Shutdown(context.Background())
	k.tree.Shutdown(context.Background())
	if got := d.write("three\n"); got != syscall.ESHUTDOWN {
		t.Errorf("write: %v, want ESHUTDOWN", got)
	}
	if _, errno := k.open("orders/0/tail", syscall.O_RDONLY); errno != syscall.ESHUTDOWN {
		t.Errorf("open: %v, want ESHUTDOWN", errno)
	}
	if errno := k.mkdir("other"); errno != syscall.ESHUTDOWN {
		t.Errorf("mkdir: %v, want ESHUTDOWN", errno)
	}
	if b, errno := r.pread(100, 0); errno != 0 || string(b) != "one\ntwo\n" {
		t.Errorf("read: %q, %v", b, errno)
	}
	if errno := d.close(); errno != 0 {
		t.Errorf("close: %v", errno)
	}
	if b, _ := r.pread(100, 0); string(b) != "one\ntwo\n" {
		t.Errorf("after close: %q", b)
	}
	r.close()
	if a, b, c := k.tree.openHandles(); a != 0 || b != 0 || c != 0 {
		t.Errorf("%d, %d, %d files are counted as open", a, b, c)
	}
}

// TestShutdownKeepsNoHalves: half of a record is kept only where it is what a file would keep, a line.
func TestShutdownKeepsNoHalves(t *testing.T) {
	for _, tc := range []struct{ file, s, want string }{
		{"0/tail", "half", "half\n"},
		{"0/tail.nul", "half", "half\n"},
		{"0/tail.kv", "k\thalf", "half\n"},
		{"0/tail.whole", "half", ""},
		{"0/tail.json", `{"value":"half"}`, ""},
		{"0/tail.batch", "half", ""},
		{"tail", "half", "half\n"},
		{"tail.whole", "half", ""},
		{"tail.json", `{"value":"half"}`, ""},
	} {
		t.Run(tc.file, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			r := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
			d := k.mustOpen("orders/"+tc.file, appendOnly)
			d.write(tc.s)
			k.tree.Shutdown(context.Background())
			if got := d.close(); (tc.want == "") != (got == syscall.ESHUTDOWN) || tc.want != "" && got != 0 {
				t.Errorf("close: %v, with the record there: %v", got, tc.want != "")
			}
			if b, errno := r.pread(100, 0); errno != 0 || string(b) != tc.want {
				t.Errorf("got %q, %v, want %q", b, errno, tc.want)
			}
			if got := k.reports(); (tc.want == "") != strings.Contains(got, "was dropped: the mount went away") {
				t.Errorf("reports: %s", got)
			}
		})
	}
}

// TestShutdownBehindAClose: close(2) has said that all is well, so the record is there although RELEASE comes after Shutdown has begun.
func TestShutdownBehindAClose(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	r := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	d := k.mustOpen("orders/0/tail.whole", syscall.O_WRONLY)
	d.write("all of it")
	if errno := d.flush(); errno != 0 {
		t.Fatal(errno)
	}
	var wg sync.WaitGroup
	wg.Go(func() { time.Sleep(time.Millisecond); d.release() })
	k.tree.Shutdown(context.Background())
	if b, errno := r.pread(100, 0); errno != 0 || string(b) != "all of it\n" {
		t.Errorf("got %q, %v", b, errno)
	}
	wg.Wait()
}

// TestShutdownMeetsAClose: the FLUSH comes when Shutdown has found no close under way and is about to end the handle.
func TestShutdownMeetsAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKernel(t, nil)
		k.mustMkdir("orders")
		r := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
		d := k.mustOpen("orders/0/tail.whole", syscall.O_WRONLY)
		d.write("all of it")
		w := k.tree.writers.list()[0]
		if err := w.lock(context.Background()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { k.tree.Shutdown(context.Background()) })
		synctest.Wait()
		k.tree.settle.flush(&w.close) // what a FLUSH does with the gate
		w.unlock()
		synctest.Wait()
		d.release()
		wg.Wait()
		if b, errno := r.pread(100, 0); errno != 0 || string(b) != "all of it\n" {
			t.Errorf("got %q, %v", b, errno)
		}
		r.close()
	})
}
