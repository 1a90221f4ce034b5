// Package kraft reads the metadata log of a KRaft cluster as far as it tells which partitions there are and who holds replicas of them.
//
// Bytes of batches in, state out; reading the files is left to others.
//
// Invariants:
//
//	I1  A record that cannot be understood and may concern topics or partitions is an error, never passed over: an assignment that was missed looks like
//	    one that never was.
//	I2  What a transaction of the controller writes counts once the transaction has ended, and not at all if it was aborted.
//	I3  Nothing is allocated by a number read that the bytes do not bear out.
package kraft
