package fs

import (
	"strconv"
	"testing"
)

func TestInoOf(t *testing.T) {
	// These must never change: programs keep inode numbers across mounts.
	for _, tt := range []struct {
		names []string
		want  uint64
	}{
		{nil, 0x6fd01f60ba992926},
		{[]string{"orders"}, 0x1924c3c43142778c},
		{[]string{"orders", "0", "tail"}, 0x4deb13f34e82d05c},
	} {
		if got := inoOf(tt.names...); got != tt.want {
			t.Errorf("%q: got %#x, want %#x", tt.names, got, tt.want)
		}
	}
	seen := make(map[uint64][]string)
	for topic := range 20 {
		for partition := range 20 {
			for offset := range 200 {
				names := []string{"t" + strconv.Itoa(topic), strconv.Itoa(partition), "offset", strconv.Itoa(offset)}
				n := inoOf(names...)
				if n < 2 || n>>63 != 0 {
					t.Fatalf("%q has number %#x", names, n)
				}
				if other, ok := seen[n]; ok {
					t.Fatalf("%q and %q have one number", names, other)
				}
				seen[n] = names
			}
		}
	}
	if inoOf("a", "b") == inoOf("ab") || inoOf("a", "") == inoOf("a") || inoOf("", "a") == inoOf("a") {
		t.Error("the bounds of names do not count")
	}
}
