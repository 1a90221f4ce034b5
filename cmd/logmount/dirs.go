package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/composite"
	"github.com/logmount/logmount/storage/local"
)

// dataPaths returns the log directories that DATA names. That is one, unless it holds commas and there is no file of that name: then it is a list, as in
// a broker's log.dirs.
func dataPaths(arg string) ([]string, error) {
	var list []string
	for _, name := range listOf(arg) {
		p, err := dataPath(name)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// dirsThere returns the log directories that DATA names, which must be there.
func dirsThere(arg string) ([]string, error) {
	dirs, err := dataPaths(arg)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		switch err := isThere(dir); {
		case err != nil && len(dirs) > 1:
			return nil, fmt.Errorf("%s is not there: each of several log directories must be", dir)
		case err != nil:
			return nil, err
		}
	}
	return dirs, nil
}

// isThere makes sure that a log directory is there; whoever opens it says what else is wrong with it.
func isThere(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not there; give the path of a log directory", dir)
	}
	return nil
}

func listOf(arg string) []string {
	if !strings.Contains(arg, ",") {
		return []string{arg}
	}
	if _, err := os.Lstat(arg); !errors.Is(err, os.ErrNotExist) {
		return []string{arg}
	}
	var names []string
	for name := range strings.SplitSeq(arg, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return []string{arg}
	}
	return names
}

// eachOf returns arguments of which each may be a list of directories.
func eachOf(args []string) []string {
	var all []string
	for _, arg := range args {
		all = append(all, listOf(arg)...)
	}
	return all
}

// shareOut says which of the names given are to be looked for in which directory: each in those that have it, or in the first.
func shareOut(dirs, names []string) [][]string {
	out := make([][]string, len(dirs))
	for _, name := range names {
		found := false
		for i, dir := range dirs {
			at, _ := filepath.Glob(filepath.Join(dir, name) + "*") // a name that is no pattern may be none of a topic either
			if slices.ContainsFunc(at, func(p string) bool { return isOf(filepath.Base(p), name) }) {
				out[i], found = append(out[i], name), true
			}
		}
		if !found {
			out[0] = append(out[0], name)
		}
	}
	return out
}

// isOf reports whether a directory is the partition name, or one of the topic name.
func isOf(dir, name string) bool {
	i := strings.LastIndexByte(dir, '-')
	return dir == name || i > 0 && dir[:i] == name
}

// openEngine opens one log directory, or several as one.
func openEngine(ctx context.Context, dirs []string, o local.Options) (_ storage.Engine, err error) {
	if len(dirs) > 1 {
		o.OneOfSeveral = true
		o.MetadataDirs = append(o.MetadataDirs, dirs...) // a broker has its metadata in one of them
	}
	var open []storage.Engine
	defer func() {
		if err == nil {
			return
		}
		for _, e := range open {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, dir := range dirs {
		o.Dir = dir
		e, err := local.Open(ctx, o)
		if errors.Is(err, os.ErrNotExist) && len(dirs) > 1 {
			return nil, fmt.Errorf("%s is not there: each of several log directories must be", dir)
		}
		if err != nil {
			return nil, err
		}
		open = append(open, e)
	}
	if len(open) == 1 {
		return open[0], nil
	}
	return composite.New(ctx, open...)
}
