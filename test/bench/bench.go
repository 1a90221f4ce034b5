package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bench is a run: a directory of its own and the processes that serve the mounts in it.
type bench struct {
	ctx  context.Context //nolint:containedctx // the life of the run
	o    options
	self string
	dir  string

	servers []*server // newest last
	product *server
	plain   string // directory of plain files
	topics  string // mount of the product
	empty   string // mount of the empty file system
	loop    string // mount of the loopback, over small
	small   string
}

// server is a child process that serves a mount.
type server struct {
	cmd  *exec.Cmd
	mnt  string
	done chan struct{}
}

// newBench makes the directory and starts the mounts.
func newBench(ctx context.Context, o options) (_ *bench, err error) {
	if onMemory(o.dir) {
		return nil, fmt.Errorf("%s is in memory: give a directory on a real disk with -dir", o.dir)
	}
	if o.logmount, err = filepath.Abs(o.logmount); err != nil {
		return nil, err
	}
	b := &bench{ctx: ctx, o: o}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp(o.dir, "logmount-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	data := b.path("data")
	b.plain, b.topics, b.empty, b.loop, b.small = b.path("plain"), b.path("mnt"), b.path("empty"), b.path("loop"), b.path("small")
	for _, d := range []string{data, b.plain, b.topics, b.empty, b.loop, b.small} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	if _, err := b.start(b.empty, b.self, "@empty", strconv.FormatInt(b.totalBytes(), 10), b.empty); err != nil {
		return nil, err
	}
	if _, err := b.start(b.loop, b.self, "@loopback", b.small, b.loop); err != nil {
		return nil, err
	}
	b.product, err = b.start(b.topics, o.logmount, "mount", "--foreground", data, b.topics)
	return b, err
}

func onMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// start starts a server and returns when its mount is there.
func (b *bench) start(mnt, program string, args ...string) (*server, error) {
	s := &server{cmd: exec.Command(program, args...), mnt: mnt, done: make(chan struct{})} //nolint:noctx // stopped in order by close
	said, err := os.Create(mnt + ".log")                                                   // a pipe to this process would break with it, and with the pipe a server
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }()
	s.cmd.Stdout, s.cmd.Stderr = said, said
	// ^C is for this process, which then stops them in order; they also end if it is killed.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	before, err := device(mnt)
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	b.servers = append(b.servers, s)
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait()
	}()
	for range 500 {
		if now, err := device(mnt); err == nil && now != before {
			return s, nil
		}
		select {
		case <-s.done:
			text, _ := os.ReadFile(said.Name())
			return nil, fmt.Errorf("%s ended: %s", program, text)
		case <-b.ctx.Done():
			return nil, context.Cause(b.ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("%s did not mount %s within 10 s", program, mnt)
}

func device(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Dev, err
}

// close stops what was started, unmounts and removes the directory.
func (b *bench) close() {
	for _, s := range b.servers {
		s.stop()
	}
	for _, s := range b.servers {
		if m, err := device(s.mnt); err == nil || errors.Is(err, unix.ENOTCONN) {
			if d, err2 := device(b.dir); err2 == nil && (err != nil || m != d) {
				_ = exec.Command("fusermount3", "-u", "-z", s.mnt).Run() //nolint:noctx // must be done
			}
		}
	}
	for _, s := range b.servers {
		if m, err := device(s.mnt); err != nil || !sameDevice(b.dir, m) {
			fmt.Fprintf(os.Stderr, "bench: %s is still mounted; %s is left\n", s.mnt, b.dir)
			return
		}
	}
	if err := os.RemoveAll(b.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

func sameDevice(path string, dev uint64) bool {
	d, err := device(path)
	return err == nil && d == dev
}

// stop asks a server to end, and makes it.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// command runs a program to its end and returns how long it took.
func (b *bench) command(stdin, stdout, program string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if stdin != "" {
		f, err := os.Open(stdin)
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }()
		cmd.Stdin = f
	}
	if stdout != "" {
		// As a shell does, before the program starts.
		f, err := os.OpenFile(stdout, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }()
		cmd.Stdout = f
	}
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, said.String())
	}
	return took, nil
}

// role runs this program in a role that prints nanoseconds.
func (b *bench) role(args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, b.self, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // the runtime's signals would interrupt system calls
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Duration(n), err
}

// settle lets the disk come to rest, so that one measurement does not pay for the one before.
func (b *bench) settle() error {
	d, err := unix.Open(b.dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(d) }()
	return unix.Syncfs(d)
}

// memory returns the product's largest resident set so far, in KiB.
func (b *bench) memory() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.product.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return n
		}
	}
	return 0
}

// cpu returns the processor time that this process, the servers, and the programs that have ended have used so far.
func (b *bench) cpu() time.Duration {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var ru unix.Rusage
		_ = unix.Getrusage(who, &ru)
		total += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	for _, s := range b.servers {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
		for _, t := range tasks {
			line, _ := os.ReadFile(t)
			if f := strings.Fields(string(line)); len(f) > 0 {
				n, _ := strconv.ParseInt(f[0], 10, 64)
				total += time.Duration(n)
			}
		}
	}
	return total
}
