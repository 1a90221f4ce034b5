package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"pgregory.net/rapid"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// seen is a record as the model remembers it.
type seen struct {
	r storage.Record
}

func encoded(f format.Format, records []seen) []byte {
	var out []byte
	for i := range records {
		out = f.Append(out, &records[i].r)
	}
	return out
}

// TestViewsModel reads views at random places, in every format, while the log grows and loses its beginning, and compares with a slice of records.
func TestViewsModel(t *testing.T) {
	formats := []format.Format{format.Lines, format.NUL, format.KV, format.JSON}
	rapid.Check(t, func(rt *rapid.T) {
		k := newKernel(t, nil)
		k.mustMkdir("orders")
		var log []seen
		start := 0
		add := func() {
			n := rapid.IntRange(1, 20).Draw(rt, "records")
			var recs []storage.Record
			for range n {
				r := storage.Record{Timestamp: int64(rapid.IntRange(0, 1000).Draw(rt, "ts"))}
				if rapid.Bool().Draw(rt, "keyed") {
					r.Key = rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(rt, "key")
				}
				r.Value = bytes.Repeat([]byte{'v', '"', 0xff}, rapid.IntRange(0, 60).Draw(rt, "len"))
				r.Offset = storage.Offset(len(log))
				log = append(log, seen{r})
				recs = append(recs, r)
			}
			k.append(orders, recs...)
		}
		add()
		type reader struct {
			d        *descriptor
			f        format.Format
			from, to int // to < 0: open
			pos      int64
			size     uint64
		}
		var readers []*reader
		want := func(r *reader) []byte {
			to := len(log)
			if r.to >= 0 {
				to = min(to, r.to)
			}
			return encoded(r.f, log[r.from:max(to, r.from)])
		}
		check := func(r *reader, n int, pos int64) {
			all := want(r)
			exp := all[min(int(pos), len(all)):min(int(pos)+n, len(all))]
			got, errno := r.d.pread(n, pos)
			if errno != 0 || !bytes.Equal(got, exp) {
				rt.Fatalf("%v %d..%d: read of %d at %d of %d: %v, got %d bytes %.60q, want %d bytes %.60q", r.f, r.from, r.to, n, pos, len(all), errno, len(got), got, len(exp), exp)
			}
			if pos == r.pos {
				r.pos += int64(len(got))
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(*rapid.T) { add() },
			"start": func(*rapid.T) {
				start = rapid.IntRange(start, len(log)).Draw(rt, "start")
				k.write("orders/0/start", fmt.Sprintf("%d\n", start))
			},
			"open": func(*rapid.T) {
				r := &reader{f: rapid.SampledFrom(formats).Draw(rt, "format"), from: rapid.IntRange(start, len(log)).Draw(rt, "from"), to: -1}
				name := fmt.Sprintf("offset/%d", r.from)
				switch rapid.IntRange(0, 2).Draw(rt, "kind") {
				case 0:
					r.to = rapid.IntRange(r.from, len(log)+5).Draw(rt, "to")
					name = fmt.Sprintf("offset/%d..%d", r.from, r.to)
				case 1:
					if r.from = start; true {
						name = "tail"
					}
				}
				if s := r.f.Suffix(); s != "" {
					name += "." + s
				}
				r.d = k.mustOpen("orders/0/"+name, syscall.O_RDONLY)
				readers = append(readers, r)
			},
			"next": func(*rapid.T) {
				if len(readers) > 0 {
					r := rapid.SampledFrom(readers).Draw(rt, "reader")
					check(r, rapid.IntRange(1, 3000).Draw(rt, "n"), r.pos)
				}
			},
			"anywhere": func(*rapid.T) {
				if len(readers) > 0 {
					r := rapid.SampledFrom(readers).Draw(rt, "reader")
					check(r, rapid.IntRange(1, 500).Draw(rt, "n"), int64(rapid.IntRange(0, len(want(r))+100).Draw(rt, "pos")))
				}
			},
			"": func(*rapid.T) {
				for _, r := range readers {
					a := r.d.mustStat()
					if a.Size != uint64(len(want(r))) || a.Blocks != (a.Size+511)/512 || a.Size < r.size {
						rt.Fatalf("%v %d..%d: size %d, %d blocks, before %d; want %d", r.f, r.from, r.to, a.Size, a.Blocks, r.size, len(want(r)))
					}
					r.size = a.Size
				}
			},
		})
	})
}

