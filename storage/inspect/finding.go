package inspect

import (
	"fmt"

	"github.com/logmount/logmount/storage"
)

// Severity says how bad a finding is.
type Severity int

// The severities.
const (
	Notice Severity = iota // worth knowing; the next start puts it right, or it does no harm
	Damage                 // records, or what leads to them, are wrong or at risk
)

// String returns "notice" or "damage".
func (s Severity) String() string {
	if s == Damage {
		return "damage"
	}
	return "notice"
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Severity) UnmarshalText(b []byte) error {
	switch string(b) {
	case "notice":
		*s = Notice
	case "damage":
		*s = Damage
	default:
		return fmt.Errorf("severity %.20q: %w", b, storage.ErrInvalidName)
	}
	return nil
}

// Finding is one thing that Verify found. Where a file holds the same thing often, the finding is about the first place and Detail tells how often.
type Finding struct {
	Path     string         `json:"path"`             // relative to the log directory
	Pos      storage.Pos    `json:"pos"`              // where in the file; 0 where it is about the file as such
	End      storage.Pos    `json:"end,omitempty"`    // of a damaged stretch of a log, which is [Pos, End)
	Offset   storage.Offset `json:"offset"`           // of the first record that it concerns; of a stretch the first that may be lost; -1 where there is none
	Next     storage.Offset `json:"next"`             // of the good batch at End; -1 where there is none
	What     What           `json:"what"`             // stable, for programs
	Severity Severity       `json:"severity"`         //
	Detail   string         `json:"detail"`           // for people
	Repair   string         `json:"repair,omitempty"` // what puts it right
}

// What is the kind of a finding.
type What string

// What can be wrong with the bytes of a log. Those up to TornTail are stretches: Pos, End, Offset and Next of the finding are set.
const (
	BatchFrame   What = "batch-frame"   // no batch starts where one should
	BatchHeader  What = "batch-header"  // a header with a value that it cannot have, or of an unknown version or codec
	BatchCRC     What = "batch-crc"     // the checksum does not match
	BatchRecords What = "batch-records" // the checksum matches, but the records cannot be decoded
	BatchOffset  What = "batch-offset"  // offsets that do not follow those before, or do not belong into the segment
	LogZeros     What = "log-zeros"     // zeros up to the end of the file
	TornTail     What = "torn-tail"     // the last batch is not whole, or nothing good lies behind the last good one

	BatchTimestamp  What = "batch-timestamp"   // largest timestamp of the header and of the records differ
	BatchControl    What = "batch-control"     // control batch that no broker writes
	BatchProducer   What = "batch-producer"    // transactional without a producer
	BatchAttributes What = "batch-attributes"  // bits are set that have no meaning
	TxnMixed        What = "txn-mixed"         // a batch outside a transaction while its producer has one open: a broker does not start
	OffsetGap       What = "offset-gap"        // offsets are missing between batches, and nothing tells of compaction
	SegmentSize     What = "segment-size"      // larger than 2 GiB
	Unreadable      What = "unreadable"        // the disk does not give the bytes
	Vanished        What = "vanished"          // removed while the directory was looked at
	MoreFindings    What = "more-findings"     // too many in one file
	NotChecked      What = "not-checked"       // a check that would have taken too much memory was left out
	EpochOrder      What = "epoch-order"       // leader epochs of batches descend
	EpochMismatch   What = "epoch-mismatch"    // a batch's leader epoch is not the one of leader-epoch-checkpoint
	EpochsAhead     What = "epochs-ahead"      // leader-epoch-checkpoint has entries behind the end of the log
	EpochsMissing   What = "epochs-missing"    // batches have epochs, leader-epoch-checkpoint is missing or empty
	EpochsSyntax    What = "epochs-syntax"     // leader-epoch-checkpoint cannot be read
	MetadataSyntax  What = "metadata-syntax"   // partition.metadata cannot be read
	MetadataMissing What = "metadata-missing"  // there is no partition.metadata
	TopicID         What = "topic-id"          // partitions of a topic, or the catalogue, have different topic ids
	LogMissing      What = "log-missing"       // a partition without a segment
	CatalogMismatch What = "catalog-mismatch"  // the catalogue and the directories do not agree
	CatalogSyntax   What = "catalog-syntax"    // the catalogue cannot be read
	PropertiesWrong What = "properties-wrong"  // meta.properties lacks something or cannot be read
	CheckpointLine  What = "checkpoint-line"   // a line of a checkpoint that names a log that is not there, or cannot be used
	CheckpointForm  What = "checkpoint-syntax" // a checkpoint cannot be read
	CheckpointAhead What = "checkpoint-ahead"  // a checkpoint says more than the log has
	NotClean        What = "not-clean"         // the marker of a clean shutdown is not there
	Locked          What = "locked"            // somebody has .lock, or may have it, and may be writing
)

