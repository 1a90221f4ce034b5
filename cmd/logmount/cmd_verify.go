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

	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/vfs"
)

func newVerifyCmd() *cobra.Command {
	var asJSON, adopt, quiet bool
	var jobs int
	c := &cobra.Command{
		Use:   "verify DATA [TOPIC[-PARTITION]...]",
		Short: "Check every batch, index and checkpoint of a log directory",
		Long: `Check all that can be told of a log directory without a second copy of it: every batch
and record, the files beside the logs against them, checkpoints, leader epochs, producer
snapshots and names. It writes nothing and needs no lock; a directory that is in use is
checked as it is while it is read.

A finding is damage, or a notice: something that does no harm, or that the next start puts
right, such as the torn end of a log that was not closed in order. With --json each finding
is one JSON object on a line, with the fields data (the directory), path (below it), pos, end
(the damaged bytes are pos up to end), offset, next (the offset at which the log goes on),
what, severity, detail and repair. The last line of a directory has the fields data, complete
(nothing was left out that could not be read) and summary, an object with the fields
partitions, segments, batches, records, bytes (of the logs), damage and notices (how many
findings), and clean_shutdown (the marker of a clean shutdown is there; it says nothing of
damage). DATA may be a list with commas, like a broker's log.dirs.

It is for a directory that one is not sure of: after a crash, on a disk that had errors, of a
copy or backup before it is needed, before an upgrade. What it finds, logmount repair puts
right where that is possible.

--adopt also finds what would hurt a broker that is given the directory. It is for moving
topics of ours, or rescued ones, to another cluster: ids of producers, leader epochs and names
that mean something else there.

Exit status: 0 nothing but notices, 1 damage, 2 something could not be checked.`,
		Example: `  logmount verify /srv/log
  logmount verify /srv/log orders payments-3 --json | jq -r 'select(.severity=="damage") | .path'
  logmount verify /var/lib/kafka/data orders --adopt`,
		Args:              atLeastOne("log directory", "verify DATA [TOPIC[-PARTITION]...]"),
		ValidArgsFunction: topicsOf(-1),
		RunE: func(c *cobra.Command, args []string) error {
			dirs, err := dirsThere(args[0])
			if err != nil {
				return err
			}
			opt := inspect.VerifyOptions{Select: args[1:], Adopt: adopt, Jobs: jobs, Config: local.CheckConfig}
			out := verifyOutput{lineOutput: lineOutput{w: c.OutOrStdout()}, json: asJSON, quiet: quiet}
			return runVerify(c, dirs, opt, &out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object per finding, and one with the summary at the end")
	c.Flags().BoolVar(&adopt, "adopt", false, "also find what would hurt a broker that is given the logs, before they are moved to another cluster")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print no notices")
	jobsVar(c.Flags(), &jobs, "segments that are read at once")
	return c
}

// runVerify verifies one log directory after the other.
func runVerify(c *cobra.Command, dirs []string, opt inspect.VerifyOptions, out *verifyOutput) error {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	damage := 0
	var failed error
	for i, sel := range shareOut(dirs, opt.Select) {
		if len(opt.Select) > 0 && len(sel) == 0 {
			continue // what was asked for lies in another one
		}
		o := opt
		o.Select = sel
		sum, err := verifyOne(ctx, c, dirs[i], o, out)
		damage += sum.Damage
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	switch {
	case failed != nil:
		return failed
	case out.err != nil:
		return out.err
	case damage > 0:
		return &exitError{code: exitDamage}
	}
	return nil
}

func verifyOne(ctx context.Context, c *cobra.Command, dir string, opt inspect.VerifyOptions, out *verifyOutput) (inspect.Summary, error) {
	out.data, out.before = dir, nil
	bar := newProgress(c.ErrOrStderr(), "verifying")
	if bar != nil {
		opt.Progress = bar.set
		out.before = bar.clear
	}
	sum, err := inspect.Verify(ctx, vfs.OS(), dir, opt, out.finding)
	bar.finish()
	if err == nil || sum.Partitions > 0 {
		out.summary(sum, err)
	}
	return sum, err
}

// verifyOutput prints findings as they come.
type verifyOutput struct {
	lineOutput
	data  string // the directory
	json  bool
	quiet bool
}

func (o *verifyOutput) finding(f inspect.Finding) {
	if o.quiet && f.Severity == inspect.Notice {
		return
	}
	if o.json {
		o.line(struct {
			Data string `json:"data"`
			inspect.Finding
		}{o.data, f})
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", f.Severity, f.What, filepath.Join(o.data, f.Path))
	switch {
	case f.End > 0:
		fmt.Fprintf(&b, " bytes %d to %d", f.Pos, f.End)
	case f.Pos > 0:
		fmt.Fprintf(&b, " byte %d", f.Pos)
	}
	if f.Offset >= 0 {
		fmt.Fprintf(&b, " offset %d", f.Offset)
	}
	fmt.Fprintf(&b, ": %s", oneLine(f.Detail))
	if f.Next >= 0 && f.End > 0 {
		fmt.Fprintf(&b, "; the log goes on at offset %d", f.Next)
	}
	if f.Repair != "" {
		fmt.Fprintf(&b, " (%s)", oneLine(f.Repair))
	}
	o.print(b.String())
}

// summary prints what everything adds up to. err is what kept something from being verified.
func (o *verifyOutput) summary(s inspect.Summary, err error) {
	if o.json {
		o.line(struct {
			Data     string          `json:"data"`
			Summary  inspect.Summary `json:"summary"`
			Complete bool            `json:"complete"`
		}{o.data, s, err == nil})
		return
	}
	verdict := "no damage"
	if s.Damage > 0 {
		verdict = fmt.Sprintf("%d findings of damage", s.Damage)
	}
	if err != nil {
		verdict += ", not complete"
	}
	o.print(fmt.Sprintf("%s: %d partitions, %d segments, %d batches, %d records, %d bytes: %s, %d notices",
		o.data, s.Partitions, s.Segments, s.Batches, s.Records, s.Bytes, verdict, s.Notices))
	if s.Damage > 0 {
		o.print("logmount repair " + o.data + " shows what can be put right")
	}
}
