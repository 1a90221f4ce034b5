package vfs

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestUsageCountsWhatIsKeptForRoot(t *testing.T) {
	st := unix.Statfs_t{Blocks: 100, Bfree: 30, Bavail: 25, Files: 7, Ffree: 5}
	for _, c := range []struct {
		name string
		root bool
		want Usage
	}{
		{"root", true, Usage{Total: 102400, Free: 30720, Avail: 30720, Files: 7, FilesFree: 5}},
		{"anybody else", false, Usage{Total: 102400, Free: 30720, Avail: 25600, Files: 7, FilesFree: 5}},
	} {
		if got := usageOf(&st, 1024, c.root); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