// What can be wrong with the files beside the log.
const (
	IndexMissing     What = "index-missing"
	IndexEntry       What = "index-entry"       // an entry that misleads
	IndexInexact     What = "index-inexact"     // entries of older brokers, usable
	IndexAhead       What = "index-ahead"       // entries behind the end of the log
	IndexPadding     What = "index-padding"     // zeros behind the entries where there must not be any, or other bytes in them
	IndexLength      What = "index-length"      // not a whole number of entries
	TimeIndexMissing What = "timeindex-missing" //
	TimeIndexEntry   What = "timeindex-entry"
	TimeIndexInexact What = "timeindex-inexact"
	TimeIndexAhead   What = "timeindex-ahead"
	TimeIndexPadding What = "timeindex-padding"
	TimeIndexLength  What = "timeindex-length"
	TimeIndexClosing What = "timeindex-closing" // the last entry is not the largest timestamp
	TxnIndexSyntax   What = "txnindex-syntax"
	TxnIndexLength   What = "txnindex-length"
	TxnIndexMissing  What = "txnindex-missing" // an aborted transaction without an entry: its records are shown as if committed
	TxnIndexEntry    What = "txnindex-entry"   // an entry that no aborted transaction stands for, or a wrong one
	SizeIndexStale   What = "sizeindex-stale"  // does not belong to the log as it is; rebuilt without being asked
	SizeIndexWrong   What = "sizeindex-wrong"  // seems to belong to the log and adds up wrong
	SnapshotSyntax   What = "snapshot-syntax"
	SnapshotMismatch What = "snapshot-mismatch" // says something else than the log
	SnapshotAhead    What = "snapshot-ahead"    // beyond the end of the log
	SnapshotMissing  What = "snapshot-missing"
	FileName         What = "file-name"      // a name that stops a broker or is misread
	FileUnknown      What = "file-unknown"   // a file that has no place there; left alone
	FileOrphan       What = "file-orphan"    // belongs to a log that is not there
	FileLeftover     What = "file-leftover"  // left by something that was interrupted, or waiting to be removed
	FileTorn         What = "file-torn"      // what a recovery moved aside
	FileOwner        What = "file-owner"     // belongs to somebody else than its directory
	DirName          What = "dir-name"       // a directory that stops a broker
	DirLeftover      What = "dir-leftover"   // a partition that is being deleted, moved, or not wanted
	NameCollision    What = "name-collision" // topics that a broker takes for the same
)

// What only Verify with Adopt finds: what would hurt a broker that adopts the directory.
const (
	AdoptProducer What = "adopt-producer"      // batches with the producer id of some other cluster
	AdoptTxn      What = "adopt-transactional" // transactional or control batches
	AdoptOpenTxn  What = "adopt-open-txn"      // a transaction is open at the end
	AdoptEpoch    What = "adopt-epoch"         // batches without a leader epoch, or with one above the last of leader-epoch-checkpoint
	AdoptFormat   What = "adopt-format"        // batches of version 0 or 1
)

// about makes a finding about a file as such.
func about(path string, sev Severity, what What, repair, format string, args ...any) Finding {
	return Finding{Path: path, Offset: -1, Next: -1, What: what, Severity: sev, Detail: fmt.Sprintf(format, args...), Repair: repair}
}

// at returns f with a place.
func (f Finding) at(pos storage.Pos, o storage.Offset) Finding {
	f.Pos, f.Offset = pos, o
	return f
}

// noticeIf is Notice where cond holds, else Damage.
func noticeIf(cond bool) Severity {
	if cond {
		return Notice
	}
	return Damage
}
