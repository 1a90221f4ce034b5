// Package storage is the vocabulary and the contract of a partitioned, segmented log.
//
// It holds the words that every other package uses (Offset, Pos, Record, Measure), the three interfaces that an engine implements (Engine, Partition,
// Snapshot) with its Cursor, and the sentinel errors. It imports the standard library only and does no I/O.
//
// Invariants:
//
//	I1  Offsets of a partition only grow; an offset once given to a record is never given to another.
//	I2  A Snapshot is immutable: its bounds never change, and what it says about a record stays true.
//	I3  What a Snapshot shows was completely written before the Snapshot was published.
//	I4  No reader asks whether a log is ours, a broker's or a cluster's: Snapshot is all that readers know.
//	I5  Slices inside a Record that a Cursor returns belong to the Cursor and are valid until its next call.
package storage
