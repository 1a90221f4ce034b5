package fs

import (
	"syscall"
	"testing"
	"testing/synctest"
)

// TestWhatDependsOnACloseWaitsForIt: with a RELEASE on its way, whatever would be wrong without its record waits.
func TestWhatDependsOnACloseWaitsForIt(t *testing.T) {
	for name, do := range map[string]func(k *kernel, open *descriptor) syscall.Errno{
		"rmdir of the topic": func(k *kernel, _ *descriptor) syscall.Errno {
			h := k.header(1)
			if errno := syscall.Errno(k.tree.raw.Rmdir(k.cancel, &h, "orders")); errno != syscall.ENOTEMPTY {
				return syscall.EBUSY
			}
			return 0
		},
		"fsync of the topic":     func(k *kernel, _ *descriptor) syscall.Errno { return k.fsyncDir("orders") },
		"fsync of the partition": func(k *kernel, _ *descriptor) syscall.Errno { return k.fsyncDir("orders/0") },
		"fsync of another file":  func(_ *kernel, open *descriptor) syscall.Errno { return open.fsync() },
		"open of the topic's tail": func(k *kernel, _ *descriptor) syscall.Errno {
			_, errno := k.open("orders/tail", appendOnly)
			return errno
		},
		"open of the topic's follow": func(k *kernel, _ *descriptor) syscall.Errno {
			_, errno := k.open("orders/follow", syscall.O_RDONLY)
			return errno
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKernel(t, nil)
				k.mustMkdir("orders")
				open := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
				d := k.mustOpen("orders/0/tail", appendOnly)
				d.write("unfinished")
				d.flush()
				done := make(chan syscall.Errno, 1)
				go func() { done <- do(k, open) }()
				synctest.Wait()
				if len(done) != 0 {
					t.Error("did not wait for the close")
				}
				d.release()
				if errno := <-done; errno != 0 {
					t.Error(errno)
				}
				open.close()
			})
		})
	}
}

// TestLookWaitsForTheLastOfTwoCloses: a process that was just started closes a tail that it inherited after the program that wrote it has. Its FLUSH says nothing
// to whoever waits for the RELEASE behind it.
func TestLookWaitsForTheLastOfTwoCloses(t *testing.T) {
	for _, outlived := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			d := k.mustOpen("orders/0/tail", appendOnly)
			if d.write("unfin"); outlived {
				d.flush()
			}
			d.write("ished")
			d.flush()
			looked := make(chan string, 1)
			go func() { looked <- k.read("orders/0/tail") }()
			synctest.Wait()
			d.flush()
			synctest.Wait()
			if len(looked) != 0 {
				t.Error("looked between the FLUSH and the RELEASE of a close")
			}
			d.release()
			if got, want := <-looked, "unfinished\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
