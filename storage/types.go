package storage

import (
	"fmt"
	"strconv"
	"time"
)

// Offset is the number of a record in its partition, counted from 0.
type Offset int64

// Pos is a position in a file, in bytes.
type Pos int64

// NoTimestamp is the timestamp of a record that has none.
const NoTimestamp int64 = -1

// TopicPartition names one log.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns topic-partition, the name of the partition's directory in a Kafka log directory.
func (tp TopicPartition) String() string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// Header is one header of a record. Names may repeat and their order is kept.
type Header struct {
	Key   []byte
	Value []byte // nil is null, which is not the same as empty
}

// Record is one record of a log.
type Record struct {
	Offset    Offset // ignored by Append
	Timestamp int64  // milliseconds since the Unix epoch, or NoTimestamp
	Key       []byte // nil is null, which is not the same as empty
	Value     []byte // nil is null, which is not the same as empty
	Headers   []Header
}

// Time returns the record's timestamp as a time; the zero time where there is none.
func (r *Record) Time() time.Time {
	if r.Timestamp < 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.Timestamp)
}

// Measure tells how many bytes of a view a record takes. The byte positions of a view are counted in a measure.
//
// A linear measure (Size is nil and Batches is false) takes PerRecord + PerKeyByte*len(key) + PerValueByte*len(value) bytes for a record; its sums
// come from the size index. With Size the size is what the function returns: its sums are worked out when first asked for and kept in memory, under
// Name. With Batches the bytes are those of whole batches as they lie on disk, control and aborted ones included.
type Measure struct {
	Name         string
	PerRecord    int64
	PerKeyByte   int64
	PerValueByte int64
	Size         func(*Record) int64
	Batches      bool
}

// Linear reports whether the measure is a linear function of a record's key and value lengths.
func (m *Measure) Linear() bool { return m.Size == nil && !m.Batches }

// Of returns the bytes that r takes in a measure that is not counted in batches.
func (m *Measure) Of(r *Record) int64 {
	if m.Size != nil {
		return m.Size(r)
	}
	return m.PerRecord + m.PerKeyByte*int64(len(r.Key)) + m.PerValueByte*int64(len(r.Value))
}

// Appended is what an append gave to its records: offsets First <= o < Next.
type Appended struct {
	First, Next Offset
}

// TopicConfig holds a topic's settings. The names in the comments are Kafka's; a zero value is not a default, see DefaultTopicConfig.
type TopicConfig struct {
	SegmentBytes       int64 // segment.bytes: size of a .log file at which the log rolls
	SegmentMs          int64 // segment.ms: span of timestamps after which the log rolls, in milliseconds
	SegmentIndexBytes  int64 // segment.index.bytes: largest size of an index file
	IndexIntervalBytes int64 // index.interval.bytes: bytes of log between two entries of an index
	MaxMessageBytes    int64 // max.message.bytes: largest batch, header included
}

// DefaultTopicConfig returns Kafka's defaults.
func DefaultTopicConfig() TopicConfig {
	return TopicConfig{SegmentBytes: 1 << 30, SegmentMs: 7 * 24 * 3600 * 1000, SegmentIndexBytes: 10 << 20, IndexIntervalBytes: 4096, MaxMessageBytes: 1048588}
}

// TopicSpec is what CreateTopic makes.
type TopicSpec struct {
	Name       string
	Partitions int32             // at least 1
	Config     map[string]string // Kafka's names; only what differs from the defaults
}

// ControlName is the name of the directory about a mount at the top of its tree. A topic of that name could not be seen there.
const ControlName = ".logmount"

// TopicInfo describes a topic.
type TopicInfo struct {
	Name       string
	ID         string  // 22 characters of URL-safe base64; empty where unknown
	Partitions []int32 // ascending; of a directory that is not ours there may be holes
	Config     map[string]string
	Writable   bool
	Reason     string // why it is not writable
	Created    time.Time
	Modified   time.Time // of a topic that is another's: when a directory of it had last been changed when it was found; else zero
}

// FileInfo describes one raw file of a partition.
type FileInfo struct {
	Name     string
	Size     int64
	Modified time.Time
	Final    bool // nothing will ever be written to it
}

// Report is something that went wrong or was put right and that a person should be able to read later.
type Report struct {
	Time   time.Time `json:"time"`
	Path   string    `json:"path"`
	Reason string    `json:"reason"`
}

// EngineInfo says what an engine serves and who owns it.
type EngineInfo struct {
	Data     string // what was opened, an absolute path for a directory; several are joined with commas
	Dirs     []string
	Writable bool   // something can be changed
	Reason   string // why not
	UID, GID uint32
	Mode     uint32 // permission bits of directories
	Modified time.Time
	// Committed says that what aborted transactions wrote is hidden and that logs end at their last stable offset (isolation read_committed).
	Committed bool
	// Own says that the directory is ours and not a broker's or a copy.
	Own bool
	// ClusterID and NodeID say which broker's it is; empty where that is not known.
	ClusterID, NodeID string
}

// Isolation returns Kafka's word for what is shown of transactions.
func (i EngineInfo) Isolation() string {
	if i.Committed {
		return ReadCommitted
	}
	return ReadUncommitted
}

// The isolation levels, in Kafka's words.
const (
	ReadCommitted   = "read_committed"
	ReadUncommitted = "read_uncommitted"
)

// Room is the room on the file system that holds an engine's logs, in bytes.
type Room struct {
	Total, Free int64
	Avail       int64 // to the process that asks
}

// PartitionStatus is the state of one partition that has been looked at.
type PartitionStatus struct {
	Topic         string `json:"topic"`
	Partition     int32  `json:"partition"`
	Start         Offset `json:"start"`
	End           Offset `json:"end"`
	RecoveryPoint Offset `json:"recovery_point"`
	Segments      int    `json:"segments"`
	Bytes         int64  `json:"bytes"`
	Sized         int    `json:"segments_sized"` // segments whose size index is there
	Writable      bool   `json:"writable"`
	Reason        string `json:"reason,omitempty"`    // why it is not writable
	Recovered     string `json:"recovered,omitempty"` // what recovery found and did
	Remote        string `json:"remote,omitempty"`    // what of the log is not on this disk
}

// Aside is the directory of a log that is not shown because its name sets it aside.
type Aside struct {
	Path      string `json:"path"`
	Kind      string `json:"kind"`  // delete: on its way out; stray: not wanted by the cluster; future: a copy that is to replace the log
	Topic     string `json:"topic"` // a long one may have been cut short in the name
	Partition int32  `json:"partition"`
}

// EngineStatus is what an engine tells about itself. Partitions not looked at yet are counted, not listed.
type EngineStatus struct {
	Topics     int               `json:"topics"`
	Partitions int               `json:"partitions"`
	Opened     int               `json:"partitions_opened"`
	OpenFiles  int               `json:"open_files"`
	Clean      bool              `json:"clean_start"`
	List       []PartitionStatus `json:"list"`
	Aside      []Aside           `json:"aside"`
	// Remote says that older segments of some topics may be kept in remote storage, which is not shown.
	Remote bool `json:"remote_storage"`
	// Missing counts the logs that checkpoints name and that are not there.
	Missing int `json:"checkpointed_missing"`
}

// ParseOffset reads a decimal offset as file names and views spell it: digits only, no sign.
func ParseOffset(s string) (Offset, error) {
	if s == "" {
		return 0, fmt.Errorf("%w: empty offset", ErrInvalidName)
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, fmt.Errorf("%w: offset %q is not a decimal number", ErrInvalidName, s)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: offset %q is out of range", ErrInvalidName, s)
	}
	return Offset(n), nil
}
