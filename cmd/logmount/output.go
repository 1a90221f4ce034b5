package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// exactly demands n arguments and otherwise shows the form of the verb.
func exactly(n int, form string) cobra.PositionalArgs { return between(n, n, form) }

// between demands lo to hi arguments and otherwise shows the form of the verb.
func between(lo, hi int, form string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if n := len(args); n < lo || n > hi {
			return fmt.Errorf("%d arguments given; the form is: logmount %s", n, form)
		}
		return nil
	}
}

// atLeastOne demands an argument, and otherwise says what is missing and shows the form of the verb.
func atLeastOne(what, form string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s given; the form is: logmount %s", what, form)
		}
		return nil
	}
}

// printJSON writes v, indented, as one JSON value. Nothing is escaped that JSON does not require.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printTable writes rows under a heading in aligned columns.
func printTable(w io.Writer, heading []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range append([][]string{heading}, rows...) {
		if _, err := fmt.Fprintln(tw, strings.TrimRight(strings.Join(r, "\t"), "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// lineOutput prints line by line. It keeps the first error of its writer; what comes after that is lost.
type lineOutput struct {
	w      io.Writer
	before func() // called before something is printed; may be nil
	err    error
}

// line prints v as JSON on one line. Nothing is escaped that JSON does not require.
func (o *lineOutput) line(v any) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		o.keep(err)
		return
	}
	o.print(strings.TrimSuffix(b.String(), "\n"))
}

func (o *lineOutput) print(s string) {
	if o.before != nil {
		o.before()
	}
	_, err := fmt.Fprintln(o.w, s)
	o.keep(err)
}

func (o *lineOutput) keep(err error) {
	if o.err == nil {
		o.err = err
	}
}
