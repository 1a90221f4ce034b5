package record

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/logmount/logmount/storage"
)

// ControlType says what a control record is for.
type ControlType int16

// The control records that are known. Others may turn up and are no error.
const (
	Abort ControlType = iota
	Commit
	LeaderChange
	SnapshotHeader
	SnapshotFooter
	KRaftVersion
	KRaftVoters
)

var controlNames = [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}

// String returns Kafka's name for the type.
func (t ControlType) String() string {
	if t >= 0 && int(t) < len(controlNames) {
		return controlNames[t]
	}
	return "CONTROL_" + strconv.Itoa(int(t))
}

// ControlRecord is a decoded control record.
type ControlRecord struct {
	Type             ControlType
	Version          int16 // of the key
	CoordinatorEpoch int32 // of Abort and Commit, else 0
}

// ParseControl decodes a record of a control batch. A type that is not known is no error.
func ParseControl(rec *storage.Record) (ControlRecord, error) {
	if len(rec.Key) < 4 {
		return ControlRecord{}, fmt.Errorf("%w: control record %d with a key of %d bytes", ErrMalformed, rec.Offset, len(rec.Key))
	}
	c := ControlRecord{Version: int16(binary.BigEndian.Uint16(rec.Key)), Type: ControlType(binary.BigEndian.Uint16(rec.Key[2:]))}
	if c.Version < 0 {
		return ControlRecord{}, fmt.Errorf("%w: control record %d with key version %d", ErrMalformed, rec.Offset, c.Version)
	}
	if c.Type != Abort && c.Type != Commit {
		return c, nil
	}
	if len(rec.Value) < 6 {
		return ControlRecord{}, fmt.Errorf("%w: %v record %d with a value of %d bytes", ErrMalformed, c.Type, rec.Offset, len(rec.Value))
	}
	if v := int16(binary.BigEndian.Uint16(rec.Value)); v < 0 {
		return ControlRecord{}, fmt.Errorf("%w: %v record %d with value version %d", ErrMalformed, c.Type, rec.Offset, v)
	}
	c.CoordinatorEpoch = int32(binary.BigEndian.Uint32(rec.Value[2:]))
	return c, nil
}
