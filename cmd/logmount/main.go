// Command logmount mounts a directory of Kafka-format logs as a file tree.
//
// This package holds the verbs, one file each, and the life of the daemon: it parses, wires an engine to a mount and turns errors into one line and
// an exit status. What the tree means is package fs, what is on disk packages under storage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit status and touches nothing of the process but the streams handed in, the signals and what the verb is for.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	if args == nil {
		args = []string{} // cobra takes nil for os.Args
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	refuseUnknown(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		e = &exitError{code: exitFailed, err: err}
	}
	if e.err != nil {
		_, _ = fmt.Fprintf(stderr, "logmount: %s\n", oneLine(e.err.Error()))
	}
	return e.code
}

// newRoot builds the command tree. Without a verb, logmount mounts.
func newRoot() *cobra.Command {
	var o mountFlags
	root := &cobra.Command{
		Use:   "logmount DATA MNT",
		Short: "Mount a directory of Kafka-format logs as files",
		Long: `Mount the log directory DATA at the empty directory MNT, so that any program that can
open a file can append to, read, seek in and follow the logs in it:

  mkdir /mnt/orders                    a topic with partition 0
  echo '{"id":1}' > /mnt/orders/0/tail append a record
  cat  /mnt/orders/0/offset/42         read from offset 42 on
  head -1 /mnt/orders/0/time/-1h       the first record of the last hour
  cat  /mnt/orders/0/follow            wait for what comes

The log directories of a broker with several disks are shown as one: DATA is then a list, as
in the broker's log.dirs: /disk1/kafka,/disk2/kafka

Without a verb, logmount mounts. It returns when the mount answers and leaves a daemon behind.
Exit status: 0 fine, 1 damage found, 2 could not do it.`,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionString(),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && c.Flags().NFlag() == 0 {
				return c.Help()
			}
			if err := notAMistypedVerb(c, args); err != nil {
				return err
			}
			return runMount(c, args, &o)
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	o.register(root.Flags())
	o.complete(root)
	root.ValidArgsFunction = directories
	root.AddCommand(newMountCmd(), newUmountCmd(), newTopicsCmd(), newOffsetsCmd(), newDumpCmd(), newVerifyCmd(), newRepairCmd(), newIndexCmd(), newVersionCmd())
	return root
}

// shortestVerb keeps short names of directories from being taken for verbs.
const shortestVerb = 4

// notAMistypedVerb refuses what would otherwise make a directory of a misspelt verb: `logmount umonut /mnt` is a mount of ./umonut by its form.
func notAMistypedVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 || strings.ContainsRune(args[0], os.PathSeparator) || len(args[0]) < shortestVerb {
		return nil
	}
	if _, err := os.Lstat(args[0]); err == nil {
		return nil
	}
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		return fmt.Errorf("no verb %q: did you mean `logmount %s`? (a directory of that name is ./%s)", args[0], like[0], args[0])
	}
	if len(args) == 1 {
		return fmt.Errorf("no verb %q: see `logmount --help`", args[0])
	}
	return nil
}
