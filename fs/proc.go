package fs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bits of the flags field of /proc/PID/stat.
const (
	taskExiting  = 0x4   // PF_EXITING
	taskSignaled = 0x400 // PF_SIGNALED
)

// taskDying reports whether the task is on its way out because a signal ended it, so that what it had not finished writing is not what it meant to
// write. It is meant for the pid of a FLUSH: the kernel closes a task's files after it has set PF_EXITING and the exit code, and the task waits for the
// answer. A program that calls close(2) itself, or exits with whatever status, is not dying. False where /proc does not show the task.
func taskDying(pid uint32) bool {
	if pid == 0 {
		return false
	}
	dir := "/proc/" + strconv.FormatUint(uint64(pid), 10)
	status, err := os.ReadFile(dir + "/status")
	if err != nil || hasMemory(status) {
		return false
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return false
	}
	flags, code, ok := parseTaskStat(stat)
	if !ok {
		return false
	}
	return dying(flags, code, func() bool { return os.Geteuid() == 0 || ownedBy(status, os.Geteuid()) })
}

// hasMemory reports whether a /proc/PID/status is that of a task with an address space, which a task on its way out has given up before its files.
//
// It is asked before anything else of /proc/PID is read. A task in execve(2) closes what is close-on-exec, and waits for the answer to that FLUSH, with a
// lock held that /proc/PID/stat wants too: whoever reads stat in the handler waits for the task that waits for him, and neither can be killed. status takes
// no such lock, and one that is exiting cannot hold it.
func hasMemory(status []byte) bool { return bytes.Contains(status, []byte("\nVmSize:")) }

// dying judges by flags and exit code. The kernel shows the exit code as 0 to those who may not trace the task; visible tells whether that is so here.
func dying(flags, code uint64, visible func() bool) bool {
	switch {
	case flags&taskExiting == 0:
		return false
	case code != 0:
		return code&0x7f != 0 // as for wait(2): the signal in the low bits, the status above
	case flags&taskSignaled == 0:
		return false
	default:
		// PF_SIGNALED alone is also set in the other threads of a process that calls exit(0).
		return !visible()
	}
}

// parseTaskStat returns the flags and the exit code of a /proc/PID/stat.
func parseTaskStat(stat []byte) (flags, code uint64, ok bool) {
	i := bytes.LastIndexByte(stat, ')') // the name before it may hold anything
	if i < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[i+1:])
	if len(fields) < 50 { // state is field 3, flags 9, exit_code 52
		return 0, 0, false
	}
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	code, err = strconv.ParseUint(string(fields[49]), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	return flags, code, true
}

// ownedBy reports whether all user ids in a /proc/PID/status are uid.
func ownedBy(status []byte, uid int) bool {
	for line := range bytes.Lines(status) {
		rest, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		ids := bytes.Fields(rest)
		for _, id := range ids {
			if string(id) != strconv.Itoa(uid) {
				return false
			}
		}
		return len(ids) > 0
	}
	return false
}

// pidNamespace names the process id namespace that we are in; empty where it cannot be told.
func pidNamespace() string {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return ns
}

// process is another process that can be waited for, whatever becomes of its number.
type process struct {
	pid int
	fd  int
}

// openProcess takes hold of a process.
func openProcess(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &process{pid: pid, fd: fd}, nil
}

// wait returns when the process has ended, or with the context's cause.
func (p *process) wait(ctx context.Context) error {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 50)
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for process %d: %w", p.pid, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("process %d still runs: %w", p.pid, context.Cause(ctx))
		}
	}
}

func (p *process) close() { _ = unix.Close(p.fd) }
