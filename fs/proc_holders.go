package fs

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Holder is somebody because of whom a mount is busy.
type Holder struct {
	PID  int    // 0 for another mount on top of it
	Comm string // name of the program
	How  string // "open", "working directory", "root directory", "mapped" or "mounted"
	Path string
}

// String describes the holder in a few words.
func (h Holder) String() string {
	if h.PID == 0 {
		return fmt.Sprintf("%s at %s", h.Comm, h.Path)
	}
	return fmt.Sprintf("%s (pid %d, %s %s)", h.Comm, h.PID, h.How, h.Path)
}

// holders lists who keeps mountpoint busy, as far as /proc shows it to us: everybody to root, our own processes else. It reads links and never looks at
// what they point to: the daemon of the mount may be the one who asks, or dead. A process that hangs may make whoever looks at it hang too, so looking ends
// after probeTime with what was found by then.
func holders(mountpoint string) []Holder {
	var found []Holder
	if infos, err := readMountInfo(); err == nil {
		for _, m := range infos {
			if m.mountpoint != mountpoint && below(mountpoint, m.mountpoint) {
				found = append(found, Holder{Comm: "a mount of " + m.fsType, How: "mounted", Path: m.mountpoint})
			}
		}
	}
	seen, stop := make(chan Holder), make(chan struct{})
	defer close(stop)
	go func() {
		defer close(seen)
		eachHolder(mountpoint, func(h Holder) bool {
			select {
			case seen <- h:
				return true
			case <-stop:
				return false
			}
		})
	}()
	late := time.After(probeTime)
	for {
		select {
		case h, more := <-seen:
			if !more {
				return found
			}
			found = append(found, h)
		case <-late:
			return found
		}
	}
}

// eachHolder calls fn with every process but ours that keeps mountpoint busy, until that returns false.
func eachHolder(mountpoint string, fn func(Holder) bool) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if h, ok := holderAt(mountpoint, pid); ok && !fn(h) {
			return
		}
	}
}

// holderAt looks at one process and returns the first reason found.
func holderAt(mountpoint string, pid int) (Holder, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	h := Holder{PID: pid}
	for _, link := range []struct{ name, how string }{{"cwd", "working directory"}, {"root", "root directory"}} {
		if target, err := os.Readlink(dir + "/" + link.name); err == nil && below(mountpoint, target) {
			h.How, h.Path = link.how, target
			return h.named(dir), true
		}
	}
	if fds, err := os.ReadDir(dir + "/fd"); err == nil {
		for _, fd := range fds {
			if target, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil && below(mountpoint, target) {
				h.How, h.Path = "open", target
				return h.named(dir), true
			}
		}
	}
	if maps, err := os.ReadFile(dir + "/maps"); err == nil {
		if target, ok := mappedBelow(mountpoint, string(maps)); ok {
			h.How, h.Path = "mapped", target
			return h.named(dir), true
		}
	}
	return h, false
}

// named fills in the program's name.
func (h Holder) named(dir string) Holder {
	h.Path = strings.TrimSuffix(h.Path, " (deleted)") // how a name looks that the kernel has been told to forget
	comm, err := os.ReadFile(dir + "/comm")
	if err != nil {
		h.Comm = "a program"
		return h
	}
	h.Comm = strings.TrimSuffix(string(comm), "\n")
	return h
}

// mappedBelow finds a path below mountpoint in a /proc/PID/maps.
func mappedBelow(mountpoint, maps string) (string, bool) {
	for line := range strings.Lines(maps) {
		i := strings.IndexByte(line, '/') // address, permissions, offset, device and inode hold no slash
		if i < 0 {
			continue
		}
		path := strings.ReplaceAll(strings.TrimSuffix(line[i:], "\n"), `\012`, "\n")
		if below(mountpoint, path) {
			return path, true
		}
	}
	return "", false
}

// below reports whether path is dir or something in it.
func below(dir, path string) bool {
	if dir == "/" {
		return strings.HasPrefix(path, "/")
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// BusyError says that a mount cannot be taken away, and because of whom. errors.Is with syscall.EBUSY holds for it.
type BusyError struct {
	Mountpoint string
	Holders    []Holder // empty where we are not allowed to see them
}

// Is makes errors.Is(err, syscall.EBUSY) hold.
func (e *BusyError) Is(target error) bool { return target == syscall.EBUSY }

// Error names the holders, five at most.
func (e *BusyError) Error() string {
	if len(e.Holders) == 0 {
		return e.Mountpoint + " is busy; who holds it cannot be seen from here"
	}
	const most = 5
	var names []string
	for _, h := range e.Holders[:min(most, len(e.Holders))] {
		names = append(names, h.String())
	}
	if n := len(e.Holders) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return e.Mountpoint + " is busy: " + strings.Join(slices.Compact(names), ", ")
}
