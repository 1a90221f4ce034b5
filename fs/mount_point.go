package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deadMountsCleared is how many mounts of dead daemons, one on top of the other, are cleared away before we suspect a mistake of ours.
const deadMountsCleared = 16

// probeTime is how long a mount may take to answer before it counts as alive but stuck.
const probeTime = 3 * time.Second

// prepareMountpoint returns the absolute path of path, free of symbolic links, after it has seen that a tree over dirs can be mounted there.
func prepareMountpoint(ctx context.Context, path string, dirs []string) (string, error) {
	if path == "" {
		return "", errors.New("no mount point given")
	}
	mountpoint, err := resolveMountpoint(path)
	if err != nil {
		return "", err
	}
	if err := clearDeadMounts(ctx, mountpoint); err != nil {
		return "", err
	}
	fi, err := os.Stat(mountpoint)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("mount point %s does not exist: mkdir it first", mountpoint)
	case errors.Is(err, syscall.ENOTCONN):
		return "", fmt.Errorf("mount point %s lies in a mount whose daemon is dead: unmount that first", mountpoint)
	case err != nil:
		return "", fmt.Errorf("mount point: %w", err)
	case !fi.IsDir():
		return "", fmt.Errorf("mount point %s is not a directory", mountpoint)
	}
	for _, dir := range dirs {
		if err := keepApart(mountpoint, dir); err != nil {
			return "", err
		}
	}
	if err := checkEmpty(mountpoint); err != nil {
		return "", err
	}
	return mountpoint, nil
}

// resolveMountpoint makes path absolute and follows symbolic links, without asking anything of a file system that is mounted at path itself: its daemon
// may be dead, or hang. (readlink of a mounted directory is answered by the kernel.)
func resolveMountpoint(path string) (string, error) {
	const links = 40
	for range links {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("mount point %s: %w", path, err)
		}
		dir, base := filepath.Split(abs)
		if base == "" {
			return abs, nil // the root directory
		}
		dir, err = filepath.EvalSymlinks(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", fmt.Errorf("mount point %s does not exist: mkdir it first", abs)
		case err != nil:
			return "", fmt.Errorf("mount point: %w", err)
		}
		path = filepath.Join(dir, base)
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // not a symbolic link
		}
		if path = target; !filepath.IsAbs(target) {
			path = filepath.Join(dir, target)
		}
	}
	return "", fmt.Errorf("mount point %s: %w", path, syscall.ELOOP)
}

// clearDeadMounts takes away what daemons that died left at mountpoint, and refuses one that lives.
func clearDeadMounts(ctx context.Context, mountpoint string) error {
	for range deadMountsCleared {
		infos, err := readMountInfo()
		if err != nil {
			return err
		}
		top := topMount(infos, mountpoint)
		if top == nil || !top.fuse() {
			return nil // a directory on which some disk is mounted is as good as any other
		}
		if !deadMount(mountpoint) {
			if top.ours() {
				return fmt.Errorf("%s is already mounted at %s: logmount umount %s", top.source, mountpoint, mountpoint)
			}
			return fmt.Errorf("mount point %s is busy: %s is mounted there (%s)", mountpoint, top.source, top.fsType)
		}
		if err := unmountPath(ctx, mountpoint, true); err != nil {
			return fmt.Errorf("clear away the mount that a dead daemon left: %w", err)
		}
	}
	return fmt.Errorf("mount point %s: too many dead mounts on top of each other", mountpoint)
}

// deadMount reports whether the daemon of a FUSE mount is gone. statfs is never answered from a cache.
func deadMount(mountpoint string) bool {
	answer := make(chan error, 1)
	go func() { // ends when the daemon answers or dies; there is no other way to give up a system call
		var st unix.Statfs_t
		answer <- unix.Statfs(mountpoint, &st)
	}()
	select {
	case err := <-answer:
		return errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED)
	case <-time.After(probeTime):
		return false
	}
}

// keepApart refuses a mount point and a log directory of which one lies in the other: the daemon would wait for itself, or a broker would stop at a
// directory that it does not know.
func keepApart(mountpoint, data string) error {
	if !filepath.IsAbs(data) {
		return nil // not a directory
	}
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	switch {
	case below(mountpoint, data):
		return fmt.Errorf("mount point %s would hide the log directory %s: give another directory", mountpoint, data)
	case below(data, mountpoint):
		return fmt.Errorf("mount point %s lies in the log directory %s: give one outside", mountpoint, data)
	}
	return nil
}

// checkEmpty refuses a directory that has something in it.
func checkEmpty(mountpoint string) error {
	const shown = 3
	dir, err := os.Open(mountpoint)
	if err != nil {
		return fmt.Errorf("mount point: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(shown + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("mount point: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", name)
	}
	if len(names) > shown {
		names[shown] = "…"
	}
	return fmt.Errorf("mount point %s is not empty (%s): give an empty directory", mountpoint, strings.Join(names, ", "))
}
