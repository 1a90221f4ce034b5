// Command bench measures the program against floors that are measured in the same run, and prints ratios.
//
// The floor of something is what it costs to cross the kernel to an empty FUSE handler, plus the same work on a plain file of the same disk. Product and
// floors take turns; what counts are the medians. Absolute numbers belong to a machine and an hour: only the ratios are compared with limits.
//
// The program starts itself again, with a role as its first argument, for the parts that need a process of their own: the empty file system, a loopback
// file system, and the loops that write, open and follow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// options are what the command line says.
type options struct {
	logmount string
	dir      string
	scale    float64
	rounds   int
	json     string
	check    bool
	only     string
}

func main() {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			exit(role(os.Args[2:]))
		}
	}
	var o options
	flag.StringVar(&o.logmount, "logmount", "", "the `program` to measure (required)")
	flag.StringVar(&o.dir, "dir", "/var/tmp", "a `directory` on a real disk; the run works in a new directory below it")
	flag.Float64Var(&o.scale, "scale", 1, "how much of the full amount of work is done")
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	flag.StringVar(&o.json, "json", "", "write all samples to this `file`")
	flag.BoolVar(&o.check, "check", false, "exit 1 where a limit is missed")
	flag.StringVar(&o.only, "only", "", "measure the cases whose names contain this `text`")
	flag.Parse()
	if o.logmount == "" || flag.NArg() > 0 || o.scale <= 0 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	runtime.LockOSThread() // the servers end with the thread that started them
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ok, err := run(ctx, o)
	if err == nil && o.check && !ok {
		err = errors.New("a limit is missed")
	}
	exit(err)
}

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// run measures everything. It reports whether all limits hold.
func run(ctx context.Context, o options) (bool, error) {
	b, err := newBench(ctx, o)
	if err != nil {
		return false, err
	}
	defer b.close()
	r, err := b.measureAll()
	if err != nil {
		return false, err
	}
	r.print(os.Stdout)
	if o.json != "" {
		if err := r.write(o.json); err != nil {
			return false, err
		}
	}
	return r.ok(), nil
}
