package fs

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
)

// TestRefusals: what is never done is EPERM, so that nothing looks like a broken disk and nothing is remembered as not implemented.
func TestRefusals(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	raw := k.tree.raw
	dir := k.header(k.mustLookup("orders/0").NodeId)
	var entry fuse.EntryOut
	var created fuse.CreateOut
	for name, st := range map[string]fuse.Status{
		"create":   raw.Create(nil, &fuse.CreateIn{InHeader: dir}, "tial", &created),
		"tmpfile":  raw.Tmpfile(nil, &fuse.CreateIn{InHeader: dir}, &created),
		"mknod":    raw.Mknod(nil, &fuse.MknodIn{InHeader: dir}, "x", &entry),
		"symlink":  raw.Symlink(nil, &dir, "x", "y", &entry),
		"link":     raw.Link(nil, &fuse.LinkIn{InHeader: dir}, "x", &entry),
		"rename":   raw.Rename(nil, &fuse.RenameIn{InHeader: dir}, "x", "y"),
		"unlink":   raw.Unlink(nil, &dir, "tail"),
		"alloc":    raw.Fallocate(nil, &fuse.FallocateIn{InHeader: dir}),
		"setxattr": raw.SetXAttr(nil, &fuse.SetXAttrIn{InHeader: dir}, "user.x", nil),
		"mkdir":    raw.Mkdir(nil, &fuse.MkdirIn{InHeader: dir}, "x", &entry),
		"rmdir":    raw.Rmdir(nil, &dir, "offset"),
	} {
		if st != fuse.EPERM {
			t.Errorf("%s: %v, want EPERM", name, st)
		}
	}
	chmod := &fuse.SetAttrIn{}
	chmod.InHeader, chmod.Valid = dir, fuse.FATTR_MODE
	touch := &fuse.SetAttrIn{}
	touch.InHeader, touch.Valid = dir, fuse.FATTR_MTIME|fuse.FATTR_ATIME
	var out fuse.AttrOut
	if st := raw.SetAttr(k.cancel, chmod, &out); st != fuse.EPERM {
		t.Errorf("chmod: %v, want EPERM", st)
	}
	if st := raw.SetAttr(k.cancel, touch, &out); st != fuse.OK {
		t.Errorf("touch: %v", st)
	}
}

// TestUnknownNumbers: the kernel does not send them, and if it did the daemon must not fall over.
func TestUnknownNumbers(t *testing.T) {
	k := newKernel(t, nil)
	raw, h := k.tree.raw, k.header(99)
	var entry fuse.EntryOut
	var attr fuse.AttrOut
	var open fuse.OpenOut
	set := &fuse.SetAttrIn{}
	set.InHeader = h
	_, read := raw.Read(k.cancel, &fuse.ReadIn{Fh: 99}, make([]byte, 10))
	_, write := raw.Write(k.cancel, &fuse.WriteIn{Fh: 99}, []byte("x"))
	for name, st := range map[string]fuse.Status{
		"lookup": raw.Lookup(k.cancel, &h, "x", &entry), "getattr": raw.GetAttr(k.cancel, &fuse.GetAttrIn{InHeader: h}, &attr),
		"setattr": raw.SetAttr(k.cancel, set, &attr), "open": raw.Open(k.cancel, &fuse.OpenIn{InHeader: h}, &open),
		"opendir": raw.OpenDir(k.cancel, &fuse.OpenIn{InHeader: h}, &open), "mkdir": raw.Mkdir(k.cancel, &fuse.MkdirIn{InHeader: h}, "x", &entry),
		"rmdir": raw.Rmdir(k.cancel, &h, "x"), "read": read, "write": write, "flush": raw.Flush(k.cancel, &fuse.FlushIn{Fh: 99}),
		"fsync": raw.Fsync(k.cancel, &fuse.FsyncIn{InHeader: h}), "fsyncdir": raw.FsyncDir(k.cancel, &fuse.FsyncIn{InHeader: h}),
		"readdir": raw.ReadDir(k.cancel, &fuse.ReadIn{Fh: 99}, fuse.NewDirEntryList(make([]byte, 100), 0)),
	} {
		if st == fuse.OK || st == fuse.ENOSYS {
			t.Errorf("%s: %v", name, st)
		}
	}
	raw.Release(k.cancel, &fuse.ReleaseIn{Fh: 99})
	raw.ReleaseDir(&fuse.ReleaseIn{Fh: 99})
	raw.Forget(99, 1)
	if _, errno := k.lookup(".logmount/version/x"); errno != syscall.ENOTDIR {
		t.Errorf("lookup in a file: %v, want ENOTDIR", errno)
	}
}

