// Package index holds the codecs of the small files beside a segment's log: offset index, time index, transaction index and size index.
//
// Bytes in, bytes out; lookups read through an io.ReaderAt. Opening, growing and trimming the files, and deciding what to do with a wrong one, is left to
// the segment.
//
// Invariants:
//
//	I1  An entry of the offset index holds the last offset of a batch and the position at which that batch starts.
//	I2  A lookup never answers with an entry above what was asked for, so a scan that starts there meets what was asked for. It holds for a checked
//	    index; in a garbled one a lookup ends with some entry or an error.
//	I3  A Builder fed with all batches of a segment gives the entries that any rebuild of the segment gives.
//	I4  The size index can be dropped and made again from the log at any time.
//
// All numbers in the files are big-endian. Everything here but the builders may be used by many goroutines at once.
package index