// TestOffsetsWithoutRecords: behind the last visible record there may be control batches, and what aborted transactions wrote.
func TestOffsetsWithoutRecords(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "a\n")
	k.engine.Gap(orders, 2)
	k.write("orders/0/tail", "b\n")
	k.engine.Gap(orders, 2)
	for path, want := range map[string]string{"offset/1": "b\n", "record/3": "b", "offset/4": "", "offset/5": "", "end": "6\n"} {
		k.wantRead("orders/0/"+path, want)
	}
	for _, n := range []string{"1", "2", "4", "5", "5.json", "5.batch", "6"} {
		if _, errno := k.lookup("orders/0/record/" + n); errno != syscall.ENOENT {
			t.Errorf("record/%s: %v, want ENOENT", n, errno)
		}
	}
}

func TestNames(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail.json", `{"value":"a","timestamp":1000}`+"\n"+`{"value":"b","timestamp":2000}`+"\n"+`{"value":"c","timestamp":3000}`+"\n")
	for path, want := range map[string]string{
		"tail": "a\nb\nc\n", "offset/0": "a\nb\nc\n", "offset/2": "c\n", "offset/3": "", "offset/1..2": "b\n", "offset/1..9": "b\nc\n", "offset/-2": "b\nc\n",
		"offset/-9": "a\nb\nc\n", "time/0": "a\nb\nc\n", "time/1001": "b\nc\n", "time/@2": "b\nc\n", "time/3001": "", "time/1000..3000": "a\nb\n",
		"time/3000..9000": "c\n", "record/1": "b", "record/1.kv": "\tb\n", "record/1.nul": "b\x00", "start": "0\n", "end": "3\n", "offset/2.kv": "\tc\n",
		"time/1970-01-01T00:00:02Z.nul": "b\x00c\x00", "offset/1..1": "",
	} {
		k.wantRead("orders/0/"+path, want)
	}
	for _, path := range []string{
		"orders/1", "orders/00", "orders/x", "orders/config.json", "orders/tail.batch", "orders/0/offset/4", "orders/0/offset/2..1", "orders/0/offset/-0",
		"orders/0/record/3", "orders/0/record/-1", "orders/0/record/0.whole", "orders/0/offset/0.whole", "orders/0/follow.whole", "orders/0/start.json",
		"orders/0/time/soon", "orders/0/nothing", "orders/0/segments/x.log", "nothing", ".hidden", ".logmount/nothing",
	} {
		if _, errno := k.lookup(path); errno != syscall.ENOENT {
			t.Errorf("%s: %v, want ENOENT", path, errno)
		}
	}
	k.write("orders/0/start", "1\n")
	k.wantRead("orders/0/tail", "b\nc\n")
	if _, errno := k.lookup("orders/0/offset/0"); errno != syscall.ENOENT {
		t.Errorf("below the start: %v", errno)
	}
}

