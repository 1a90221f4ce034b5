package fs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func TestDying(t *testing.T) {
	tests := []struct {
		name        string
		flags, code uint64
		visible     bool
		want        bool
	}{
		{"calls close", 4194560, 0, true, false},
		{"was signalled to death, but this thread calls close", taskSignaled, 0, true, false},
		{"exit(0)", 4194572, 0, true, false},
		{"exit(1)", 4194572, 256, true, false},
		{"SIGTERM", 4195596, 15, true, true},
		{"SIGSEGV with a core dump", 4196108, 128 | 11, true, true},
		{"exit(0) by another thread", 4195596, 0, true, false},
		{"exit(3) by another thread", 4195596, 3 << 8, true, false},
		{"SIGKILL, of another user", 4195596, 0, false, true},
		{"exit, of another user", 4194572, 0, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := dying(tt.flags, tt.code, func() bool { return tt.visible }); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestParseTaskStat(t *testing.T) {
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Skip(err)
	}
	if _, _, ok := parseTaskStat(self); !ok {
		t.Errorf("cannot read %q", self)
	}
	fields := "S 1 1 1 0 -1 4195596" + strings.Repeat(" 0", 42) + " 15"
	tests := []struct {
		name, stat  string
		flags, code uint64
		ok          bool
	}{
		{"plain", "7 (cat) " + fields + "\n", 4195596, 15, true},
		{"odd name", "7 (a) S (b) 1 2) " + fields, 4195596, 15, true},
		{"short", "7 (cat) S 1 1", 0, 0, false},
		{"no number", "7 (cat) " + strings.Replace(fields, "4195596", "x", 1), 0, 0, false},
		{"nothing", "", 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flags, code, ok := parseTaskStat([]byte(tt.stat))
			if flags != tt.flags || code != tt.code || ok != tt.ok {
				t.Errorf("got %d, %d, %v", flags, code, ok)
			}
		})
	}
	if taskDying(0) || taskDying(uint32(os.Getpid())) || taskDying(1<<31) {
		t.Error("nobody of these is dying")
	}
}

func TestOwnedBy(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tcat\nUid:\t1000\t1000\t1000\t1000\nGid:\t1\n": true,
		"Uid:\t1000\t0\t1000\t1000\n":                         false,
		"Uid:\n":                                              false,
		"":                                                    false,
	} {
		if got := ownedBy([]byte(status), 1000); got != want {
			t.Errorf("%q: got %v, want %v", status, got, want)
		}
	}
}

