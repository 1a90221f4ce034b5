// Package segment is one segment of a log: the files that share a base offset.
//
// It reads (Scanner, Reader, the finders), measures (sums per record for byte positions), appends (Appender), recovers and seals. It knows nothing of
// the segments beside it: package partition puts segments in order.
//
// A Segment is an identity: directory, base offset, files. What it holds at one moment is a View: how many bytes of whole batches, which offset comes
// next. A closed segment has one View for good, the active one gets a new View with each append. Views are immutable and shared by all readers.
//
// Invariants:
//
//	I1  A View never ends inside a batch.
//	I2  Index files and size indexes are hints: what they say is checked against the batch that they lead to, and where they are missing or wrong the
//	    log itself is scanned. A reader never trusts a length or an offset that it has not checked.
//	I3  A batch that fails its checksum is one error at its place. The batches behind it stay readable.
package segment