// names lists a directory with a small buffer, as the kernel does in pieces.
func (k *kernel) names(path string) []string {
	k.t.Helper()
	id := uint64(1)
	if path != "" {
		id = k.mustLookup(path).NodeId
	}
	var open fuse.OpenOut
	if st := k.tree.raw.OpenDir(k.cancel, &fuse.OpenIn{InHeader: k.header(id)}, &open); st != fuse.OK {
		k.t.Fatalf("opendir %s: %v", path, st)
	}
	defer k.tree.raw.ReleaseDir(&fuse.ReleaseIn{Fh: open.Fh})
	var names []string
	for off := uint64(0); ; {
		list := fuse.NewDirEntryList(make([]byte, 80), off)
		if st := k.tree.raw.ReadDir(k.cancel, &fuse.ReadIn{InHeader: k.header(id), Fh: open.Fh, Offset: off}, list); st != fuse.OK {
			k.t.Fatalf("readdir %s: %v", path, st)
		}
		b := list.Bytes()
		if len(b) == 0 {
			return names
		}
		for len(b) > 0 {
			n := binary.NativeEndian.Uint32(b[16:])
			e := fuse.DirEntry{
				Ino: binary.NativeEndian.Uint64(b), Off: binary.NativeEndian.Uint64(b[8:]), Mode: binary.NativeEndian.Uint32(b[20:]) << 12, Name: string(b[24 : 24+n]),
			}
			b = b[(24+n+7)&^7:]
			names = append(names, e.Name)
			off = e.Off
			if e.Name != "." && e.Name != ".." {
				if got := k.mustLookup(strings.TrimPrefix(path+"/"+e.Name, "/")); got.Ino != e.Ino || got.Mode&syscall.S_IFMT != e.Mode {
					k.t.Errorf("%s/%s: listed as %d %o, found as %d %o", path, e.Name, e.Ino, e.Mode, got.Ino, got.Mode)
				}
			}
		}
	}
}

