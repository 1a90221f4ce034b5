package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
)

// mountOptions is what -o says.
type mountOptions struct {
	readOnly   bool
	allowOther bool
	uid, gid   *uint32
	umask      *uint32
	batchSize  int
	committed  bool     // isolation=read_committed
	exact      bool     // batch=exact
	sole       []string // assume-unreplicated=TOPIC
	flags      []string // options of the kernel's that are handed on
	given      []string // as given, without the ones that mount(8) passes for itself; for .logmount/config and for the daemon's arguments
}

// defaultBatchSize is that of a Kafka producer.
const defaultBatchSize = 16384

// Limits of batch.size: below the first a batch is mostly header, beyond the second one random read decodes too much.
const (
	minBatchSize = 128
	maxBatchSize = 16 << 20
)

// mountOptionForms are the options with their values, where a word in capitals stands for one.
var mountOptionForms = []string{
	"ro", "rw", "allow_other", "uid=N", "gid=N", "umask=OCTAL", "batch.size=BYTES",
	"isolation=" + storage.ReadUncommitted + "|" + storage.ReadCommitted, "batch=exact", "assume-unreplicated=TOPIC",
}

// knownOptions is what the error about an unknown option lists.
var knownOptions = strings.Join(mountOptionForms, ", ")

// ignoredOptions are those that mount(8) and /etc/fstab carry for themselves and for systemd, and those of the kernel that say what is so anyway
// (every mount is nosuid and nodev).
var ignoredOptions = []string{
	"defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev",
	"dev", "nodev", "suid", "nosuid", "exec", "async", "sync", "dirsync", "silent", "loud",
	"atime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
	"default_permissions",
}

// parseMountOptions reads the values of all -o flags.
func parseMountOptions(values []string) (mountOptions, error) {
	o := mountOptions{batchSize: defaultBatchSize}
	for _, v := range values {
		for opt := range strings.SplitSeq(v, ",") {
			opt = strings.TrimSpace(opt)
			if opt == "" || ignored(opt) {
				continue
			}
			if err := o.set(opt); err != nil {
				return mountOptions{}, err
			}
			o.given = append(o.given, opt)
		}
	}
	return o, nil
}

func ignored(opt string) bool {
	return slices.Contains(ignoredOptions, opt) || strings.HasPrefix(opt, "x-") || strings.HasPrefix(opt, "X-") || strings.HasPrefix(opt, "comment=")
}

func (o *mountOptions) set(opt string) (err error) {
	name, value, has := strings.Cut(opt, "=")
	switch opt {
	case "ro":
		o.readOnly = true
		return nil
	case "rw":
		// The last of ro and rw counts, as for mount(8). It asks for nothing: whether DATA may be written is decided by whose it is.
		o.readOnly = false
		return nil
	case "allow_other":
		o.allowOther = true
		return nil
	case "noexec", "noatime":
		o.flags = append(o.flags, opt)
		return nil
	}
	switch name {
	case "uid", "gid", "umask", "batch.size", "isolation", "batch", "assume-unreplicated":
		if !has || value == "" {
			return fmt.Errorf("option %s needs a value: %s=…", name, name)
		}
	default:
		return fmt.Errorf("unknown option %q: known are %s", opt, knownOptions)
	}
	switch name {
	case "uid":
		o.uid, err = parseID(name, value)
	case "gid":
		o.gid, err = parseID(name, value)
	case "umask":
		n, perr := strconv.ParseUint(value, 8, 32)
		if perr != nil || n > 0o777 {
			return fmt.Errorf("option umask=%s: not an octal number from 0 to 777", value)
		}
		m := uint32(n)
		o.umask = &m
	case "batch.size":
		n, perr := strconv.Atoi(value)
		if perr != nil || n < minBatchSize || n > maxBatchSize {
			return fmt.Errorf("option batch.size=%s: not a number of bytes from %d to %d", value, minBatchSize, maxBatchSize)
		}
		o.batchSize = n
	case "batch":
		if value != "exact" {
			return fmt.Errorf("option batch=%s: exact is the only value", value)
		}
		o.exact = true
	case "assume-unreplicated":
		o.sole = append(o.sole, value)
	case "isolation":
		switch value {
		case storage.ReadCommitted, storage.ReadUncommitted:
			o.committed = value == storage.ReadCommitted
		default:
			return fmt.Errorf("option isolation=%s: %s (the default) or %s", value, storage.ReadUncommitted, storage.ReadCommitted)
		}
	}
	return err
}

func parseID(name, value string) (*uint32, error) {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || n == 1<<32-1 {
		return nil, fmt.Errorf("option %s=%s: not a numeric id", name, value)
	}
	id := uint32(n)
	return &id, nil
}
