package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/fs"
)

func newUmountCmd() *cobra.Command {
	var lazy bool
	c := &cobra.Command{
		Use:     "umount MNT",
		Aliases: []string{"unmount"},
		Short:   "Unmount MNT and wait until everything written to it is on stable storage",
		Long: `Unmount MNT, and return when its daemon has put everything on stable storage and has let go of
the log directory. A mount that somebody is using is not unmounted: the error says who. --lazy
takes it out of the tree all the same; those who have files of it open keep them.`,
		Args:              exactly(1, "umount MNT [--lazy]"),
		ValidArgsFunction: directories,
		RunE: func(c *cobra.Command, args []string) error {
			mnt, err := filepath.Abs(args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if err := os.Chdir("/"); err != nil { // called from within the mount, this process would be in its own way
				return fmt.Errorf("cannot leave the working directory: %w", err)
			}
			return fs.Unmount(c.Context(), mnt, lazy)
		},
	}
	c.Flags().BoolVarP(&lazy, "lazy", "l", false, "detach a busy mount")
	return c
}
