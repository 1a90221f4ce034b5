package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/repair"
	"github.com/logmount/logmount/storage/vfs"
)

func newIndexCmd() *cobra.Command {
	var asJSON bool
	var opt repair.IndexOptions
	c := &cobra.Command{
		Use:   "index DATA|PARTITION-DIR...",
		Short: "Rebuild the indexes beside logs, or compare them",
		Long: `Rebuild the files that are derived from logs: .index, .timeindex, .txnindex, and beside logs
of ours .sizeindex. They become what a broker's recovery makes of the same log, byte for byte.
Files that are so already are not written. DATA must not be mounted and no broker may run on
it; --check only reads, and may be used on a directory that is in use. Several directories may
be given, also as a list with commas, like a broker's log.dirs.

The distance between entries is index.interval.bytes. Of a topic of ours it is the topic's
own; of others it is found out from the index that is there, if that was made by the rule
that brokers since 3.9.1 and 4.0.1 follow, and else Kafka's default. An interval that was
found out and is not the default is named in the output.

With --check, a file that is missing or other than a rebuild would make it is a difference.
A broker's directory that is in order may have some, and the exit status is then 1: older
brokers made indexes by another rule; a restart in the middle of a segment leaves a .timeindex
with other entries; the .txnindex of a compacted segment keeps entries of transactions whose
records are gone. Such files serve as well: logmount verify says whether an index misleads.

With --json each segment is one JSON object on a line, with the fields data (the log directory),
log (below it), base, batches, interval and found (whether it was found out), differ (the files),
written and damaged.

Exit status: 0 all is well, 1 there were differences (with --check) or damaged logs, 2 it
could not be done.`,
		Example: `  logmount index /srv/log
  logmount index --check /var/lib/kafka/data
  logmount index --index-interval-bytes 200 /rescue/orders-0`,
		Args:              atLeastOne("directory", "index DATA|PARTITION-DIR... [--check]"),
		ValidArgsFunction: directories,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			out := &indexOutput{repairOutput: repairOutput{lineOutput: lineOutput{w: c.OutOrStdout()}, json: asJSON}, check: opt.Check}
			opt.Config = local.ParseConfig
			for _, arg := range eachOf(args) {
				if err := runIndex(ctx, arg, opt, out); err != nil {
					return err
				}
			}
			return out.end()
		},
	}
	c.Flags().BoolVar(&opt.Check, "check", false, "compare, and write nothing")
	c.Flags().BoolVar(&opt.Sizes, "sizes", false, "size indexes alone, which only logs of ours have")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object per segment")
	indexSettingVars(c.Flags(), &opt.Interval, &opt.MaxIndex, "index.interval.bytes, instead of the topic's or what is found out", "segment.index.bytes, instead of the topic's or 10485760")
	return c
}

func runIndex(ctx context.Context, arg string, opt repair.IndexOptions, out *indexOutput) error {
	dir, err := dataPath(arg)
	if err != nil {
		return err
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is not there; give a log directory, or the directory of a partition", arg)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is a file; index takes a log directory, or the directory of a partition: logmount index %s", arg, filepath.Dir(arg))
	}
	data, partition, lock, err := repair.Locate(vfs.OS(), dir)
	if err != nil {
		return err
	}
	opt.Select, opt.NoLock = partition, !lock
	out.data, out.at = arg, data
	if partition != nil {
		out.data = filepath.Dir(filepath.Clean(arg))
	}
	if !opt.Check {
		if err := refuseMounted(data); err != nil {
			return err
		}
	}
	err = repair.Index(ctx, vfs.OS(), data, opt, out.segment)
	if errors.Is(err, storage.ErrLocked) {
		return lockedError(data, nil, err)
	}
	return err
}

// indexOutput prints what was done to each segment.
type indexOutput struct {
	repairOutput
	check                     bool
	segments, differ, damaged int
}

func (o *indexOutput) segment(r repair.IndexResult) {
	o.segments++
	if len(r.Differ) > 0 {
		o.differ++
	}
	if r.Damaged != "" {
		o.damaged++
	}
	if o.json {
		o.line(struct {
			Data string `json:"data"`
			repair.IndexResult
		}{o.at, r})
		return
	}
	name := filepath.Join(o.data, r.Log)
	if r.Found {
		o.print(fmt.Sprintf("%s: the indexes were made with an index.interval.bytes of %d, or one that gives the same", name, r.Interval))
	}
	if r.Damaged != "" {
		o.print(fmt.Sprintf("%s: damaged: %s (logmount repair)", name, oneLine(r.Damaged)))
	}
	switch {
	case r.Written:
		o.print(fmt.Sprintf("%s: written %s", name, strings.Join(r.Differ, ", ")))
	case len(r.Differ) > 0:
		o.print(fmt.Sprintf("%s: differs %s", name, strings.Join(r.Differ, ", ")))
	}
}

func (o *indexOutput) end() error {
	if !o.json {
		verb := "written"
		if o.check {
			verb = "different"
		}
		o.print(fmt.Sprintf("%d segments, %d %s, %d damaged", o.segments, o.differ, verb, o.damaged))
	}
	switch {
	case o.err != nil:
		return o.err
	case o.damaged > 0 || o.check && o.differ > 0:
		return &exitError{code: exitDamage}
	}
	return nil
}
