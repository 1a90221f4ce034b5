package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag in the words of this program. The library's tell of Go, and not what would be right.
func flagError(c *cobra.Command, err error) error {
	see := fmt.Sprintf("see `%s --help`", c.CommandPath())
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetSpecifiedName()
		}
		return fmt.Errorf("unknown flag: %s; %s", name, see)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		name := "--" + e.GetFlag().Name
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetFlag().Shorthand
		}
		return fmt.Errorf("%s needs a value; %s", name, see)
	}
	if e, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("%q is no flag; %s", e.GetSpecifiedFlag(), see)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		why := e.Unwrap()
		if e.GetFlag().Value.Type() == "bool" {
			why = errors.New("it is true or false")
		}
		return fmt.Errorf("--%s %q: %w", e.GetFlag().Name, e.GetValue(), why)
	}
	return err
}

// number is the value of a flag that takes a whole number.
type number[T int | int32 | int64] struct {
	to        *T
	low, high int64
}

// numberVar adds a flag that takes a whole number from low to high. What to points at is the default, which may lie outside.
func numberVar[T int | int32 | int64](s *pflag.FlagSet, to *T, name string, low, high int64, usage string) {
	s.Var(number[T]{to: to, low: low, high: high}, name, usage)
}

// String implements pflag.Value.
func (n number[T]) String() string {
	if n.to == nil {
		return "0"
	}
	return strconv.FormatInt(int64(*n.to), 10)
}

// Set implements pflag.Value.
func (n number[T]) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < n.low || v > n.high {
		return fmt.Errorf("it is a whole number from %d to %d", n.low, n.high)
	}
	*n.to = T(v)
	return nil
}

// Type implements pflag.Value. It is what the help calls the value.
func (number[T]) Type() string { return "int" }

// indexSettingVars adds the flags for the settings that indexes are made with. The bounds are those of the settings, but that no distance at all stands for
// no value given.
func indexSettingVars(s *pflag.FlagSet, interval, maxIndex *int64, usageInterval, usageMax string) {
	numberVar(s, interval, "index-interval-bytes", 1, math.MaxInt32, usageInterval)
	numberVar(s, maxIndex, "segment-index-bytes", 4, math.MaxInt32, usageMax)
}

// jobsVar adds the flag for how much is done at once.
func jobsVar(s *pflag.FlagSet, jobs *int, usage string) {
	numberVar(s, jobs, "jobs", 1, maxJobs, usage+" (default the number of processors)")
}

// maxJobs bounds what is done at once: each has buffers of its own.
const maxJobs = 1024

// notTwice refuses a name that is given twice, before anything is done about the first.
func notTwice(kind string, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s %s is given twice", kind, name)
		}
	}
	return nil
}
