package fs

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

const appendOnly = syscall.O_WRONLY | syscall.O_APPEND

func TestUnfinishedLineIsOneOfTheLastClose(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", syscall.O_WRONLY|syscall.O_TRUNC)
	for _, s := range []string{"a", "bc", "d\ne", "f\n", "g\nh\ni"} {
		if errno := d.write(s); errno != 0 {
			t.Fatal(errno)
		}
		if errno := d.flush(); errno != 0 { // as bash does for its duplicates
			t.Fatal(errno)
		}
		d.k.tree.used(k.tree.raw.file(d.fh))
	}
	k.wantRead("orders/0/tail", "abcd\nef\ng\nh\n")
	d.close()
	k.wantRead("orders/0/tail", "abcd\nef\ng\nh\ni\n")
}

// TestLookWaitsForRelease: close(2) has returned, RELEASE is late, and the line must be seen all the same.
func TestLookWaitsForRelease(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	for i := range 20 {
		d := k.mustOpen("orders/0/tail", appendOnly)
		d.write(fmt.Sprintf("line %d", i))
		d.flush()
		var wg sync.WaitGroup
		wg.Go(func() { time.Sleep(time.Millisecond); d.release() })
		k.wantRead(fmt.Sprintf("orders/0/record/%d", i), fmt.Sprintf("line %d", i))
		wg.Wait()
	}
}

// TestSignalDoesNotEndAWrite: a program whose child ends, or a Go program, is interrupted in the middle of a write(2) again and again.
func TestSignalDoesNotEndAWrite(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", appendOnly)
	cancel := k.cancel
	k.cancel = make(chan struct{})
	close(k.cancel)
	if errno := d.write("a\n"); errno != 0 {
		t.Errorf("interrupted: %v", errno)
	}
	k.cancel = cancel
	d.close()
	k.wantRead("orders/0/tail", "a\n")
}

func TestRefusedRequests(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, tc := range []struct {
		name, file string
		writes     []string
		errnos     []syscall.Errno
		closed     syscall.Errno
		want       string // of tail
		reported   string
	}{
		{"bad json refuses the whole request", "tail.json", []string{`{"value":"a"}` + "\n{\n"}, []syscall.Errno{syscall.EINVAL}, 0, "", "want a string"},
		{"a retry continues", "tail.json", []string{`{"value":`, "1}\n", "\"a\"}\n"}, []syscall.Errno{0, syscall.EINVAL, 0}, 0, "a\n", "want a string"},
		{"no retry drops", "tail.json", []string{`{"value":`, "1}\n"}, []syscall.Errno{0, syscall.EINVAL}, syscall.EINVAL, "", "dropped: a write that held more of it was refused"},
		{"unfinished json is told at close", "tail.json", []string{`{"value":`}, []syscall.Errno{0}, syscall.EINVAL, "", "dropped"},
		{"too large ends the file", "tail", []string{"ok\n", big, big + "\n", "rest\n"}, []syscall.Errno{0, syscall.EMSGSIZE, syscall.EMSGSIZE, syscall.EMSGSIZE}, 0, "ok\n", "max.message.bytes is"},
		{"too large together with others", "tail", []string{"ok\n" + big + "\n"}, []syscall.Errno{syscall.EMSGSIZE}, 0, "", "max.message.bytes is"},
		{"half a batch", "tail.batch", []string{"0123456789"}, []syscall.Errno{0}, syscall.EINVAL, "", "dropped"},
		{"no batch", "tail.batch", []string{strings.Repeat("z", 100)}, []syscall.Errno{syscall.EMSGSIZE}, 0, "", "max.message.bytes is"},
		{"whole", "tail.whole", []string{"a\n", "b\n"}, []syscall.Errno{0, 0}, 0, "a\nb\n\n", ""},
		{"nothing", "tail.whole", nil, nil, 0, "", ""},
		{"keyed", "tail.kv", []string{"k\tv\n", "no key"}, []syscall.Errno{0, 0}, 0, "v\nno key\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			d := k.mustOpen("orders/0/"+tc.file, syscall.O_WRONLY)
			for i, s := range tc.writes {
				if got := d.write(s); got != tc.errnos[i] {
					t.Fatalf("write %d: %v, want %v", i, got, tc.errnos[i])
				}
			}
			if got := d.flush(); got != tc.closed {
				t.Errorf("close: %v, want %v", got, tc.closed)
			}
			d.release()
			k.wantRead("orders/0/tail", tc.want)
			if r := k.reports(); (tc.reported == "") != (r == "") || !strings.Contains(r, tc.reported) {
				t.Errorf("reports: %q, want %q", r, tc.reported)
			}
			if n := k.tree.settle.busy.Load(); n != 0 {
				t.Errorf("%d closes are still waited for", n)
			}
		})
	}
}

