package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Whatever is wrong with a flag, of whatever verb, is said in one line of our own words.
func TestFlagsOfAllVerbs(t *testing.T) {
	check := func(args []string, want string) {
		t.Helper()
		code, out, said := runIn(t, args...)
		if code != exitFailed || out != "" || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "logmount: "+want) {
			t.Errorf("%q: got %d, %q, %q, want one line with %q", args, code, out, said, want)
		}
		for _, theirs := range []string{"strconv", "invalid argument", "flag needs", "shorthand", "if any flags", "requires at", "accepts "} {
			if strings.Contains(said, theirs) {
				t.Errorf("%q: got %q", args, said)
			}
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		verb := strings.Fields(c.CommandPath())[1:]
		check(append(verb, "--no-such-flag"), "unknown flag: --no-such-flag; see `"+c.CommandPath()+" --help`")
		check(append(verb, "-Z"), "unknown flag: -Z; see")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := "--" + f.Name
			if f.NoOptDefVal == "" {
				check(append(verb, name), name+" needs a value; see")
			}
			if typ := f.Value.Type(); !strings.HasPrefix(typ, "string") {
				check(append(verb, name+"=?"), name+` "?": it is `)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := newRoot()
	refuseUnknown(root)
	for _, c := range root.Commands() {
		c.InitDefaultHelpFlag()
	}
	walk(root)
}