// TestKinds checks what the kernel may cache of which file, and that a growing view is a new inode at each lookup.
func TestKinds(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "a\nb\nc\n")
	for _, tc := range []struct {
		path  string
		cache bool
	}{
		{"tail", false}, {"offset/0", false}, {"offset/0..3", true}, {"offset/0..4", false}, {"time/0", false}, {"time/0..1", true}, {"record/2", true},
		{"end", false}, {"start", false}, {"offset/-1", false},
	} {
		a, b := k.mustLookup("orders/0/"+tc.path), k.mustLookup("orders/0/"+tc.path)
		if a.Ino != b.Ino || a.Ino < 2 {
			t.Errorf("%s: st_ino %d, then %d", tc.path, a.Ino, b.Ino)
		}
		if (a.NodeId == b.NodeId) != tc.cache {
			t.Errorf("%s: inodes %d and %d", tc.path, a.NodeId, b.NodeId)
		}
		if a.EntryTimeout() != 0 || a.AttrTimeout() > 0 != tc.cache {
			t.Errorf("%s: name kept for %v, attributes for %v", tc.path, a.EntryTimeout(), a.AttrTimeout())
		}
		d, errno := k.openID(a.NodeId, syscall.O_RDONLY)
		if errno != 0 {
			t.Fatal(errno)
		}
		want := uint32(fuse.FOPEN_DIRECT_IO)
		if tc.cache {
			want = fuse.FOPEN_KEEP_CACHE
		}
		if d.how != want {
			t.Errorf("%s: opened with %#x, want %#x", tc.path, d.how, want)
		}
		if st := d.mustStat(); st.Nlink != 1 || st.Blksize != readBlock {
			t.Errorf("%s: nlink %d, blksize %d", tc.path, st.Nlink, st.Blksize)
		}
		d.close()
	}
	d := k.mustOpen("orders/0/tail", syscall.O_WRONLY)
	defer d.close()
	if st := d.mustStat(); st.Blksize != writeBlock {
		t.Errorf("blksize %d for a writer", st.Blksize)
	}
	id := k.mustLookup("orders/0/record/2").NodeId
	k.engine.Rewrite(orders)
	if got := k.mustLookup("orders/0/record/2").NodeId; got == id {
		t.Error("a rewritten log kept its cached inodes")
	}
}

// TestSizesThatAreNotKnown: a bare stat never waits, a file in use does.
func TestSizesThatAreNotKnown(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "one\ntwo\n")
	release := k.engine.Hold("extent")
	e := k.mustLookup("orders/0/tail")
	if e.Size != 0 {
		t.Errorf("size %d, want what is known", e.Size)
	}
	d, errno := k.openID(e.NodeId, syscall.O_RDONLY)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer d.close()
	if b, errno := d.pread(100, 0); errno != 0 || string(b) != "one\ntwo\n" {
		t.Errorf("sequential read: %q, %v", b, errno)
	}
	k2 := *k
	k2.cancel = make(chan struct{})
	other, _ := k.openID(k.mustLookup("orders/0/offset/1").NodeId, syscall.O_RDONLY)
	other.k = &k2
	done := make(chan syscall.Errno)
	go func() { _, errno := other.stat(); done <- errno }()
	close(k2.cancel)
	if errno := <-done; errno != syscall.EINTR {
		t.Errorf("interrupted fstat: %v, want EINTR", errno)
	}
	release()
	other.k = k
	if a := other.mustStat(); a.Size != 4 {
		t.Errorf("size %d, want 4", a.Size)
	}
	other.close()
}

// ownEngine says that its directory is ours.
type ownEngine struct{ storage.Engine }

func (e ownEngine) Info() storage.EngineInfo {
	info := e.Engine.Info()
	info.Own = true
	return info
}

// statPath is the GETATTR of a stat(2), which follows its LOOKUP.
func (k *kernel) statPath(id uint64) (fuse.Attr, syscall.Errno) {
	var out fuse.AttrOut
	st := k.tree.raw.GetAttr(k.cancel, &fuse.GetAttrIn{InHeader: k.header(id)}, &out)
	return out.Attr, syscall.Errno(st)
}