func TestJumps(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", syscall.O_WRONLY)
	for _, w := range []struct {
		s    string
		pos  uint64
		want syscall.Errno
	}{{"a\n", 1, syscall.EINVAL}, {"a\n", 0, 0}, {"b\n", 0, 0}, {"c\n", 2, 0}, {"half", 4, 0}, {"d\n", 5000, syscall.EINVAL}} {
		if got := d.pwrite(w.s, w.pos); got != w.want {
			t.Errorf("write at %d: %v, want %v", w.pos, got, w.want)
		}
	}
	d.close()
	k.wantRead("orders/0/tail", "a\nb\nc\n") // "half" was continued by what was refused
	d = k.mustOpen("orders/0/tail", appendOnly)
	if got := d.pwrite("e\n", 5000); got != 0 {
		t.Errorf("O_APPEND: %v", got)
	}
	d.close()
	d = k.mustOpen("orders/0/tail", syscall.O_RDWR)
	if got := d.pwrite("f\n", 5000); got != 0 {
		t.Errorf("O_RDWR: %v", got)
	}
	if got := d.readAll(); got != "a\nb\nc\ne\nf\n" {
		t.Errorf("O_RDWR reads %q", got)
	}
	d.close()
}

// TestWritesBeforeTheEnd: they are appended like any other, and what may follow is counted from where they ended.
func TestWritesBeforeTheEnd(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags uint32
		at    []uint64
		want  []syscall.Errno
	}{
		{"write only", syscall.O_WRONLY, []uint64{0, 2, 0, 2, 4, 2, 5}, []syscall.Errno{0, 0, 0, 0, 0, 0, syscall.EINVAL}},
		{"the end goes back", syscall.O_WRONLY, []uint64{0, 2, 4, 0, 4}, []syscall.Errno{0, 0, 0, 0, syscall.EINVAL}},
		{"append only", appendOnly, []uint64{7, 0, 100}, []syscall.Errno{0, 0, 0}},
		{"read and write", syscall.O_RDWR, []uint64{7, 0, 100}, []syscall.Errno{0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			d := k.mustOpen("orders/0/tail", tc.flags)
			defer d.close()
			want := ""
			for i, at := range tc.at {
				line := fmt.Sprintf("%d\n", i)
				if got := d.pwrite(line, at); got != tc.want[i] {
					t.Errorf("write %d at %d: %v, want %v", i, at, got, tc.want[i])
				}
				if tc.want[i] == 0 {
					want += line
				}
			}
			k.wantRead("orders/0/tail", want)
		})
	}
}

func TestWholeHonoursPositions(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail.whole", syscall.O_WRONLY)
	if a := d.mustStat(); a.Size != 0 {
		t.Errorf("size %d", a.Size)
	}
	d.pwrite("head", 0)
	d.pwrite("tail", 10)
	if got := d.truncate(16); got != 0 {
		t.Errorf("longer: %v", got)
	}
	if got := d.truncate(3); got != syscall.EPERM {
		t.Errorf("shorter: %v, want EPERM", got)
	}
	if errno := d.close(); errno != 0 {
		t.Error(errno)
	}
	k.wantRead("orders/0/record/0", "head\x00\x00\x00\x00\x00\x00tail\x00\x00")
	d = k.mustOpen("orders/0/tail", syscall.O_WRONLY)
	if got := d.truncate(0); got != syscall.EPERM {
		t.Errorf("truncate of a log: %v, want EPERM", got)
	}
	d.close()
	if _, errno := k.open("orders/0/tail.whole", syscall.O_RDONLY); errno != syscall.EACCES {
		t.Errorf("open for reading: %v", errno)
	}
}

