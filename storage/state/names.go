package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
)

const (
	maxTopic   = 249
	maxDirName = 255
)

// ValidTopic returns nil where name can be a topic's, else storage.ErrInvalidName with the rule that it breaks.
func ValidTopic(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a topic name cannot be empty", storage.ErrInvalidName)
	case name == "." || name == "..":
		return fmt.Errorf("%w: a topic cannot be named %q", storage.ErrInvalidName, name)
	case len(name) > maxTopic:
		return fmt.Errorf("%w: topic name of %d characters, at most %d are allowed", storage.ErrInvalidName, len(name), maxTopic)
	}
	for _, c := range name {
		if !topicChar(c) {
			return fmt.Errorf("%w: topic name %s holds %q, allowed are A-Z a-z 0-9 . _ -", storage.ErrInvalidName, quote(name), c)
		}
	}
	return nil
}

func topicChar(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// DirKind says what a partition's directory is for.
type DirKind int

// The kinds of partition directories.
const (
	DirNormal DirKind = iota // the log
	DirDelete                // being deleted; a long topic name is cut short in it
	DirStray                 // not wanted by the controller any more; a long topic name is cut short in it
	DirFuture                // a copy that will replace the log
)

// String returns the ending of the directory's name, without its '-'; of a normal one "normal".
func (k DirKind) String() string {
	switch k {
	case DirDelete:
		return "delete"
	case DirStray:
		return "stray"
	case DirFuture:
		return "future"
	case DirNormal:
	}
	return "normal"
}

// DirName is the name of a partition's directory, taken apart.
type DirName struct {
	storage.TopicPartition
	Kind DirKind
	ID   string // what makes a directory that is not normal unique, 32 hexadecimal digits; else empty
}

// String returns the directory's name.
func (d DirName) String() string {
	if d.Kind == DirNormal {
		return d.TopicPartition.String()
	}
	return d.TopicPartition.String() + "." + d.ID + "-" + d.Kind.String()
}

// ParseDirName takes the name of a partition's directory apart. Any other name is storage.ErrInvalidName, and so is one that no broker writes, with a sign
// or zeros before the partition number: there is one directory for a log.
func ParseDirName(name string) (DirName, error) {
	d := DirName{}
	rest := name
	for _, k := range []DirKind{DirDelete, DirStray, DirFuture} {
		head, ok := strings.CutSuffix(name, "-"+k.String())
		if !ok {
			continue
		}
		dot := strings.LastIndexByte(head, '.')
		if dot < 0 || dot == len(head)-1 || strings.ContainsFunc(head, blank) {
			return DirName{}, notPartition(name)
		}
		d.Kind, rest, d.ID = k, head[:dot], head[dot+1:]
	}
	dash := strings.LastIndexByte(rest, '-')
	if dash < 0 {
		return DirName{}, notPartition(name)
	}
	p, err := strconv.ParseInt(rest[dash+1:], 10, 32)
	if err != nil || p < 0 || strconv.FormatInt(p, 10) != rest[dash+1:] {
		return DirName{}, notPartition(name)
	}
	d.Topic, d.Partition = rest[:dash], int32(p)
	if err := ValidTopic(d.Topic); err != nil {
		return DirName{}, fmt.Errorf("directory %s: %w", quote(name), err)
	}
	return d, nil
}

func notPartition(name string) error {
	return fmt.Errorf("%w: %s is not the name of a partition's directory", storage.ErrInvalidName, quote(name))
}

// DeleteDirName returns the name that a log's directory gets before it is removed. id comes from NewDirID. A long topic name is cut short so that the
// name is one that a file system takes.
func DeleteDirName(tp storage.TopicPartition, id string) string {
	d := DirName{TopicPartition: tp, Kind: DirDelete, ID: id}
	if over := len(d.String()) - maxDirName; over > 0 {
		d.Topic = d.Topic[:max(len(d.Topic)-over, 1)]
	}
	return d.String()
}

// Extensions of the files of a segment.
const (
	ExtLog       = ".log"
	ExtIndex     = ".index"
	ExtTimeIndex = ".timeindex"
	ExtTxnIndex  = ".txnindex"
	ExtSnapshot  = ".snapshot"
	ExtSizeIndex = ".sizeindex"
)

// Suffixes behind the extension of a file that is on its way in or out.
const (
	SuffixDeleted = ".deleted" // waits to be removed
	SuffixCleaned = ".cleaned" // being written by a cleaner
	SuffixSwap    = ".swap"    // complete replacement that waits to be moved in
	SuffixTorn    = ".torn"    // what recovery moved aside
	SuffixTemp    = ".tmp"     // being written, to be renamed
	// SuffixQuarantine marks bytes that a repair took out of a log, SuffixMoving a log that it is giving another base offset.
	SuffixQuarantine = ".quarantine"
	SuffixMoving     = ".moving"
)

const digits = 20 // of the base offset in a file's name

// FileName returns the name of a segment's file; ext is one of the extensions, with suffixes as they may be.
func FileName(base storage.Offset, ext string) string {
	var b [digits + 32]byte
	name := append(b[:0], "00000000000000000000"...)
	num := strconv.AppendInt(b[digits:digits], int64(base), 10)
	copy(name[digits-len(num):], num)
	return string(append(name, ext...))
}

// ParseFileName takes the name of a segment's file apart: its base offset (of a snapshot: the offset up to which it goes), its extension, and its suffix
// or "". ok is false for every other name.
func ParseFileName(name string) (base storage.Offset, ext, suffix string, ok bool) {
	if len(name) <= digits || name[digits] != '.' {
		return 0, "", "", false
	}
	for i := range digits {
		if name[i] < '0' || name[i] > '9' {
			return 0, "", "", false
		}
	}
	n, err := strconv.ParseInt(name[:digits], 10, 64)
	if err != nil {
		return 0, "", "", false
	}
	ext = name[digits:]
	if dot := strings.IndexByte(ext[1:], '.'); dot >= 0 {
		ext, suffix = ext[:dot+1], ext[dot+1:]
	}
	switch ext {
	case ExtLog, ExtIndex, ExtTimeIndex, ExtTxnIndex, ExtSnapshot, ExtSizeIndex:
	default:
		return 0, "", "", false
	}
	switch suffix {
	case "", SuffixDeleted, SuffixCleaned, SuffixSwap, SuffixTorn, SuffixTemp:
	default:
		return 0, "", "", false
	}
	return storage.Offset(n), ext, suffix, true
}

// ParseLogName returns the base offset of the segment whose log, in its place, has that name. ok is false for every other name.
func ParseLogName(name string) (base storage.Offset, ok bool) {
	base, ext, suffix, ok := ParseFileName(name)
	if !ok || ext != ExtLog || suffix != "" {
		return 0, false
	}
	return base, true
}

// TornName returns the name for what is moved aside of a file: the first that is not taken.
func TornName(name string, taken func(string) (bool, error)) (string, error) {
	for i := 1; ; i++ {
		to := name + SuffixTorn
		if i > 1 {
			to = name + "." + strconv.Itoa(i) + SuffixTorn
		}
		there, err := taken(to)
		if err != nil || !there {
			return to, err
		}
	}
}