func TestListings(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.mustMkdir("orders/1")
	k.mustMkdir(".hidden")
	for path, want := range map[string][]string{
		"": {".", "..", ".hidden", ".logmount", "orders"}, "orders": {".", "..", "0", "1"}, "orders/0/offset": {".", ".."},
		"orders/0":  {".", "..", "end", "offset", "record", "segments", "start", "tail", "time"},
		".logmount": {".", "..", "README", "config", "errors", "status", "version"}, "orders/1/segments": {".", ".."},
	} {
		got := k.names(path)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestDirectories(t *testing.T) {
	k := newKernel(t, nil)
	for path, want := range map[string]syscall.Errno{"with space": syscall.EINVAL, strings.Repeat("a", 250): syscall.EINVAL, ".logmount": syscall.EEXIST} {
		if got := k.mkdir(path); got != want {
			t.Errorf("mkdir %.20s: %v, want %v", path, got, want)
		}
	}
	k.mustMkdir("orders")
	for path, want := range map[string]syscall.Errno{"orders": syscall.EEXIST, "orders/7": syscall.EINVAL, "orders/x": syscall.EINVAL, "orders/0": syscall.EEXIST} {
		if got := k.mkdir(path); got != want {
			t.Errorf("mkdir %s: %v, want %v", path, got, want)
		}
	}
	root := k.header(1)
	k.write("orders/0/tail", "a\n")
	if st := k.tree.raw.Rmdir(k.cancel, &root, "orders"); st != fuse.Status(syscall.ENOTEMPTY) {
		t.Errorf("rmdir: %v, want ENOTEMPTY", st)
	}
	k.write("orders/0/start", "1\n")
	id := k.mustLookup("orders").NodeId
	tail := k.mustOpen("orders/0/tail", syscall.O_WRONLY)
	if st := k.tree.raw.Rmdir(k.cancel, &root, "orders"); st != fuse.OK {
		t.Errorf("rmdir: %v", st)
	}
	if errno := tail.write("b\n"); errno != syscall.ESTALE {
		t.Errorf("write to what is gone: %v", errno)
	}
	tail.close()
	k.mustMkdir("orders")
	if got := k.mustLookup("orders").NodeId; got == id {
		t.Error("a new topic has the inode of the removed one, which the kernel has marked as dead")
	}
	k.wantRead("orders/0/tail", "")
	if st := k.tree.raw.Rmdir(k.cancel, &root, ".logmount"); st != fuse.EPERM {
		t.Errorf("rmdir .logmount: %v", st)
	}
}

func TestOwnerAndModes(t *testing.T) {
	uid, gid, umask := uint32(7), uint32(8), uint32(0o027)
	k := newKernel(t, func(o *Options) { o.UID, o.GID, o.Umask = &uid, &gid, &umask })
	k.mustMkdir("orders")
	plain := newKernel(t, nil)
	plain.mustMkdir("orders")
	want := map[string][2]uint32{
		"orders": {0o750, 0o755}, "orders/0/tail": {0o640, 0o644}, "orders/0/tail.whole": {0o200, 0o200}, "orders/0/end": {0o440, 0o444},
		"orders/0/start": {0o640, 0o644}, "orders/0/offset/0": {0o440, 0o444}, "orders/tail": {0o200, 0o200}, "orders/0/follow": {0o440, 0o444},
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		a, b := k.mustLookup(path), plain.mustLookup(path)
		if a.Mode&0o777 != want[path][0] || b.Mode&0o777 != want[path][1] || a.Uid != 7 || a.Gid != 8 {
			t.Errorf("%s: modes %o and %o, owner %d:%d; want %o", path, a.Mode&0o777, b.Mode&0o777, a.Uid, a.Gid, want[path])
		}
	}
}

func TestStart(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "a\nb\nc\nd\n")
	for _, tc := range []struct {
		s            string
		write, close syscall.Errno
		want         string
	}{
		{"2\n", 0, 0, "2\n"}, {"1\n", 0, 0, "2\n"}, {"5\n", syscall.EINVAL, 0, "2\n"}, {"x\n", syscall.EINVAL, 0, "2\n"}, {"-1\n", syscall.EINVAL, 0, "2\n"},
		{"3\n4\n", syscall.EINVAL, 0, "2\n"}, {"9", 0, syscall.EINVAL, "2\n"}, {"3", 0, 0, "3\n"}, {strings.Repeat("0", 30), syscall.EINVAL, 0, "3\n"},
		{"\n", syscall.EINVAL, 0, "3\n"}, {"4\n", 0, 0, "4\n"},
	} {
		d := k.mustOpen("orders/0/start", syscall.O_WRONLY|syscall.O_TRUNC)
		d.flush()
		if got := d.write(tc.s); got != tc.write {
			t.Errorf("write %q: %v, want %v", tc.s, got, tc.write)
		}
		if got := d.close(); got != tc.close {
			t.Errorf("close after %q: %v, want %v", tc.s, got, tc.close)
		}
		k.wantRead("orders/0/start", tc.want)
	}
	d := k.mustOpen("orders/0/end", syscall.O_RDONLY)
	k.write("orders/0/tail", strings.Repeat("x\n", 100))
	if got := d.readAll(); got != "4\n" || d.mustStat().Size != 2 {
		t.Errorf("what is read must be what it was at the open: %q", got)
	}
	d.close()
	k.wantRead("orders/0/end", "104\n")
}

// disk is an engine that lies on a file system.
type disk struct {
	*storagetest.Memory
	room storage.Room
	err  error
}

// Room implements storage.Roomy.
func (d *disk) Room(context.Context) (storage.Room, error) { return d.room, d.err }

func TestStatFs(t *testing.T) {
	for _, c := range []struct {
		name   string
		engine storage.Engine
		want   fuse.StatfsOut
	}{
		{"an engine that cannot tell", storagetest.NewMemory(), fuse.StatfsOut{}},
		{"a disk", &disk{Memory: storagetest.NewMemory(), room: storage.Room{Total: 10 << 20, Free: 3*4096 + 1, Avail: 4096}}, fuse.StatfsOut{Blocks: 2560, Bfree: 3, Bavail: 1}},
		{"a disk that fails", &disk{Memory: storagetest.NewMemory(), err: syscall.EIO}, fuse.StatfsOut{}},
		{"a disk that says nonsense", &disk{Memory: storagetest.NewMemory(), room: storage.Room{Total: -1, Free: -1, Avail: -1}}, fuse.StatfsOut{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := NewTree(c.engine, Options{Now: time.Now})
			var got fuse.StatfsOut
			if st := tree.raw.StatFs(nil, &fuse.InHeader{}, &got); st != fuse.OK {
				t.Fatal(st)
			}
			c.want.Bsize, c.want.Frsize, c.want.NameLen = 4096, 4096, 255
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