// A task in execve(2) must not be asked for more than its status: see hasMemory.
func TestHasMemory(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		want         bool
	}{
		{"alive", "Name:\tsh\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nVmPeak:\t 2000 kB\nVmSize:\t 2000 kB\nThreads:\t1\n", true},
		{"exiting", "Name:\tsh\nState:\tD (disk sleep)\nUid:\t0\t0\t0\t0\nThreads:\t1\n", false},
		{"a name that lies", "Name:\tVmSize:\nState:\tD (disk sleep)\nThreads:\t1\n", false},
		{"nothing", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := hasMemory([]byte(tt.status)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if !hasMemory(status) {
		t.Error("this process has memory")
	}
}

// A FLUSH tells whether its sender is dying: seen from a daemon, with real programs.
func TestFlushTellsWhoIsDying(t *testing.T) {
	seen := make(chan bool, 16)
	mnt := t.TempDir()
	server, err := fusefs.Mount(mnt, &flushRoot{seen: seen}, &fusefs.Options{MountOptions: fuse.MountOptions{
		DirectMount: true, ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
	}})
	if err != nil {
		skipOrFail(t, err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	tests := []struct {
		name, script string
		want         bool
	}{
		{"exit", "exec 3>f; exit 0", false},
		{"exit with a status", "exec 3>f; exit 3", false},
		{"close", "exec 3>f; exec 3>&-", false},
		{"SIGTERM", "exec 3>f; kill -TERM $$", true},
		{"SIGKILL", "exec 3>f; kill -KILL $$", true},
		{"SIGUSR1", "exec 3>f; kill -USR1 $$", true},
		{"another program in its place", "exec python3 -c 'import os; f = open(\"f\", \"w\"); os.execvp(\"true\", [\"true\"])'", false}, // its files are close-on-exec
		{"ends well after a trap", "trap 'exit 0' TERM; exec 3>f; kill -TERM $$", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath("python3"); err != nil && strings.Contains(tt.script, "python3") {
				t.Skip("NOT TESTED: no python3")
			}
			cmd := exec.Command("sh", "-c", "cd "+mnt+"; "+tt.script)
			_ = cmd.Run()
			select {
			case got := <-seen:
				if got != tt.want {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("no FLUSH")
			}
			for len(seen) > 0 {
				<-seen
			}
		})
	}
}

type flushRoot struct {
	fusefs.Inode
	seen chan bool
}

type flushFile struct {
	fusefs.Inode
	seen chan bool
}

func (r *flushRoot) OnAdd(ctx context.Context) {
	r.AddChild("f", r.NewPersistentInode(ctx, &flushFile{seen: r.seen}, fusefs.StableAttr{Mode: fuse.S_IFREG}), false)
}

func (f *flushFile) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return &struct{ int }{}, fuse.FOPEN_DIRECT_IO, 0
}

func (f *flushFile) Flush(ctx context.Context, _ fusefs.FileHandle) syscall.Errno {
	caller, _ := fuse.FromContext(ctx)
	f.seen <- taskDying(caller.Pid)
	return 0
}

// skipOrFail is for tests that cannot mount.
func skipOrFail(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("LOGMOUNT_REQUIRE_FUSE") != "" {
		t.Fatalf("cannot mount: %v", err)
	}
	t.Skipf("NOT TESTED, cannot mount: %v", err)
}

func TestProcessIsWaitedFor(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	_ = stdin.Close()
	if err := p.wait(t.Context()); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if _, err := openProcess(cmd.Process.Pid); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("gone: got %v, want ESRCH", err)
	}
}

func TestParseMountInfo(t *testing.T) {
	text := `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
36 22 0:45 / /mnt/a\040b\134c\011d rw,nosuid,nodev - fuse.logmount /data/x\054y rw,user_id=0
37 36 0:46 /sub /mnt/a\040b\134c\011d ro,noatime master:1 propagate_from:2 - fuse.logmount /other ro
38 22 0:47 / /mnt/sshfs rw - fuse.sshfs host: rw
39 22 0:48 / /short rw -
40 x 0:48 / /nonsense rw - tmpfs tmpfs rw

41 22 0:49 / /mnt/\9 rw - tmpfs tmpfs
`
	infos := parseMountInfo(text)
	if len(infos) != 5 {
		t.Fatalf("got %d mounts, want 5: %+v", len(infos), infos)
	}
	odd := "/mnt/a b\\c\td"
	if got := infos[1]; got.mountpoint != odd || got.source != "/data/x,y" || got.id != 36 || !got.ours() || !got.fuse() {
		t.Errorf("got %+v", got)
	}
	if got := topMount(infos, odd); got == nil || got.id != 37 || got.root != "/sub" || !hasOption(got.super, "ro") {
		t.Errorf("on top: got %+v", got)
	}
	if got := topMount(infos, "/mnt/sshfs"); got == nil || got.ours() || !got.fuse() {
		t.Errorf("got %+v", got)
	}
	if got := topMount(infos, "/mnt"); got != nil {
		t.Errorf("got %+v", got)
	}
	if got := infos[4]; got.mountpoint != `/mnt/\9` || got.fuse() {
		t.Errorf("got %+v", got)
	}
	if _, err := Mounts(); err != nil {
		t.Error(err)
	}
}

func TestHolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(name string, arg ...string) *exec.Cmd {
		cmd := exec.Command(name, arg...)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = stdin.Close()
			_ = cmd.Wait()
		})
		if _, err := stdout.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	inside := start("sh", "-c", `cd "$1"; echo; read x`, "sh", dir)
	reader := start("sh", "-c", `exec 3<"$1"; echo; read x`, "sh", file)

	want := map[int]string{inside.Process.Pid: "working directory " + dir, reader.Process.Pid: "open " + file}
	for _, h := range holders(dir) {
		if got := h.How + " " + h.Path; got != want[h.PID] || h.Comm == "" {
			t.Errorf("got %+v, want %s", h, want[h.PID])
		}
		delete(want, h.PID)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
	if got := holders(filepath.Join(dir, "elsewhere")); len(got) != 0 {
		t.Errorf("elsewhere: got %+v", got)
	}
}

func TestMappedBelow(t *testing.T) {
	maps := "7f00-7f01 r--p 00000000 fe:00 17   /usr/lib/libc.so\n7f02-7f03 rw-p 00000000 00:00 0 \n7f04-7f05 r--s 00000000 00:2d 99   /mnt/o/0/segments/00.log (deleted)\n"
	if got, ok := mappedBelow("/mnt/o", maps); !ok || got != "/mnt/o/0/segments/00.log (deleted)" {
		t.Errorf("got %q, %v", got, ok)
	}
	if got, ok := mappedBelow("/mnt/or", maps); ok {
		t.Errorf("got %q", got)
	}
}

func TestBelow(t *testing.T) {
	tests := []struct {
		dir, path string
		want      bool
	}{{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false}, {"/", "/a", true}, {"/", "pipe:[1]", false}}
	for _, tt := range tests {
		if got := below(tt.dir, tt.path); got != tt.want {
			t.Errorf("below(%q, %q): got %v", tt.dir, tt.path, got)
		}
	}
}

func TestBusyErrorNamesHolders(t *testing.T) {
	e := &BusyError{Mountpoint: "/m"}
	if !errors.Is(e, syscall.EBUSY) {
		t.Error("is not EBUSY")
	}
	for range 7 {
		e.Holders = append(e.Holders, Holder{PID: len(e.Holders) + 1, Comm: "less", How: "open", Path: "/m/f"})
	}
	e.Holders[0] = Holder{Comm: "a mount of tmpfs", Path: "/m/t"}
	want := "/m is busy: a mount of tmpfs at /m/t, less (pid 2, open /m/f), less (pid 3, open /m/f), less (pid 4, open /m/f), less (pid 5, open /m/f), 2 more"
	if got := e.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
