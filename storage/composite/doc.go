// Package composite shows several engines as one: the log directories of a broker that has more than one disk.
//
// The partitions of a topic may be spread over the engines. Logs stay with the engine that has them: nothing is made, deleted or moved here.
//
// Invariants:
//
//	I1  A log is served by one engine for as long as that one has it. Where another comes to have it as well (a broker moves a log by making the new
//	    directory before it puts the old one aside), it takes over when the first has it no more.
//	I2  An engine that fails does not keep the logs of the others from being read.
//
// An engine that is alone is passed through unchanged.
package composite
