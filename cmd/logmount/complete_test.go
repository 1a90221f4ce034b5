package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, said := runIn(t, "topics", "create", "own", "orders", "other"); code != exitOK {
		t.Fatal(said)
	}
	const none, dirs = ":4", ":16" // nothing of the disk; directories
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"DATA", []string{"verify", "o"}, []string{dirs}},
		{"DATA without a verb", []string{"./o"}, []string{dirs}},
		{"MNT", []string{"umount", "m"}, []string{dirs}},
		{"topics", []string{"verify", "own", "or"}, []string{"orders", none}},
		{"topics that are not there yet", []string{"repair", "own", "orders", ""}, []string{"other", none}},
		{"topics to delete", []string{"topics", "delete", "own", ""}, []string{"orders", "other", none}},
		{"topics to describe", []string{"topics", "describe", "own", ""}, []string{"orders", "other", none}},
		{"a topic", []string{"offsets", "own", "ot"}, []string{"other", none}},
		{"a partition", []string{"offsets", "own", "other", ""}, []string{none}},
		{"topics of nothing", []string{"verify", "nosuch", ""}, []string{none}},
		{"options", []string{"mount", "-o", "r"}, []string{"ro", "rw", none}},
		{"an option with a value", []string{"-o", "ro,um"}, []string{"ro,umask=", ":6"}},
		{"values of an option", []string{"-o", "isolation="}, []string{"isolation=read_uncommitted", "isolation=read_committed", none}},
		{"log levels", []string{"mount", "--log-level", ""}, []string{"debug", "info", "warn", "error", none}},
		{"decoders", []string{"dump", "--decode", ""}, []string{"offsets", "transactions", "metadata", "share", "remote", "none", none}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, _ := runIn(t, append([]string{"__complete"}, tt.args...)...)
			if got := strings.Fields(out); code != exitOK || !slices.Equal(got, tt.want) {
				t.Errorf("got %d, %q, want %q", code, got, tt.want)
			}
		})
	}
	if _, out, _ := runIn(t, "__complete", "dump", "--type", ""); !strings.Contains(out, "log\n") || !strings.Contains(out, "timeindex\n") {
		t.Errorf("types: got %q", out)
	}
}