// TestKilledWriters: what a writer that was killed left unfinished is a record only where half of one can be told from a whole.
func TestKilledWriters(t *testing.T) {
	for _, tc := range []struct {
		file, s string
		kept    bool
	}{{"tail", "half", true}, {"tail.kv", "k\thalf", true}, {"tail.whole", "half", false}, {"tail.json", `{"value":"half"}`, false}} {
		k := newKernel(t, nil)
		k.tree.dying = func(pid uint32) bool { return pid == 666 }
		k.mustMkdir("orders")
		d := k.mustOpen("orders/0/"+tc.file, syscall.O_WRONLY)
		d.write(tc.s)
		k.pid = 666
		d.flush()
		d.release()
		want := map[bool]string{true: "half\n", false: ""}[tc.kept]
		k.wantRead("orders/0/tail", want)
		if strings.Contains(k.reports(), "killed") == tc.kept {
			t.Errorf("%s: reports %q", tc.file, k.reports())
		}
		// A process that dies while another still writes does not end the record.
		d = k.mustOpen("orders/0/"+tc.file, syscall.O_WRONLY)
		d.write(tc.s)
		d.flush()
		k.pid = 1
		d.close()
		k.wantRead("orders/0/tail", want+"half\n")
	}
}

func TestFailingEngine(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", appendOnly)
	d.write("pend")
	k.engine.Fail("append", syscall.ENOSPC)
	if got := d.write("ing\nmore"); got != syscall.ENOSPC {
		t.Errorf("write: %v, want ENOSPC", got)
	}
	if got := d.write("ing\n"); got != 0 {
		t.Errorf("again: %v", got)
	}
	d.write("last")
	k.engine.Fail("check", syscall.ENOSPC)
	if got := d.flush(); got != syscall.ENOSPC {
		t.Errorf("close: %v, want ENOSPC", got)
	}
	if got := d.close(); got != 0 {
		t.Errorf("close again: %v", got)
	}
	k.wantRead("orders/0/tail", "pending\nlast\n")
	d = k.mustOpen("orders/0/tail", appendOnly)
	d.write("lost")
	d.flush()
	k.engine.Fail("append", syscall.EDQUOT)
	d.release()
	if !strings.Contains(k.reports(), "4 bytes was dropped") {
		t.Errorf("reports: %s", k.reports())
	}
	d = k.mustOpen("orders/0/tail", appendOnly|syscall.O_DSYNC)
	k.engine.Fail("sync", syscall.EIO)
	if got := d.write("x\n"); got != syscall.EIO {
		t.Errorf("O_DSYNC: %v, want EIO", got)
	}
	if got := d.fsync(); got != syscall.EIO {
		t.Errorf("fsync after it: %v, want EIO", got)
	}
	if got := d.write("y\n"); got != syscall.EIO {
		t.Errorf("write after it: %v, want EIO", got)
	}
	d.close()
	k.wantRead("orders/0/tail", "pending\nlast\nx\n")
}

