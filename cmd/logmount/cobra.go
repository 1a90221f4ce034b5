package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// refuseUnknown makes `logmount completion foo` and `logmount help foo` errors like any other. As they come, the two verbs answer what they do not know with
// a page of help and success. It has to follow SetOut: the verbs keep what the output is then.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, completeUnknown
			for _, shell := range c.Commands() {
				shell.Args = exactly(0, "completion "+shell.Name())
			}
		case "help":
			c.Run, c.RunE = nil, help
		}
	}
}

func completeUnknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var shells []string
	for _, s := range c.Commands() {
		shells = append(shells, s.Name())
	}
	return fmt.Errorf("no completion for %q: there is %s", args[0], strings.Join(shells, ", "))
}

func help(c *cobra.Command, args []string) error {
	verb, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("no verb %q: see `logmount --help`", strings.Join(args, " "))
	}
	verb.InitDefaultHelpFlag()
	return verb.Help()
}
