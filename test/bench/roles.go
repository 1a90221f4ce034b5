package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// roles are what a child process of the run does.
var roles = map[string]func(args []string) error{
	"@empty":    serveEmpty,
	"@loopback": serveLoopback,
	"@lines":    writeLines,
	"@opens":    openMany,
	"@latency":  latency,
}

// fuseOptions are those of the product's mount.
func fuseOptions(name string) *fuse.MountOptions {
	return &fuse.MountOptions{
		FsName:             name,
		Name:               "logmount-bench",
		MaxWrite:           maxRequest,
		MaxBackground:      64,
		DisableReadDirPlus: true,
		DisableXAttrs:      true,
		EnableLocks:        true,
		DisableSplice:      true,
		ExtraCapabilities:  fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DIRECT_IO_ALLOW_MMAP,
		DirectMount:        os.Geteuid() == 0,
		Options:            []string{"default_permissions"},
	}
}

// serveEmpty SIZE MNT serves the empty file system until it is told to stop.
func serveEmpty(args []string) error {
	size, err := strconv.ParseUint(args[0], 10, 63)
	if err != nil {
		return err
	}
	s, err := fuse.NewServer(newEmptyFS(size), args[1], fuseOptions("empty"))
	if err != nil {
		return err
	}
	return serve(s)
}

// serveLoopback DIR MNT serves a directory through go-fuse's loopback.
func serveLoopback(args []string) error {
	root, err := fusefs.NewLoopbackRoot(args[0])
	if err != nil {
		return err
	}
	keep := time.Second
	s, err := fuse.NewServer(fusefs.NewNodeFS(root, &fusefs.Options{AttrTimeout: &keep, EntryTimeout: &keep}), args[1], fuseOptions("loopback"))
	if err != nil {
		return err
	}
	return serve(s)
}

func serve(s *fuse.Server) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	err := s.Unmount()
	<-done
	return err
}

// writeLines FILE N SIZE SYNC writes N lines of SIZE bytes, one write(2) each and an fsync(2) after each where SYNC is 1, and prints the nanoseconds.
func writeLines(args []string) error {
	n, size := number(args[1]), number(args[2])
	debug.SetGCPercent(-1)
	line := make([]byte, size)
	for i := range line {
		line[i] = 'a' + byte(i%26)
	}
	line[size-1] = '\n'
	fd, err := syscall.Open(args[0], syscall.O_WRONLY|syscall.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", args[0], err)
	}
	start := time.Now()
	for range n {
		if m, err := syscall.Write(fd, line); err != nil || m != size {
			return fmt.Errorf("write %s: %d bytes: %w", args[0], m, err)
		}
		if args[3] == "1" {
			if err := syscall.Fsync(fd); err != nil {
				return fmt.Errorf("fsync %s: %w", args[0], err)
			}
		}
	}
	took := time.Since(start)
	fmt.Println(took.Nanoseconds())
	return syscall.Close(fd)
}

// openMany DIR PREFIX FROM TO N SEED opens, reads and closes N different files PREFIX<number> with FROM <= number < TO, in random order, and prints the
// nanoseconds.
func openMany(args []string) error {
	from, to, n, seed := number(args[2]), number(args[3]), number(args[4]), number(args[5])
	debug.SetGCPercent(-1)
	names := make([]string, 0, n)
	seen := make(map[int]bool, n)
	for r := rand.New(rand.NewPCG(uint64(seed), 1)); len(names) < n; {
		if i := from + r.IntN(to-from); !seen[i] {
			seen[i] = true
			names = append(names, args[0]+"/"+args[1]+strconv.Itoa(i))
		}
	}
	buf := make([]byte, 64<<10)
	start := time.Now()
	for _, name := range names {
		fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		if m, err := syscall.Read(fd, buf); err != nil || m == 0 {
			return fmt.Errorf("read %s: %d bytes: %w", name, m, err)
		}
		if err := syscall.Close(fd); err != nil {
			return fmt.Errorf("close %s: %w", name, err)
		}
	}
	fmt.Println(time.Since(start).Nanoseconds())
	return nil
}

// latency FOLLOW TAIL N writes N lines to TAIL, each when a reader of FOLLOW waits for it, and prints the median of the nanoseconds from the write(2) to the
// reader's having the line.
func latency(args []string) error {
	n := number(args[2])
	debug.SetGCPercent(-1)
	in, err := syscall.Open(args[0], syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", args[0], err)
	}
	if err := syscall.SetNonblock(in, false); err != nil {
		return err
	}
	out, err := syscall.Open(args[1], syscall.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", args[1], err)
	}
	got := make(chan time.Time)
	failed := make(chan error, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			m, err := syscall.Read(in, buf)
			at := time.Now()
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || m == 0 {
				failed <- fmt.Errorf("read %s: %d bytes: %w", args[0], m, err)
				return
			}
			got <- at
		}
	}()
	line := make([]byte, shortBytes)
	line[shortBytes-1] = '\n'
	took := make([]int64, 0, n)
	for range n {
		time.Sleep(2 * time.Millisecond) // the reader is in read(2) by then
		start := time.Now()
		if _, err := syscall.Write(out, line); err != nil {
			return fmt.Errorf("write %s: %w", args[1], err)
		}
		select {
		case at := <-got:
			took = append(took, at.Sub(start).Nanoseconds())
		case err := <-failed:
			return err
		case <-time.After(5 * time.Second):
			return errors.New("a line never came")
		}
	}
	slices.Sort(took)
	fmt.Println(took[len(took)/2])
	return nil
}

// number reads an argument that this program wrote.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}
