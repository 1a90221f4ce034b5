package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
)

// completer completes an argument or the value of a flag.
type completer = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// directories completes to directories.
func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// topicsOf completes DATA to a directory, and what follows it to at most n of its topics; n < 0 is no bound.
func topicsOf(n int) completer {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return directories(c, args, typed)
		}
		if n >= 0 && len(args) > n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		// What keeps DATA from being read is told by the verb itself, when it is called.
		_ = openFor(c.Context(), args[0], true, nil, func(e storage.Engine) error {
			infos, err := e.Topics(c.Context())
			for _, t := range infos {
				if strings.HasPrefix(t.Name, typed) && !slices.Contains(args[1:], t.Name) {
					names = append(names, t.Name)
				}
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// oneOf completes to one of some words.
func oneOf(words ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// mountOption completes the last of the options of a list with commas.
func mountOption(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []string
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, o := range mountOptionForms {
		words := []string{o}
		if name, values, ok := strings.Cut(o, "="); ok {
			words = nil
			for v := range strings.SplitSeq(values, "|") {
				if v == strings.ToUpper(v) { // stands for a value
					v = ""
				}
				words = append(words, name+"="+v)
			}
		}
		for _, w := range words {
			if w = before + w; strings.HasPrefix(w, typed) {
				out = append(out, w)
			}
		}
	}
	if len(out) == 1 && strings.HasSuffix(out[0], "=") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return out, directive
}

// completeFlag has a flag completed. That the flag is there is known.
func completeFlag(c *cobra.Command, flag string, f completer) {
	_ = c.RegisterFlagCompletionFunc(flag, f)
}
