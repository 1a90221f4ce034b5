// Package inspect looks at the files of a log directory one by one: it shows what is in them (Dump) and says what is wrong with them (Verify).
//
// It opens files for reading alone, takes no lock and never stops at damage: what cannot be read is told, with its place, and the next readable thing is
// searched. What the bytes mean is left to packages record, index and state; putting damage right is left to others.
//
// Invariants:
//
//	I1  No bytes of a file make a function of this package panic, or allocate more than a small multiple of what was read, within fixed limits.
//	I2  Every byte of a log is told of once: as part of a batch or of a gap (Walk).
//	I3  Nothing is written to the disk.
package inspect