// TestLookupDoesNotCount: a size that needs the whole log is worked out for a stat(2), not for the lookup that is part of every open(2), nor for one who
// only writes.
func TestLookupDoesNotCount(t *testing.T) {
	for _, tc := range []struct {
		name  string
		own   bool
		waits bool
	}{{"ours", true, true}, {"another's, without sums", false, false}} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKernel(t, nil)
			k.tree.engine = ownEngine{k.engine}
			if !tc.own {
				k.tree.engine = k.engine
			}
			k.mustMkdir("orders")
			k.write("orders/0/tail", "one\ntwo\n")
			want := len(k.read("orders/0/tail.json"))
			release := k.engine.Hold("extent")
			e := k.mustLookup("orders/0/tail.json")
			if e.AttrValid != 0 || e.AttrValidNsec != 0 {
				t.Error("the kernel would not ask again")
			}
			w, errno := k.openID(e.NodeId, appendOnly)
			if errno != 0 {
				t.Fatal(errno)
			}
			w.mustStat()
			if _, errno := k.statPath(e.NodeId); errno != 0 { // a fstat(2) comes without its handle
				t.Errorf("stat by a writer: %v", errno)
			}
			if errno := w.close(); errno != 0 {
				t.Errorf("close: %v", errno)
			}
			e = k.mustLookup("orders/0/tail.json")
			k2 := *k
			k2.cancel = make(chan struct{})
			done := make(chan syscall.Errno, 1)
			go func() { _, errno := k2.statPath(e.NodeId); done <- errno }()
			if tc.waits {
				close(k2.cancel)
			}
			if errno := <-done; (errno == syscall.EINTR) != tc.waits {
				t.Errorf("stat while it is not known: %v", errno)
			}
			release()
			if a, errno := k.statPath(e.NodeId); errno != 0 || int(a.Size) != want {
				t.Errorf("stat: %d bytes, %v, want %d", a.Size, errno, want)
			}
		})
	}
}

// TestLargeViewIsNotCounted: nobody who opens a large log as JSON waits for its size, and who has it open is told.
func TestLargeViewIsNotCounted(t *testing.T) {
	k := newKernel(t, nil)
	k.tree.engine = ownEngine{k.engine}
	k.mustMkdir("orders")
	for range 17 {
		k.append(orders, storage.Record{Value: make([]byte, 1<<20-100)})
	}
	release := k.engine.Hold("count")
	id := k.mustLookup("orders/0/tail.json").NodeId
	if a, errno := k.statPath(id); errno != 0 || a.Size != 0 {
		t.Errorf("a bare stat: %d bytes, %v", a.Size, errno)
	}
	d, errno := k.openID(id, syscall.O_RDONLY)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer d.close()
	if b, errno := d.pread(10, 0); errno != 0 || string(b) != `{"offset":` {
		t.Errorf("read: %q, %v", b, errno)
	}
	release()
	if a := d.mustStat(); a.Size < countAtOnce {
		t.Errorf("size %d for its reader, want all of it", a.Size)
	}
}

func TestDamagedBatch(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "one\n")
	k.write("orders/0/tail", "two\n")
	k.write("orders/0/tail", "three\n")
	k.engine.Corrupt(orders, 1)
	d := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	defer d.close()
	if b, errno := d.pread(100, 0); errno != 0 || string(b) != "one\n" {
		t.Errorf("before the damage: %q, %v", b, errno)
	}
	for range 2 {
		if b, errno := d.pread(100, 4); errno != syscall.EIO {
			t.Errorf("at the damage: %q, %v, want EIO", b, errno)
		}
	}
	k.wantRead("orders/0/offset/2", "three\n")
	if _, errno := d.stat(); errno != 0 {
		t.Errorf("fstat: %v", errno)
	}
	// In the page cache a short read would become zeros.
	c := k.mustOpen("orders/0/offset/0..3", syscall.O_RDONLY)
	defer c.close()
	if c.how != fuse.FOPEN_KEEP_CACHE {
		t.Fatalf("opened with %#x", c.how)
	}
	if b, errno := c.pread(100, 0); errno != syscall.EIO {
		t.Errorf("cached: %q, %v, want EIO", b, errno)
	}
	if !strings.Contains(k.reports(), "damaged by the test") {
		t.Errorf("not reported: %s", k.reports())
	}
}

