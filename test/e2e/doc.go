// Package e2e runs the built program as a user does: each file of testdata/script is a scenario of shell commands on real mounts.
//
// The scenarios are in the form of testscript. Besides its commands they have:
//
//	refused STATUS PATTERN CMD...  the command ends with STATUS and says one line on stderr, which matches PATTERN
//	until PATTERN CMD...           runs the command again and again until its stdout matches PATTERN
//	daemon VAR MNT                 sets VAR to the process id of the daemon of a mount
//	signal NAME PID                sends a signal
//	ended PID                      waits until the process is gone
//	reads COMM MNT                 waits until a process of that name has a file of the mount open
//	detached MNT                   the directory is not a mountpoint
//
// The condition [root] holds for root.
package e2e
