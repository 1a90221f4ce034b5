// Package repair puts a damaged log directory right, and rebuilds the indexes beside logs.
//
// Repair works in rounds: package inspect verifies, Look reads what a decision needs beyond that, Plan (pure) decides, and the actions are done one after
// the other, until a round finds nothing to do. Index rebuilds or compares indexes alone.
//
// Invariants:
//
//	I1  No byte of a log is deleted. What is taken out of a log is on stable storage in a file of its own, and in the journal, before the log changes.
//	I2  A record that could be read before can be read afterwards at the same offset.
//	I3  After every call to the disk the directory is one that a further run repairs to the same end; a run that finds nothing to do changes nothing.
//	I4  The marker of a clean shutdown is taken away before the first change and put back, the same bytes, after the last. It is never made.
//	I5  While a log and its indexes may disagree, .index is missing: every reader, a broker too, then rebuilds all of the segment's.
//
// A crash may leave <name>.tmp, which is ignored and overwritten, <base>.log.moving, which the next run puts into place, and a directory without the marker.
package repair