func TestReadOnly(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "a\n")
	k.engine.PartitionReadOnly(orders, "because")
	for _, f := range []string{"orders/0/tail", "orders/0/start", "orders/tail", "orders/0/tail.whole"} {
		if _, errno := k.open(f, syscall.O_WRONLY); errno != syscall.EROFS {
			t.Errorf("%s: %v, want EROFS", f, errno)
		}
	}
	if !strings.Contains(k.reports(), "because") {
		t.Errorf("reports: %s", k.reports())
	}
	k.wantRead("orders/0/tail", "a\n")
	ro := newKernel(t, func(o *Options) { o.ReadOnly = true })
	if errno := ro.mkdir("u"); errno != syscall.EROFS {
		t.Errorf("mkdir: %v, want EROFS", errno)
	}
	for _, f := range []string{"orders/0/end", "orders/0/offset/0", "orders/0/record/0", "orders/0/follow", ".logmount/version"} {
		if _, errno := k.open(f, syscall.O_WRONLY); errno != syscall.EACCES {
			t.Errorf("%s for writing: %v, want EACCES", f, errno)
		}
	}
}

func TestTopicTail(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.mustMkdir("orders/1")
	k.mustMkdir("orders/2")
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "key-%d\t%d\n", i%20, i)
	}
	k.write("orders/tail.kv", b.String())
	total := 0
	for p := range 3 {
		last := map[string]int{}
		for _, l := range strings.Split(strings.TrimSuffix(k.read(fmt.Sprintf("orders/%d/tail.kv", p)), "\n"), "\n") {
			key, value, _ := strings.Cut(l, "\t")
			var n int
			fmt.Sscan(value, &n)
			if int(murmur2([]byte(key))&0x7fffffff)%3 != p {
				t.Errorf("%s went to partition %d", key, p)
			}
			if prev, ok := last[key]; ok && prev > n {
				t.Errorf("%s: %d came after %d", key, n, prev)
			}
			last[key] = n
			total++
		}
	}
	if total != 300 {
		t.Errorf("%d records, want 300", total)
	}
	d := k.mustOpen("orders/tail", appendOnly)
	d.write("unfinished")
	d.flush()
	go d.release()
	n := 0
	for p := range 3 {
		n += strings.Count(k.read(fmt.Sprintf("orders/%d/tail", p)), "unfinished\n")
	}
	if n != 1 {
		t.Errorf("the unfinished line is there %d times", n)
	}
	if _, errno := k.open("orders/tail", syscall.O_RDONLY); errno != syscall.EACCES {
		t.Errorf("open for reading: %v", errno)
	}
	// What failed half way says so.
	k.write("orders/0/start", "0\n")
	k.engine.PartitionReadOnly(storage.TopicPartition{Topic: "orders", Partition: 2}, "closed for repairs")
	if _, errno := k.open("orders/tail", appendOnly); errno != syscall.EROFS {
		t.Errorf("open: %v, want EROFS", errno)
	}
}

func TestTopicTailFailsHalfWay(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.mustMkdir("orders/1")
	d := k.mustOpen("orders/tail.kv", appendOnly)
	k.engine.PartitionReadOnly(storage.TopicPartition{Topic: "orders", Partition: 1}, "closed for repairs")
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "key-%d\tv\n", i)
	}
	if got := d.write(b.String()); got != syscall.EROFS {
		t.Errorf("write: %v, want EROFS", got)
	}
	if !strings.Contains(k.reports(), "had added") {
		t.Errorf("reports: %s", k.reports())
	}
	d.close()
}

func TestWriteThroughAMapping(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", syscall.O_RDWR)
	defer d.close()
	in := &fuse.WriteIn{InHeader: k.header(d.id), Fh: d.fh, WriteFlags: fuse.WRITE_CACHE, Flags: d.flags}
	if _, st := k.tree.raw.Write(k.cancel, in, []byte("x\n")); st != fuse.EPERM {
		t.Errorf("got %v, want EPERM", st)
	}
}

