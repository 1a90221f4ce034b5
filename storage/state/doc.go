// Package state reads and writes the small files that say what a log directory and its logs are: checkpoints, leader epochs, topic ids, meta.properties,
// the marker of a clean shutdown, producer snapshots, and the names of directories and files.
//
// Bytes and strings in, bytes and strings out; reading and writing the files is left to others; only CheckLogDirectory looks at a disk.
// A parser allocates no more than a small multiple of its input, whatever numbers stand in it.
//
// Invariants:
//
//	I1  What a parser accepts and its formatter writes again parses to the same.
//	I2  Bytes that are wrong are storage.ErrCorrupt and names that are wrong storage.ErrInvalidName; the error says which line, entry or rule.
//	I3  Line ends are written as \n; \r\n is read too.
package state

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/logmount/logmount/storage"
)

// Names of the files at the top of a log directory and in a partition's directory.
const (
	MetaPropertiesFile = "meta.properties"
	LockFile           = ".lock"
	CleanMarkerFile    = ".kafka_cleanshutdown"
	RecoveryPointFile  = "recovery-point-offset-checkpoint"
	LogStartFile       = "log-start-offset-checkpoint"
	HighWatermarkFile  = "replication-offset-checkpoint"
	CleanerOffsetFile  = "cleaner-offset-checkpoint"
	EpochsFile         = "leader-epoch-checkpoint"
	MetadataFile       = "partition.metadata"

	// TopicsFile, at the top of a log directory, makes the directory ours: it names our topics and their settings. A broker ignores it.
	TopicsFile     = ".logmount-topics.json"
	RemoteCacheDir = "remote-log-index-cache" // a broker keeps the indexes of segments there that it has moved to remote storage
	LostFoundDir   = "lost+found"
)

// MetadataTopic is the name of the log in which the controllers of a cluster keep its state.
const MetadataTopic = "__cluster_metadata"

// lines cuts text into lines without their ends. A last line without an end counts, an empty one behind the last end does not.
func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	out := make([]string, 0, bytes.Count(b, []byte("\n"))+1)
	for line := range strings.SplitSeq(string(b), "\n") {
		out = append(out, strings.TrimRight(line, "\r"))
	}
	return out
}

// blank reports whether c separates the fields of a line.
func blank(c rune) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// fields cuts a line at its blanks. A line that begins with a blank has none.
func fields(line string) []string {
	if line == "" || blank(rune(line[0])) {
		return nil
	}
	return strings.FieldsFunc(line, blank)
}

// corruptLine makes the error for line i, counted from 0.
func corruptLine(what string, i int, format string, args ...any) error {
	return fmt.Errorf("%s line %d: %s: %w", what, i+1, fmt.Sprintf(format, args...), storage.ErrCorrupt)
}

// quote shortens text from a file for an error message.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q…", s[:80])
	}
	return fmt.Sprintf("%q", s)
}
