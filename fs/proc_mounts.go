package fs

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mountName is what a mount is called in /proc/self/mountinfo, behind "fuse.".
const mountName = "logmount"

// MountEntry is a mounted tree, as the kernel lists it.
type MountEntry struct {
	Mountpoint string // absolute, without symbolic links
	Source     string // DATA, an absolute path
	ReadOnly   bool
}

// mountInfo is a line of /proc/self/mountinfo.
type mountInfo struct {
	id, parent int
	root       string
	mountpoint string
	options    string
	fsType     string
	source     string
	super      string // options of the file system rather than of the mount
}

// Mounts lists the trees that are mounted now and that can be seen from here (not those of other mount namespaces). It touches none of them.
func Mounts() ([]MountEntry, error) {
	infos, err := readMountInfo()
	if err != nil {
		return nil, err
	}
	var entries []MountEntry
	for _, m := range infos {
		if m.ours() {
			entries = append(entries, MountEntry{Mountpoint: m.mountpoint, Source: m.source, ReadOnly: hasOption(m.options, "ro") || hasOption(m.super, "ro")})
		}
	}
	return entries, nil
}

// ours reports whether this program made the mount.
func (m *mountInfo) ours() bool { return m.fsType == "fuse."+mountName }

// fuse reports whether any FUSE daemon serves the mount.
func (m *mountInfo) fuse() bool {
	return m.fsType == "fuse" || m.fsType == "fuseblk" || strings.HasPrefix(m.fsType, "fuse.")
}

// readMountInfo lists the mounts of our namespace, later ones on top of earlier ones.
func readMountInfo() ([]mountInfo, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return parseMountInfo(string(text)), nil
}

// topMount returns what is mounted at path, which must be absolute and without symbolic links; nil for nothing.
func topMount(infos []mountInfo, path string) *mountInfo {
	for i := range slices.Backward(infos) {
		if infos[i].mountpoint == path {
			return &infos[i]
		}
	}
	return nil
}

// parseMountInfo skips lines that it does not understand.
func parseMountInfo(text string) []mountInfo {
	var infos []mountInfo
	for line := range strings.Lines(text) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
		front, back, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		f, b := strings.Split(front, " "), strings.Split(back, " ")
		if !ok || len(f) < 6 || len(b) < 2 {
			continue
		}
		id, err1 := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		if err1 != nil || err2 != nil {
			continue
		}
		m := mountInfo{
			id: id, parent: parent, root: unescapeMount(f[3]), mountpoint: unescapeMount(f[4]), options: f[5],
			fsType: unescapeMount(b[0]), source: unescapeMount(b[1]),
		}
		if len(b) > 2 {
			m.super = b[2]
		}
		infos = append(infos, m)
	}
	return infos
}

// unescapeMount undoes the kernel's octal escapes of white space, backslash and number sign.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b = append(b, byte(n))
				i += 3
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func hasOption(options, name string) bool {
	return slices.Contains(strings.Split(options, ","), name)
}
