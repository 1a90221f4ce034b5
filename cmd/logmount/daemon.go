package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The daemon is this program again, in its own session, with / as its directory and the null device on 0 to 2. Descriptor 3 is a pipe on which it says
// one line: "ready", or "error: " and why. Descriptor 2 is a pipe too until then, so that the end of one that dies can be told.
const (
	statusReady = "ready"
	statusError = "error: "
	statusFD    = 3
)

// startDaemon starts the daemon and returns when its mount answers.
func startDaemon(ctx context.Context, r mountRequest) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot tell where this program is: %w", err)
	}
	if _, err := os.Stat(exe); err != nil {
		exe = "/proc/self/exe" // replaced or removed since it was started
	}
	status, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start the daemon: %w", err)
	}
	defer func() { _ = status.Close() }()

	args := append(r.arguments(), "--status-fd", strconv.Itoa(statusFD), "--", r.data, r.mnt)
	var words lastWords
	cmd := exec.Command(exe, args...) //nolint:noctx // it outlives this process
	cmd.Args[0] = "logmount"
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "PWD=/")
	cmd.Stderr = &words
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	closeInherited()
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("cannot start the daemon: %w", err)
	}
	stop := passSignalsOn(ctx, cmd.Process)
	line, err := bufio.NewReader(status).ReadString('\n')
	stop()
	line = strings.TrimSuffix(line, "\n")
	if err == nil && line == statusReady {
		return cmd.Process.Release()
	}
	werr := cmd.Wait()
	if why, ok := strings.CutPrefix(line, statusError); ok {
		return errors.New(why)
	}
	return fmt.Errorf("the daemon ended before the mount answered (%s)%s%s", endOf(cmd, werr), words.String(), hintLog(r.logFile))
}

// closeInherited marks every descriptor that this process was started with: a caller's pipe or lock must not live on in the daemon.
func closeInherited() {
	if unix.CloseRange(statusFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	d, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return
	}
	for _, e := range d {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= statusFD {
			unix.CloseOnExec(fd)
		}
	}
}

// passSignalsOn lets ^C end a mount that takes its time: the daemon is in another session and does not get it.
func passSignalsOn(ctx context.Context, p *os.Process) (stop func()) {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		select {
		case <-ctx.Done():
			_ = p.Signal(syscall.SIGTERM)
		case <-over:
		}
	})
	return func() {
		close(over)
		wg.Wait()
		cancel()
	}
}

func endOf(cmd *exec.Cmd, err error) string {
	if cmd.ProcessState != nil {
		return cmd.ProcessState.String()
	}
	return err.Error()
}

func hintLog(name string) string {
	if name == "" {
		return ""
	}
	return "; see " + name
}

// lastWords keeps the beginning of a crash, or else the last line, of what a dying daemon writes.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

// maxLastWords bounds what is kept of a daemon's stderr.
const maxLastWords = 64 << 10

// Write implements io.Writer. It never fails: the daemon must not be stopped by it.
func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if n := len(w.buf) - maxLastWords; n > 0 {
		w.buf = append(w.buf[:0], w.buf[n:]...)
	}
	return len(p), nil
}

// String returns what a person should see of it, with a colon before it, or nothing.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(w.buf)), "\n")
	said := lines[len(lines)-1]
	for _, l := range lines {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			said = l
			break
		}
	}
	if said == "" {
		return ""
	}
	return ": " + said
}

// runDaemon is the daemon's side.
func runDaemon(ctx context.Context, r mountRequest, fd int) error {
	unix.CloseOnExec(fd)
	status := os.NewFile(uintptr(fd), "status")
	if status == nil {
		return fmt.Errorf("descriptor %d is not open", fd)
	}
	out, err := daemonLog(r.logFile)
	if err != nil {
		tell(status, statusError+oneLine(err.Error()))
		return &exitError{code: exitFailed}
	}
	log := newLogger(out, r.logLevel)
	reported := false
	err = serve(ctx, r, log, false, func() {
		takeStreams(out)
		tell(status, statusReady)
		reported = true
	})
	if err == nil {
		return nil
	}
	if !reported {
		log.Error("mount failed", "err", err)
		tell(status, statusError+oneLine(err.Error()))
	}
	return &exitError{code: exitFailed}
}

// daemonLog opens what the daemon logs to: the log file, or the null device.
func daemonLog(name string) (*os.File, error) {
	if name != "" {
		return openLog(name)
	}
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", os.DevNull, err)
	}
	return f, nil
}

// takeStreams puts f on descriptors 1 and 2, where a crash of the runtime is written. From here on nothing ties the daemon to its parent.
func takeStreams(f *os.File) {
	for _, fd := range []int{1, 2} {
		_ = unix.Dup3(int(f.Fd()), fd, 0) // fails only where the descriptor table is broken; the mount serves all the same
	}
}

// tell writes the one line of the status pipe and closes it.
func tell(status io.WriteCloser, line string) {
	_, _ = io.WriteString(status, line+"\n") // a parent that is gone needs no answer
	_ = status.Close()
}
