package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
)

func newTopicsImportCmd() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "import DATA TOPIC...",
		Short: "Make topics of a copied log directory logmount's own",
		Long: `Make topics of a log directory that is a copy, a rescue for instance, logmount's own: they can then be written as any topic that logmount made.
The logs must be whole; where one is damaged nothing changes. A broker's log directory is refused: copy its partitions elsewhere first.`,
		Example:           "  cp -a /var/lib/kafka/orders-* /srv/log/ && logmount topics import /srv/log orders",
		Args:              between(1, 1<<20, "topics import DATA TOPIC... | topics import DATA --all"),
		ValidArgsFunction: topicsOf(-1),
		RunE: func(c *cobra.Command, args []string) error {
			names := args[1:]
			switch {
			case all && len(names) > 0:
				return errors.New("--all and names of topics exclude each other")
			case !all && len(names) == 0:
				return errors.New("no topic is named; --all imports all")
			}
			if err := notTwice("topic", names); err != nil {
				return err
			}
			data, err := dataPath(args[0])
			if err != nil {
				return err
			}
			if err := isThere(data); err != nil {
				return err
			}
			o := engineOptions(false, slog.New(slog.DiscardHandler))
			o.Dir = data
			done, err := local.Import(c.Context(), o, names...)
			if errors.Is(err, storage.ErrLocked) {
				return lockedError(data, func(mnt string) string { return "logmount umount " + mnt + ", then this command again" }, err)
			}
			if err != nil {
				return err
			}
			for _, name := range done {
				if _, err := fmt.Fprintln(c.OutOrStdout(), name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "import all topics but the internal ones of brokers")
	return c
}
