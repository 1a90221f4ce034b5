package fs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// gather reads from a follower until it has n bytes.
func (d *descriptor) gather(n, atOnce int) string {
	d.k.t.Helper()
	var b strings.Builder
	for b.Len() < n {
		got, errno := d.pread(atOnce, 0)
		if errno != 0 || len(got) == 0 {
			d.k.t.Fatalf("after %q: %q, %v", b.String(), got, errno)
		}
		b.Write(got)
	}
	return b.String()
}

func TestFollow(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "before\n")
	d := k.mustOpen("orders/0/follow", syscall.O_RDONLY|syscall.O_NONBLOCK)
	if d.how&fuse.FOPEN_STREAM == 0 || d.how&fuse.FOPEN_DIRECT_IO == 0 {
		t.Errorf("opened with %#x", d.how)
	}
	if _, errno := d.pread(10, 0); errno != syscall.EAGAIN {
		t.Errorf("O_NONBLOCK: %v, want EAGAIN", errno)
	}
	d.flags = 0 // fcntl(2) changed it
	k.write("orders/0/tail", "one\ntwo\n")
	if got := d.gather(8, 3); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
	done := make(chan string)
	go func() { done <- d.gather(6, 100) }()
	k.write("orders/0/tail", "three\n")
	if got := <-done; got != "three\n" {
		t.Errorf("woken with %q", got)
	}

	cancel, errnos := make(chan struct{}), make(chan syscall.Errno)
	go func() { _, errno := d.preadCancel(cancel, 10, 0); errnos <- errno }()
	close(cancel)
	if errno := <-errnos; errno != syscall.EINTR {
		t.Errorf("interrupted: %v, want EINTR", errno)
	}

	ends := make(chan int)
	go func() { b, errno := d.pread(10, 0); ends <- len(b) + int(errno) }()
	k.tree.Shutdown(context.Background())
	if got := <-ends; got != 0 {
		t.Errorf("at the end: %d", got)
	}
	d.close()
}

func TestFollowTopic(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/follow.json", syscall.O_RDONLY)
	defer d.close()
	k.write("orders/0/tail", "zero\n")
	first := `{"partition":0,"offset":0,"timestamp":`
	if got := d.gather(len(first), 1000); !strings.HasPrefix(got, first) || !strings.HasSuffix(got, `"value":"zero"}`+"\n") {
		t.Errorf("got %q", got)
	}
	k.mustMkdir("orders/1") // while it is followed
	plain := k.mustOpen("orders/follow", syscall.O_RDONLY)
	defer plain.close()
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("line %02d", i))
		k.write(fmt.Sprintf("orders/%d/tail", i%2), want[i]+"\n")
	}
	got := strings.Split(strings.TrimSuffix(plain.gather(40*8, 100), "\n"), "\n")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	d.flags |= syscall.O_NONBLOCK
	var all strings.Builder
	for {
		b, errno := d.pread(512, 0)
		if errno == syscall.EAGAIN {
			break
		}
		all.Write(b)
	}
	if n := strings.Count(all.String(), `"partition":1`); n != 0 && n != 20 {
		t.Errorf("%d records of the new partition, want 20", n)
	}
}

// TestFollowTopicTellsOfDamage: an error of one partition is not lost because another had something to give in the same read.
func TestFollowTopicTellsOfDamage(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.mustMkdir("orders/1")
	d := k.mustOpen("orders/follow", syscall.O_RDONLY)
	defer d.close()
	k.write("orders/0/tail", "zero\n")
	k.write("orders/1/tail", "bad\n")
	k.engine.Corrupt(storage.TopicPartition{Topic: "orders", Partition: 1}, 0)
	k.write("orders/1/tail", "good\n")
	if b, errno := d.pread(100, 0); errno != 0 || string(b) != "zero\n" {
		t.Errorf("before the damage: %q, %v", b, errno)
	}
	k.write("orders/0/tail", "one\n") // there is always something
	if b, errno := d.pread(100, 0); errno != syscall.EIO {
		t.Errorf("at the damage: %q, %v, want EIO", b, errno)
	}
	if got := d.gather(9, 100); got != "one\ngood\n" {
		t.Errorf("behind it: %q", got)
	}
	if !strings.Contains(k.reports(), "damaged by the test") {
		t.Errorf("not reported: %s", k.reports())
	}
}

func TestFollowEndsWithItsTopic(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/follow", syscall.O_RDONLY)
	defer d.close()
	ends := make(chan int)
	go func() { b, errno := d.pread(10, 0); ends <- len(b) + int(errno) }()
	h := k.header(1)
	if st := k.tree.raw.Rmdir(k.cancel, &h, "orders"); st != fuse.OK {
		t.Fatal(st)
	}
	if got := <-ends; got != 0 {
		t.Errorf("got %d, want end of file", got)
	}
}

func TestFollowEndsWithTheLastPartition(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.mustMkdir("orders/1")
	d := k.mustOpen("orders/follow", syscall.O_RDONLY)
	defer d.close()
	ends := make(chan int)
	go func() { b, errno := d.pread(10, 0); ends <- len(b) + int(errno) }()
	h := k.header(1)
	if st := k.tree.raw.Rmdir(k.cancel, &h, "orders"); st != fuse.OK {
		t.Fatal(st)
	}
	if got := <-ends; got != 0 {
		t.Errorf("got %d, want end of file", got)
	}
}

// TestOpenFilesOfADeletedTopic: a name is not there, a file that is open is stale; nothing else, and nothing hangs.
func TestOpenFilesOfADeletedTopic(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	var readers, writers []*descriptor
	for _, name := range []string{"orders/0/tail", "orders/0/tail.json", "orders/0/offset/0"} {
		readers = append(readers, k.mustOpen(name, syscall.O_RDONLY))
	}
	for _, name := range []string{"orders/0/tail", "orders/tail", "orders/0/tail.json"} {
		writers = append(writers, k.mustOpen(name, appendOnly))
	}
	half := k.mustOpen("orders/0/tail", appendOnly)
	half.write("half")
	h := k.header(1)
	if st := k.tree.raw.Rmdir(k.cancel, &h, "orders"); st != fuse.OK {
		t.Fatal(st)
	}
	for _, d := range readers {
		if _, errno := d.pread(10, 0); errno != syscall.ESTALE {
			t.Errorf("read: %v, want ESTALE", errno)
		}
		if _, errno := d.stat(); errno != syscall.ESTALE {
			t.Errorf("fstat: %v, want ESTALE", errno)
		}
		if errno := d.close(); errno != 0 {
			t.Errorf("close: %v", errno)
		}
	}
	for _, d := range writers {
		if errno := d.write(`{"value":"x"}` + "\n"); errno != syscall.ESTALE {
			t.Errorf("write: %v, want ESTALE", errno)
		}
		if errno := d.fsync(); errno != syscall.ESTALE {
			t.Errorf("fsync: %v, want ESTALE", errno)
		}
		d.release()
	}
	if errno := half.flush(); errno != syscall.ESTALE {
		t.Errorf("close: %v, want ESTALE", errno)
	}
	half.release()
	if !strings.Contains(k.reports(), "4 bytes was dropped") {
		t.Errorf("reports: %s", k.reports())
	}
	if _, errno := k.lookup("orders/0"); errno != syscall.ENOENT {
		t.Errorf("lookup: %v, want ENOENT", errno)
	}
}