func TestCopyBatches(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.mustMkdir("copy")
	for i := range 10 {
		k.write("orders/0/tail", fmt.Sprintf("record %d\n", i))
	}
	from, to := k.mustOpen("orders/0/tail.batch", syscall.O_RDONLY), k.mustOpen("copy/0/tail.batch", syscall.O_WRONLY)
	in := &fuse.CopyFileRangeIn{InHeader: k.header(from.id), FhIn: from.fh, NodeIdOut: to.id, FhOut: to.fh, Len: 100}
	for {
		n, st := k.tree.raw.CopyFileRange(k.cancel, in)
		if st != fuse.OK {
			t.Fatal(st)
		}
		if n == 0 {
			break
		}
		in.OffIn += uint64(n)
		in.OffOut += uint64(n)
	}
	from.close()
	if errno := to.close(); errno != 0 {
		t.Error(errno)
	}
	k.wantRead("copy/0/tail", k.read("orders/0/tail"))
	lines := k.mustOpen("copy/0/tail", syscall.O_WRONLY)
	defer lines.close()
	in = &fuse.CopyFileRangeIn{FhIn: from.fh, FhOut: lines.fh, Len: 100}
	if _, st := k.tree.raw.CopyFileRange(k.cancel, in); st != fuse.EBADF {
		t.Errorf("closed file: %v", st)
	}
	from = k.mustOpen("orders/0/tail.batch", syscall.O_RDONLY)
	defer from.close()
	in.FhIn = from.fh
	if _, st := k.tree.raw.CopyFileRange(k.cancel, in); st != fuse.EINVAL {
		t.Errorf("batches to lines: %v, want EINVAL", st)
	}
}

// TestWritersModel cuts lines anywhere into requests of many handles, with flushes between them and requests that are refused.
func TestWritersModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := newKernel(t, nil)
		k.mustMkdir("orders")
		type writing struct {
			d    *descriptor
			left string // not sent yet
			half string // sent, without its end
		}
		var open []*writing
		var want strings.Builder
		n := 0
		rt.Repeat(map[string]func(*rapid.T){
			"open": func(*rapid.T) {
				var b strings.Builder
				for range rapid.IntRange(1, 5).Draw(rt, "lines") {
					fmt.Fprintf(&b, "%d %s\n", n, strings.Repeat("x", rapid.IntRange(0, 50).Draw(rt, "len")))
					n++
				}
				all := b.String()
				if rapid.Bool().Draw(rt, "unfinished") {
					all = all[:len(all)-1]
				}
				open = append(open, &writing{d: k.mustOpen("orders/0/tail", syscall.O_WRONLY), left: all})
			},
			"write": func(*rapid.T) {
				if len(open) == 0 {
					return
				}
				w := rapid.SampledFrom(open).Draw(rt, "writer")
				part := w.left[:rapid.IntRange(0, len(w.left)).Draw(rt, "bytes")]
				if part == "" {
					return
				}
				if strings.Contains(part, "\n") && rapid.IntRange(0, 3).Draw(rt, "fail") == 0 {
					k.engine.Fail("append", syscall.ENOSPC)
					if got := w.d.write(part); got != syscall.ENOSPC {
						rt.Fatalf("write: %v", got)
					}
				}
				if got := w.d.write(part); got != 0 {
					rt.Fatalf("write: %v", got)
				}
				w.left = w.left[len(part):]
				w.half += part
				if i := strings.LastIndexByte(w.half, '\n'); i >= 0 {
					want.WriteString(w.half[:i+1])
					w.half = w.half[i+1:]
				}
			},
			"flush": func(*rapid.T) {
				if len(open) > 0 {
					w := rapid.SampledFrom(open).Draw(rt, "writer")
					if got := w.d.flush(); got != 0 {
						rt.Fatalf("flush: %v", got)
					}
					w.d.stat() // it lives
				}
			},
			"close": func(*rapid.T) {
				if len(open) == 0 {
					return
				}
				i := rapid.IntRange(0, len(open)-1).Draw(rt, "writer")
				w := open[i]
				open = append(open[:i], open[i+1:]...)
				if got := w.d.close(); got != 0 {
					rt.Fatalf("close: %v", got)
				}
				if w.half != "" {
					want.WriteString(w.half + "\n")
				}
			},
			"": func(*rapid.T) {
				if got := k.read("orders/0/tail"); got != want.String() {
					rt.Fatalf("got %q, want %q", got, want.String())
				}
			},
		})
	})
}
