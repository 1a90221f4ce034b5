// Package local is the engine on disk: a Kafka log directory, its topics, and the logs in it.
//
// It decides whose directory it is, holds its lock, keeps the catalogue of topics (.logmount-topics.json), the checkpoints and the marker of a clean
// shutdown, opens logs when they are first asked for, and runs the background work. What is inside a partition's directory is left to package partition.
//
// Invariants:
//
//	I1  An engine that is not writable writes nothing into the directory.
//	I2  A writable engine holds .lock from before its first write until after its last.
//	I3  The marker of a clean shutdown is not there while a writable engine is open. It is put back only after everything is on stable storage.
//	I4  A topic is made by the catalogue first and its directories then, and deleted by the catalogue first and its directories then: what a crash leaves
//	    unfinished is finished at the next open.
//	I5  The checkpointed log start is durable before a file below it is removed.
//	I6  Topics that the catalogue does not name are never changed.
//
// Locks, outermost first: Engine.change, Engine.look, the locks of a partition.Log, checkpoints.mu, Engine.mu, part.mu, maintenance.mu. Engine.change,
// Engine.look and checkpoints.mu are held during file operations, the others are not.
package local
