// Package fs shows an engine as a file tree: it is the only place that knows FUSE and errnos.
//
//	tree.go         Tree: everything but the mount
//	raw*.go         the kernel's requests: inodes, open files, what is refused
//	inodes.go       which inodes the kernel knows; when it should forget a name
//	node_*.go       what there is in the tree
//	handle_*.go     what an open file does
//	view.go         byte positions of a stretch of a log in a format
//	settle.go       close(2) and the unfinished record
//	names.go ...    names to offsets, times, formats
//	errno.go        the one mapping from errors to errnos
//	mount*.go       mounting and unmounting
//
// What the tree does, by kind of file:
//
//	                     read        write      cached by the kernel
//	tail                 the log     appends    no: it grows
//	offset/ time/        a stretch   -          once finished and small
//	record/N             one record  -          yes
//	follow               blocks      -          no
//	segments/            raw bytes   -          once sealed
//	start, end           a number    start      no: fixed at the open
//	TOPIC/tail           -           appends    no
//	.logmount/           text        -          no: fixed at the open
//
// Directories can be made (a topic, the next partition) and removed (an empty topic). Everything else that changes a tree is EPERM.
//
// Invariants:
//
//	I1  The bytes of a view at a position never change, and its size never shrinks, for as long as it is open.
//	I2  What can still grow is never in the kernel's page cache: a reader could get the half-filled last page of before with the size of now.
//	I3  Every lookup of what can grow gives a new inode, so that no fsync holds up a write through another open. st_ino is the same in all of them.
//	I4  A request is taken whole or refused, and a refused one changes neither the log nor the unfinished record (a record too large ends the file).
//	I5  ENOSYS is never answered, as the kernel would stop asking for the life of the mount; but to STATX, where that is what is wanted.
//	I6  No lock of this package but a handle's own (its gate) is held across a call of the engine, a wait or a notification of the kernel.
//
// What may wait is interruptible. Handlers start no goroutines, save that a file read in order has the next bytes prepared (readHandle.readAhead; its
// release waits for that). The kernel is notified by a goroutine of the mount only (Tree.runNotifier).
package fs