// TestPageCacheIsToldOfErrors: sendfile(2) and mappings read through the page cache whatever a file was opened as. What is short there is the end of the file.
func TestPageCacheIsToldOfErrors(t *testing.T) {
	for _, name := range []string{"tail", "tail.json", "tail.batch", "offset/0..9"} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			for _, line := range []string{"one\n", "two\n", "three\n"} {
				k.write("orders/0/tail", line)
			}
			k.engine.Corrupt(orders, 1)
			d := k.mustOpen("orders/0/"+name, syscall.O_RDONLY)
			defer d.close()
			if d.how&fuse.FOPEN_DIRECT_IO == 0 {
				t.Fatalf("opened with %#x", d.how)
			}
			before, errno := d.pread(1000, 0)
			if errno != 0 || len(before) == 0 {
				t.Fatalf("read(2) before the damage: %q, %v", before, errno)
			}
			d.mapped = true
			for range 2 {
				if b, errno := d.pread(1000, 0); errno != syscall.EIO {
					t.Errorf("over the damage: %q, %v, want EIO", b, errno)
				}
			}
			if b, errno := d.pread(len(before), 0); errno != 0 || string(b) != string(before) {
				t.Errorf("before it: %q, %v", b, errno)
			}
		})
	}
}

// TestCutLogIsStale: whoever has read of what a log lost must not get what took its place as if it were what follows.
func TestCutLogIsStale(t *testing.T) {
	for _, name := range []string{"tail", "tail.json", "tail.kv", "offset/0", "tail.batch"} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, nil)
			k.mustMkdir("orders")
			k.write("orders/0/tail", "zero\n")
			behind, between, ahead := k.mustOpen("orders/0/"+name, syscall.O_RDONLY), k.mustOpen("orders/0/"+name, syscall.O_RDONLY), k.mustOpen("orders/0/"+name, syscall.O_RDONLY)
			for i := 1; i < 10; i++ { // seen by no stat
				k.write("orders/0/tail", fmt.Sprintf("old %d\n", i))
			}
			all := k.read("orders/0/" + name)
			lines := len(all) / 10
			first, errno := between.pread(lines*3, 0)
			if errno != 0 {
				t.Fatal(errno)
			}
			most, errno := ahead.pread(len(all)-lines, 0) // ends within a record
			if errno != 0 {
				t.Fatal(errno)
			}
			k.engine.Cut(orders, 6)
			for i := 6; i < 20; i++ {
				k.write("orders/0/tail", fmt.Sprintf("another %d\n", i))
			}
			if b, errno := ahead.pread(1000, int64(len(most))); errno != syscall.ESTALE {
				t.Errorf("behind what is gone: %q, %v, want ESTALE", b, errno)
			}
			if b, errno := ahead.pread(len(first), 0); errno != 0 || string(b) != string(first) {
				t.Errorf("what is left: %q, %v", b, errno)
			}
			now := k.read("orders/0/" + name)
			if got := string(first) + between.readFrom(len(first)); got != now {
				t.Errorf("who had read nothing of it: got %.300q, want %.300q", got, now)
			}
			if got := behind.readAll(); got != now {
				t.Errorf("who had read nothing: got %.300q, want %.300q", got, now)
			}
			for _, d := range []*descriptor{behind, between, ahead} {
				d.close()
			}
		})
	}
}

func TestGoneIsStale(t *testing.T) {
	k := newKernel(t, nil)
	k.engine.DropBelowStart(true)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "one\ntwo\nthree\n")
	d := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	defer d.close()
	size := d.mustStat().Size
	k.write("orders/0/start", "2\n")
	if _, errno := d.pread(10, 0); errno != syscall.ESTALE {
		t.Errorf("what is gone: %v, want ESTALE", errno)
	}
	if b, errno := d.pread(100, 8); errno != 0 || string(b) != "three\n" {
		t.Errorf("what is left: %q, %v", b, errno)
	}
	k.write("orders/0/tail", "four\n")
	if got := d.mustStat().Size; got != size+5 {
		t.Errorf("size %d, want %d", got, size+5)
	}
	if b, errno := d.pread(100, int64(size)); errno != 0 || string(b) != "four\n" {
		t.Errorf("what came: %q, %v", b, errno)
	}
}

func TestStatusIsJSON(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	d := k.mustOpen("orders/0/tail", syscall.O_WRONLY)
	defer d.close()
	var st struct {
		Open struct{ Writers int }
	}
	if err := json.Unmarshal([]byte(k.read(".logmount/status")), &st); err != nil || st.Open.Writers != 1 {
		t.Errorf("status: %v, %+v", err, st)
	}
}
