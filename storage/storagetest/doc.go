// Package storagetest holds what proves an engine right: Memory, a reference model of storage.Engine that keeps records in slices and finds everything by
// walking over them, and Run, the conformance suite that every engine must pass, the model included.
//
// Memory is also the engine that tests of other packages stand on: it can be told to fail, to wait, to be read-only and to hold gaps and damage.
//
// Invariants:
//
//	I1  The model shares no code with the engines that it judges: its batches come from an encoder of its own (only AppendBatches decodes by package record).
//	I2  What a cursor of the model returned is overwritten by its next call, so that a user who keeps a slice is found out.
package storagetest
