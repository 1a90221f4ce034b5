package storage

import (
	"errors"
	"fmt"
)

// Sentinels. Other packages wrap them with what they were doing; compare with errors.Is.
var (
	// ErrTopicNotFound: there is no such topic.
	ErrTopicNotFound = errors.New("no such topic")
	// ErrPartitionNotFound: the topic has no such partition.
	ErrPartitionNotFound = errors.New("no such partition")
	// ErrTopicExists: the topic, or the partition, is already there.
	ErrTopicExists = errors.New("topic exists")
	// ErrNotEmpty: the topic still holds records.
	ErrNotEmpty = errors.New("topic still holds records")
	// ErrInvalidName: a name or number is not of the form that it must have.
	ErrInvalidName = errors.New("invalid name")
	// ErrInvalidRecord: bytes given as a record or batch are not one.
	ErrInvalidRecord = errors.New("invalid record")
	// ErrInvalidConfig: a setting is unknown or out of range.
	ErrInvalidConfig = errors.New("invalid setting")
	// ErrTooLarge: the record's own batch is larger than max.message.bytes.
	ErrTooLarge = errors.New("record too large")
	// ErrOutOfRange: the offset is below the log start or above the log end.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrOffsetGone: what was asked for has been removed from the log.
	ErrOffsetGone = errors.New("no longer in the log")
	// ErrReadOnly: the log may not be changed.
	ErrReadOnly = errors.New("read-only")
	// ErrNotPermitted: the operation is never allowed on this kind of thing.
	ErrNotPermitted = errors.New("operation not permitted")
	// ErrPoisoned: an earlier write or sync failed in a way that leaves the file's state unknown; appends are refused until the log is opened anew.
	ErrPoisoned = errors.New("appends are refused after a failed write or sync")
	// ErrCorrupt: bytes on disk are not what was written.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported: it is there, but this version cannot show it.
	ErrUnsupported = errors.New("not supported")
	// ErrLocked: somebody else has the directory locked.
	ErrLocked = errors.New("locked by another process")
	// ErrNotLogDirectory: the directory is not one of Kafka's form and not an empty one.
	ErrNotLogDirectory = errors.New("not a log directory")
	// ErrUnavailable: it cannot be had now; trying again may help.
	ErrUnavailable = errors.New("temporarily unavailable")
	// ErrClosed: the engine or the handle has been closed.
	ErrClosed = errors.New("closed")
)

// CorruptError says where bytes were found wrong. errors.Is(err, ErrCorrupt) holds for it.
type CorruptError struct {
	Path   string // file
	Pos    Pos    // start of the batch or entry in it
	Offset Offset // its base offset, or -1 where unknown
	Reason string
	Err    error // may be nil
}

// Error implements error.
func (e *CorruptError) Error() string {
	s := fmt.Sprintf("%s: position %d", e.Path, e.Pos)
	if e.Offset >= 0 {
		s += fmt.Sprintf(", offset %d", e.Offset)
	}
	s += ": " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap implements errors.Unwrap.
func (e *CorruptError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrCorrupt}
	}
	return []error{ErrCorrupt, e.Err}
}
