package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unmount unmounts the tree at mountpoint and, unless lazy, waits until its daemon has put everything on stable storage, has let go of its directory and
// is gone. A mount in use is a *BusyError. With lazy it disappears from the name space at once, and the daemon goes on for those who use it; Unmount does
// not wait for them. A mount whose daemon is dead is taken away.
func Unmount(ctx context.Context, mountpoint string, lazy bool) error {
	path, err := resolveMountpoint(mountpoint)
	if err != nil {
		return err
	}
	infos, err := readMountInfo()
	if err != nil {
		return err
	}
	switch top := topMount(infos, path); {
	case top == nil:
		return fmt.Errorf("nothing is mounted at %s", path)
	case !top.ours():
		return fmt.Errorf("what is mounted at %s is not ours (%s): umount %s", path, top.fsType, path)
	}
	if lazy {
		return unmountPath(ctx, path, true)
	}
	daemon, err := daemonOf(ctx, path, infos)
	if err != nil {
		return err
	}
	if daemon != nil {
		defer daemon.close()
	}
	if err := unmountPath(ctx, path, false); err != nil {
		return nameHolders(err)
	}
	if daemon == nil {
		return nil
	}
	if err := daemon.wait(ctx); err != nil {
		return fmt.Errorf("%s is unmounted, but its daemon is not done: %w", path, err)
	}
	return nil
}

// daemonOf takes hold of the process that serves a mount. It is nil where that cannot be told: the daemon is dead, is seen under another number here (a
// container's), or is the very process that asks. A daemon that does not answer is an error: our question keeps the mount busy.
func daemonOf(ctx context.Context, mountpoint string, infos []mountInfo) (*process, error) {
	errSilent := fmt.Errorf("the daemon that serves %s does not answer: kill it, or detach the mount with --lazy", mountpoint)
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, errSilent)
	defer cancel()
	file := filepath.Join(mountpoint, ".logmount", "status")
	read := make(chan []byte, 1)
	go func() { // see deadMount
		text, err := readPlainly(file)
		if errors.Is(err, os.ErrPermission) {
			text, _ = readAs(ctx, topMount(infos, mountpoint), file)
		}
		read <- text
	}()
	var text []byte
	select {
	case text = <-read:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var status mountStatus
	if len(text) == 0 || json.Unmarshal(text, &status) != nil {
		return nil, nil
	}
	if status.PID <= 0 || status.PID == os.Getpid() || status.PIDNamespace != pidNamespace() {
		return nil, nil
	}
	p, err := openProcess(status.PID)
	if errors.Is(err, syscall.ESRCH) {
		return nil, nil
	}
	return p, err
}

// readPlainly reads a file without package os, which registers what it opens with epoll: that asks the file's daemon a question during which Go's scheduler
// thinks that this thread runs, and waits for it.
func readPlainly(file string) ([]byte, error) {
	const most = 64 << 20
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var text []byte
	buf := make([]byte, 64<<10)
	for len(text) < most {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return text, nil
		}
		text = append(text, buf[:n]...)
	}
	return nil, syscall.EFBIG
}

// readAs reads a file as the user who made the mount: unless others were let in, not even root is.
func readAs(ctx context.Context, m *mountInfo, file string) ([]byte, error) {
	var c syscall.Credential
	for option := range strings.SplitSeq(m.super, ",") {
		name, value, _ := strings.Cut(option, "=")
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			continue
		}
		switch name {
		case "user_id":
			c.Uid = uint32(n)
		case "group_id":
			c.Gid = uint32(n)
		}
	}
	cat := exec.CommandContext(ctx, "cat", file)
	cat.SysProcAttr = &syscall.SysProcAttr{Credential: &c}
	return cat.Output()
}

// unmountPath takes a mount away: by itself if we may, else with fusermount3. A mount in use is a *BusyError (without names), unless lazy
// detaches it.
func unmountPath(ctx context.Context, mountpoint string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	err := error(syscall.EPERM)
	if os.Geteuid() == 0 {
		err = unix.Unmount(mountpoint, flags)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EBUSY):
		return &BusyError{Mountpoint: mountpoint}
	case errors.Is(err, syscall.EPERM):
		return unmountHelper(ctx, mountpoint, lazy)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("nothing is mounted at %s", mountpoint)
	}
	return fmt.Errorf("unmount %s: %w", mountpoint, err)
}

// nameHolders puts into a *BusyError who is in the way: looking for them takes longer than trying to unmount.
func nameHolders(err error) error {
	if busy, ok := errors.AsType[*BusyError](err); ok {
		return &BusyError{Mountpoint: busy.Mountpoint, Holders: holders(busy.Mountpoint)}
	}
	return err
}

// unmountHelper unmounts with fusermount3.
func unmountHelper(ctx context.Context, mountpoint string, lazy bool) error {
	helper, err := findFusermount()
	if err != nil {
		return err
	}
	args := []string{"-u", "--", mountpoint}
	if lazy {
		args = append([]string{"-z"}, args...)
	}
	cmd := exec.CommandContext(ctx, helper, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case strings.Contains(said.String(), "Device or resource busy"):
		return &BusyError{Mountpoint: mountpoint}
	case said.Len() > 0:
		return fmt.Errorf("unmount: %s", oneLine(said.String()))
	}
	return fmt.Errorf("unmount %s with %s: %w", mountpoint, helper, err)
}
