package storage

import (
	"context"
	"io"
)

// Engine serves topics. All methods may be called by many goroutines at once. A method that takes a context returns the context's cause soon after it
// is cancelled where it waits or works for long, unless what it does must not be left half done.
type Engine interface {
	// Info says what is served. It does not block.
	Info() EngineInfo
	// Topics returns all topics in the order of their names.
	Topics(ctx context.Context) ([]TopicInfo, error)
	// Topic returns one topic, or ErrTopicNotFound.
	Topic(ctx context.Context, name string) (TopicInfo, error)
	// CreateTopic makes a topic; it is on stable storage when CreateTopic returns.
	// ErrTopicExists, ErrInvalidName, ErrInvalidConfig, ErrReadOnly.
	CreateTopic(ctx context.Context, spec TopicSpec) error
	// DeleteTopic removes a topic and all its records. Unless force, a topic that holds a record is ErrNotEmpty.
	// ErrTopicNotFound, ErrReadOnly.
	DeleteTopic(ctx context.Context, name string, force bool) error
	// AddPartition adds partition number p, which must be the number of partitions so far (ErrInvalidName else; ErrTopicExists if it is there).
	AddPartition(ctx context.Context, topic string, p int32) error
	// Partition returns a log. The first call for a log may read and recover it. ErrTopicNotFound, ErrPartitionNotFound.
	Partition(ctx context.Context, tp TopicPartition) (Partition, error)
	// Status tells what the engine is doing.
	Status() EngineStatus
	// Close makes all appended records durable, waits for every goroutine of the engine and lets go of what it holds. Calls after it are ErrClosed.
	Close() error
}

// Roomy is implemented by an engine whose logs lie on a file system. It is apart from Engine because others, of which a cluster is one, have nothing to say.
type Roomy interface {
	// Room tells how much room there is now. It asks the file system.
	Room(ctx context.Context) (Room, error)
}

// Partition is one log. All methods may be called by many goroutines at once.
type Partition interface {
	// Snapshot returns the newest state. It is never older than an append or a deletion that has returned.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Append adds records in their order and returns their offsets. Either all of them are added or none. Their timestamps are stored as they are.
	// They are cut into batches of at most batchBytes (a larger record has a batch of its own) and are seen by every reader when Append returns;
	// they are on stable storage after a Sync that began later. It does not keep the slices.
	// ErrTooLarge, ErrReadOnly, ErrPoisoned, and errors of the file system (ENOSPC, EDQUOT).
	Append(ctx context.Context, records []Record, batchBytes int) (Appended, error)
	// AppendBatches adds whole batches of format v2, each as it would lie on disk. Base offsets and leader epochs are assigned anew, producer fields
	// are cleared, control batches and data of aborted transactions are left out. ErrInvalidRecord where structure or checksum is wrong.
	// Either all that are taken are added or none. First and Next are equal where nothing was left to add.
	//
	// With more to come, batches from the first on whose transaction has not ended in any of them are not taken yet: taken says how many were, and the rest
	// belong in front of the next call. Without, and by an engine that keeps transactions, all are.
	AppendBatches(ctx context.Context, batches [][]byte, more bool) (a Appended, taken int, err error)
	// CheckAppend returns the error that Append of the record would give now, as far as that can be told without writing.
	CheckAppend(ctx context.Context, r *Record) error
	// Sync puts everything appended before the call on stable storage. After a failure the partition is poisoned (ErrPoisoned).
	Sync(ctx context.Context) error
	// SetStart deletes the records below o; no effect if o is at or below the present start. ErrOutOfRange if o is above the end. ErrReadOnly.
	SetStart(ctx context.Context, o Offset) error
	// Watch sends to ch, without blocking, after each change of the snapshot, until stop is called. ch should have room for one.
	Watch(ch chan<- struct{}) (stop func())
	// Writable returns nil, or the error that an append would give because of what the log is: ErrReadOnly with the reason.
	// It may have to examine the log first.
	Writable(ctx context.Context) error
	// Files lists the raw files. ErrUnsupported by an engine that has none.
	Files(ctx context.Context) ([]FileInfo, error)
	// File describes one raw file; ErrOffsetGone where there is none of that name.
	File(ctx context.Context, name string) (FileInfo, error)
	// OpenFile opens a raw file for reading.
	OpenFile(ctx context.Context, name string) (RawFile, error)
}

// RawFile is one raw file of a partition, opened for reading.
type RawFile interface {
	io.ReaderAt
	io.Closer
	Stat() (FileInfo, error)
}

// Snapshot is the state of a log at one moment: all that a reader needs. It is immutable, needs no closing and may be used by many goroutines. Records
// below the start that a later SetStart moved stay readable as long as their segment is; after that they are ErrOffsetGone.
//
// Visible records are those that a view shows: data records, not control records.
type Snapshot interface {
	// Start is the log start offset, End the log end offset: the offset that the next record gets.
	Start() Offset
	End() Offset
	// Generation changes when bytes before the end may lie elsewhere than before: the start has moved, or the log was truncated or rewritten.
	Generation() uint64
	// Unchanged returns the offset below which the log is what it was in an earlier generation. Only a truncation, perhaps followed by other records, moves
	// it below the end of then.
	Unchanged(generation uint64) Offset
	// Modified is the time of the last append, in milliseconds since the Unix epoch; of an empty log the time of its creation.
	Modified() int64
	// Final reports that nothing will ever be appended to or removed from the log while it is open here.
	Final() bool
	// Next returns the first visible record at or after o by its offset, or End. ErrOutOfRange outside Start..End.
	Next(ctx context.Context, o Offset) (Offset, error)
	// FindTime returns the offset of the first visible record whose timestamp is at least ts, or End.
	FindTime(ctx context.Context, ts int64) (Offset, error)
	// FindLast returns the offset of the n-th visible record from the end, or of the first where there are fewer; End for n = 0.
	FindLast(ctx context.Context, n int64) (Offset, error)
	// Extent returns the bytes in measure m of the visible records with from <= offset < to; in batches, of all batches that hold such an offset.
	// It may have to read that part of the log.
	Extent(ctx context.Context, m *Measure, from, to Offset) (int64, error)
	// ExtentNow is Extent as far as it is known without reading the log. exact is false where it is more than n.
	ExtentNow(m *Measure, from, to Offset) (n int64, exact bool)
	// Locate finds the record (in batches: the batch) that holds byte p counted in m from offset anchor, and says which byte of it that is. p may be
	// negative: it then lies before anchor. Its result is End with skip = 0 at or behind the end, and ErrOffsetGone before Start's segment.
	Locate(ctx context.Context, m *Measure, anchor Offset, p int64) (o Offset, skip int64, err error)
	// Records returns a cursor that stands before the first visible record at or after o.
	Records(o Offset) Cursor
}

// Cursor walks forward over a log. It is for one goroutine at a time. While it stands in a segment it keeps that segment readable, and no other.
type Cursor interface {
	// Next returns the next visible record below the snapshot's end, or io.EOF, after which it may be called again once Advance gave it a newer
	// snapshot. It allocates nothing per record. A batch that cannot be read is one error at its place (ErrCorrupt, ErrUnsupported); the next call
	// goes on behind it.
	Next(ctx context.Context) (*Record, error)
	// NextBatch returns the next whole batch, verbatim, control and aborted ones included. A cursor is used with either Next or NextBatch.
	NextBatch(ctx context.Context) ([]byte, error)
	// Offset is where the cursor stands: everything below it has been returned.
	Offset() Offset
	// Advance replaces the snapshot by a newer one of the same log.
	Advance(s Snapshot)
	// Close lets go of the segment.
	Close()
}
