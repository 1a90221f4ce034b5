// Package partition is one log: its segments in order, the writer that appends to it and the snapshots that readers work on.
//
// Log implements storage.Partition. One writer at a time appends under Log.mu: it encodes into a reused buffer, writes the log bytes, then the index
// entries, then publishes a new snapshot through an atomic pointer and wakes the watchers. Readers load that pointer and never wait for the writer. A
// sync runs beside appends: callers that come while one is under way share the next.
//
// Rolling only closes a segment. It is sealed later, by Maintain, once its bytes are on stable storage; its size index is written then.
//
// Invariants:
//
//	I1  Bytes are in the files before the snapshot that shows them is published.
//	I2  Segments of a snapshot are in ascending order without overlap; the last one is the active one.
//	I3  An append that fails leaves files and snapshot as they were; where that cannot be had the log is poisoned.
//	I4  The recovery point is never above what is on stable storage, and stays where it was once a sync has failed.
//	I5  What a crash leaves behind the recovery point is kept up to the first bad batch; what lies behind that is moved aside, never deleted.
//
// Locks: Log.mu (append, roll, publish) may be taken while Log.startMu (changes of the start) is held; the syncer's lock
// is a leaf below it. Neither is held while a watcher or the engine is told.
package partition
