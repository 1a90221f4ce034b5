package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const fuseDevice = "/dev/fuse"

// mountFlagBits are the options that mount(2) takes as bits; fusermount3 takes all options by name.
var mountFlagBits = map[string]struct {
	bit uintptr
	set bool
}{
	"ro": {unix.MS_RDONLY, true}, "rw": {unix.MS_RDONLY, false},
	"nosuid": {unix.MS_NOSUID, true}, "suid": {unix.MS_NOSUID, false},
	"nodev": {unix.MS_NODEV, true}, "dev": {unix.MS_NODEV, false},
	"noexec": {unix.MS_NOEXEC, true}, "exec": {unix.MS_NOEXEC, false},
	"sync": {unix.MS_SYNCHRONOUS, true}, "async": {unix.MS_SYNCHRONOUS, false},
	"dirsync": {unix.MS_DIRSYNC, true},
	"noatime": {unix.MS_NOATIME, true}, "atime": {unix.MS_NOATIME, false},
	"nodiratime": {unix.MS_NODIRATIME, true}, "diratime": {unix.MS_NODIRATIME, false},
	"relatime": {unix.MS_RELATIME, true}, "strictatime": {unix.MS_STRICTATIME, true},
}

// mountFuse makes the mount and returns the descriptor on which the kernel sends its requests. The descriptor is not inherited by programs that we run.
// root mounts by itself; others, and a root that may not mount, have fusermount3 do it.
func mountFuse(mountpoint string, o MountOptions) (int, error) {
	if os.Geteuid() == 0 {
		fd, err := mountDirect(mountpoint, o)
		if err == nil || !errors.Is(err, syscall.EPERM) || deviceTrouble(err) {
			return fd, err
		}
	}
	return mountHelper(mountpoint, o)
}

// mountDirect mounts with mount(2).
func mountDirect(mountpoint string, o MountOptions) (int, error) {
	fd, err := unix.Open(fuseDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &deviceError{err}
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	data := append([]string{
		fmt.Sprintf("fd=%d", fd), "rootmode=40000", fmt.Sprintf("user_id=%d", os.Geteuid()), fmt.Sprintf("group_id=%d", os.Getegid()),
	}, fuseOptions(o)...)
	for _, f := range kernelFlags(o) {
		b, known := mountFlagBits[f]
		switch {
		case !known:
			data = append(data, f)
		case b.set:
			flags |= b.bit
		default:
			flags &^= b.bit
		}
	}
	if err := unix.Mount(o.FSName, mountpoint, "fuse."+mountName, flags, strings.Join(data, ",")); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("mount at %s: %w", mountpoint, err)
	}
	return fd, nil
}

// mountHelper mounts with fusermount3, which hands the descriptor over on a socket.
func mountHelper(mountpoint string, o MountOptions) (int, error) {
	if fi, err := os.Stat(fuseDevice); err != nil {
		return -1, &deviceError{err}
	} else if fi.Mode()&os.ModeCharDevice == 0 {
		return -1, &deviceError{syscall.ENXIO}
	}
	helper, err := findFusermount()
	if err != nil {
		return -1, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket for %s: %w", helper, err)
	}
	ours, theirs := pair[0], os.NewFile(uintptr(pair[1]), "fusermount socket")
	defer func() { _ = unix.Close(ours) }()
	defer func() { _ = theirs.Close() }()

	options := append(fuseOptions(o), kernelFlags(o)...)
	options = append(options, "fsname="+escapeOption(o.FSName), "subtype="+mountName)
	cmd := exec.Command(helper, "-o", strings.Join(options, ","), "--", mountpoint) //nolint:noctx // a mount must not be left half made
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3", "LC_ALL=C")
	cmd.ExtraFiles = []*os.File{theirs}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if said.Len() > 0 {
			err = errors.New(oneLine(said.String()))
		}
		return -1, fmt.Errorf("mount at %s: %w%s", mountpoint, err, helperAdvice(said.String()))
	}
	fd, err := receiveFD(ours)
	if err != nil {
		return -1, fmt.Errorf("mount at %s: %s gave no descriptor: %w", mountpoint, helper, err)
	}
	return fd, nil
}

// helperAdvice adds what can be done about a refusal of fusermount3.
func helperAdvice(said string) string {
	switch {
	case strings.Contains(said, "user_allow_other"):
		return " (or mount without -o allow_other)"
	case strings.Contains(said, "Operation not permitted"):
		return " (in a container: --cap-add SYS_ADMIN --device " + fuseDevice + "; under systemd: NoNewPrivileges=no)"
	case strings.Contains(said, fuseDevice) && strings.Contains(said, "Permission denied"):
		return (&deviceError{syscall.EACCES}).advice()
	case strings.Contains(said, fuseDevice):
		return (&deviceError{syscall.ENOENT}).advice()
	}
	return ""
}

// receiveFD takes the one descriptor that a message carries.
func receiveFD(socket int) (int, error) {
	buf, control := make([]byte, 4), make([]byte, unix.CmsgSpace(4*4))
	var n int
	var err error
	for {
		if _, n, _, _, err = unix.Recvmsg(socket, buf, control, unix.MSG_CMSG_CLOEXEC); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return -1, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil || len(fds) == 0 {
			continue
		}
		for _, extra := range fds[1:] {
			_ = unix.Close(extra)
		}
		return fds[0], nil
	}
	return -1, errors.New("the message carries none")
}

// fuseOptions are the options that the FUSE file system itself understands.
func fuseOptions(o MountOptions) []string {
	options := []string{"default_permissions", fmt.Sprintf("max_read=%d", maxRequest)}
	if o.AllowOther {
		options = append(options, "allow_other")
	}
	return options
}

// kernelFlags are the options of the mount as such.
func kernelFlags(o MountOptions) []string {
	if !o.Tree.ReadOnly {
		return o.Flags
	}
	return append([]string{"ro"}, o.Flags...)
}

// escapeOption keeps a comma in an option's value from ending it.
func escapeOption(s string) string { return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s) }

// findFusermount returns the path of the set-user-id helper.
func findFusermount() (string, error) {
	for _, name := range []string{"fusermount3", "/usr/bin/fusermount3", "/bin/fusermount3", "fusermount", "/usr/bin/fusermount", "/bin/fusermount"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("fusermount3 is not installed: install the package fuse3 (apt, dnf, pacman, apk: fuse3), or mount as root")
}

// deviceError says that /dev/fuse cannot be used, and what to do.
type deviceError struct{ err error }

func (e *deviceError) Error() string {
	if errors.Is(e.err, syscall.ENOENT) {
		return "there is no " + fuseDevice + e.advice()
	}
	return fmt.Sprintf("cannot open %s: %v%s", fuseDevice, rootCause(e.err), e.advice())
}

func (e *deviceError) Unwrap() error { return e.err }

func (e *deviceError) advice() string {
	if errors.Is(e.err, syscall.EACCES) {
		return ": it is there but may not be opened by everybody: as root, chmod 666 " + fuseDevice + ", or put this user into its group (ls -l " + fuseDevice + ")"
	}
	return ": modprobe fuse, or in a container start it with --device " + fuseDevice + " --cap-add SYS_ADMIN"
}

func deviceTrouble(err error) bool {
	_, ok := errors.AsType[*deviceError](err)
	return ok
}

// rootCause is what is left of an error without the path that is named already.
func rootCause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
