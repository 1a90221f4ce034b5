package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/repair"
	"github.com/logmount/logmount/storage/vfs"
)

func newRepairCmd() *cobra.Command {
	var apply, asJSON bool
	var opt repair.Options
	c := &cobra.Command{
		Use:   "repair DATA [TOPIC[-PARTITION]...]",
		Short: "Put a damaged log directory right",
		Long: `Put a damaged log directory right, so that every record that can still be read is read at its
offset, and neither a mount nor a broker stumbles over the rest. Without --apply it says what
it would do and changes nothing, and may be used while DATA is mounted or a broker runs on it;
of what they are writing meanwhile it may then say what is no longer so. With --apply DATA must
not be mounted and no broker may run on it.

It takes damaged bytes out of logs, renames logs that lie under a wrong base offset, sets
aside logs that are there twice and snapshots that cannot be read, rebuilds indexes, and
corrects checkpoints and leader epochs. A log that was not closed in order is recovered as
a broker would recover it. What it cannot put right it reports: names that stop a broker, a
catalogue that cannot be read, batches that only this version cannot decode.

No byte of a log is deleted. Each damaged stretch is kept beside its log as
  TOPIC-PARTITION/BASE.log.POSITION.quarantine
and files set aside end in .torn; no broker reads either. DATA/` + repair.JournalFile + `
has a JSON object for each change, written before it: time, step, of, action, path, pos,
length, sha256, what, why, kept (the file that holds the bytes now; empty of zeros at the end
of a log), old and new. To undo, unmount and go from the last step back. The lines of one
step, of which there are "of", are one change, and name positions as they were before it: put
its stretches back in ascending order of pos,
  head -c POS LOG > new; cat KEPT >> new; tail -c +$((POS+1)) LOG >> new; mv new LOG
and remove the segment's .index. A file that was moved or set aside: mv KEPT PATH.

A repair that is cut short, by ^C or a power failure, is finished by running it again. The
marker of a clean shutdown is taken away for as long as it lasts. One that was cut short
leaves it away: the next start then recovers, which takes longer and does no harm.

With --json each action is one JSON object on a line, with the fields data (the directory), action,
path (below it), offset, why, and where it has them to, cuts and what; the last line of a
directory has the fields data, applied and summary, an object with the fields rounds (how often
it was verified), actions (how many), left (findings of damage that nothing is done about) and
marker (why the marker of a clean shutdown is not put back; not there where it is).

Exit status: 0 all is well, 1 there is something to do, or something is left, 2 it could not
be done. DATA may be a list with commas, like a broker's log.dirs.`,
		Example: `  logmount repair /srv/log
  logmount repair /srv/log orders payments-3 --apply
  logmount repair /srv/log --json | jq -r 'select(.action=="cut") | .path'`,
		Args:              atLeastOne("log directory", "repair DATA [TOPIC[-PARTITION]...] [--apply]"),
		ValidArgsFunction: topicsOf(-1),
		RunE: func(c *cobra.Command, args []string) error {
			dirs, err := dirsThere(args[0])
			if err != nil {
				return err
			}
			opt.Apply = apply
			return runRepairs(c, dirs, listOf(args[0]), args[1:], opt, repairOutput{lineOutput: lineOutput{w: c.OutOrStdout()}, json: asJSON, apply: apply})
		},
	}
	c.Flags().BoolVar(&apply, "apply", false, "do it")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object per action, and one with the summary at the end")
	indexSettingVars(c.Flags(), &opt.Interval, &opt.MaxIndex,
		"index.interval.bytes of topics that are not ours (default what their indexes were made with)", "segment.index.bytes of topics that are not ours (default 10485760)")
	jobsVar(c.Flags(), &opt.Jobs, "segments that are verified at once")
	return c
}

// refuseMounted makes sure that a directory is not mounted, read-only mounts included: they hold no lock.
func refuseMounted(data string) error {
	if at := mountsOf(data); len(at) > 0 {
		return fmt.Errorf("%s is mounted at %s; unmount it first: logmount umount %s", data, strings.Join(at, " and "), at[0])
	}
	return nil
}

// runRepairs repairs one log directory after the other. Damage in one does not keep the others from being repaired; that something cannot be done does.
func runRepairs(c *cobra.Command, dirs, spelt, names []string, opt repair.Options, out repairOutput) error {
	var damaged error
	for i, sel := range shareOut(dirs, names) {
		if len(names) > 0 && len(sel) == 0 {
			continue // what was asked for lies in another one
		}
		o, one := opt, out
		o.Select, one.data, one.at = sel, spelt[i], dirs[i]
		err := runRepair(c, dirs[i], o, &one)
		if e, ok := errors.AsType[*exitError](err); ok && e.code == exitDamage {
			damaged = err
			continue
		}
		if err != nil {
			return err
		}
	}
	return damaged
}

func runRepair(c *cobra.Command, data string, opt repair.Options, out *repairOutput) error {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if opt.Apply {
		if err := refuseMounted(data); err != nil {
			return err
		}
	}
	bar := newProgress(c.ErrOrStderr(), "verifying")
	if bar != nil {
		opt.Progress = bar.set
		out.before = bar.clear
	}
	opt.Config, opt.Now, opt.Emit = local.ParseConfig, time.Now, out.action
	res, err := repair.Repair(ctx, vfs.OS(), data, opt)
	bar.finish()
	switch {
	case errors.Is(err, storage.ErrLocked):
		return lockedError(data, nil, err)
	case err != nil:
		if res.Actions > 0 && opt.Apply {
			return fmt.Errorf("%w; what was done is in %s, the next run goes on", err, filepath.Join(data, repair.JournalFile))
		}
		return err
	}
	out.summary(res)
	switch {
	case out.err != nil:
		return out.err
	case res.Left > 0 || !opt.Apply && res.Actions > 0:
		return &exitError{code: exitDamage}
	}
	return nil
}

// repairOutput prints actions as they come.
type repairOutput struct {
	lineOutput
	data  string // as the caller spelt it
	at    string // absolute, for programs
	json  bool
	apply bool
}

func (o *repairOutput) action(a repair.Action) {
	if o.json {
		o.line(struct {
			Data string `json:"data"`
			repair.Action
		}{o.at, a})
		return
	}
	o.print(oneLine(a.String()))
}

func (o *repairOutput) summary(r repair.Result) {
	if o.json {
		o.line(struct {
			Data    string        `json:"data"`
			Summary repair.Result `json:"summary"`
			Applied bool          `json:"applied"`
		}{o.at, r, o.apply})
		return
	}
	if r.Marker != "" {
		o.print("the marker of a clean shutdown is not put back: " + oneLine(r.Marker))
	}
	text := fmt.Sprintf("%s: nothing to do", o.data)
	switch {
	case r.Actions > 0 && o.apply:
		text = fmt.Sprintf("%s: %d actions done, see %s", o.data, r.Actions, repair.JournalFile)
	case r.Actions > 0:
		text = fmt.Sprintf("%s: %d actions to do, and what then follows from them; --apply does them", o.data, r.Actions)
	}
	if r.Left > 0 {
		text += fmt.Sprintf("; %d findings of damage are left", r.Left)
	}
	o.print(text)
}
