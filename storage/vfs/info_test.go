package vfs_test

import (
	"testing"
	"time"

	"github.com/logmount/logmount/storage/vfs"
)

func TestStill(t *testing.T) {
	const changed = 1_000_000_000_000
	was := vfs.FileInfo{Ino: 7, Modified: changed}
	after := func(d time.Duration) time.Time { return time.Unix(0, changed).Add(d) }
	for _, tt := range []struct {
		name string
		now  vfs.FileInfo
		at   time.Time
		want bool
	}{
		{"unchanged for long", was, after(3 * time.Second), true},
		{"as long as a clock may stand still", was, after(2 * time.Second), false},
		{"changed just before it was read", was, after(0), false},
		{"from the future", was, after(-time.Hour), false},
		{"changed since", vfs.FileInfo{Ino: 7, Modified: changed + 1}, after(3 * time.Second), false},
		{"another directory", vfs.FileInfo{Ino: 8, Modified: changed}, after(3 * time.Second), false},
	} {
		if got := was.Still(tt.now, tt.at); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestModified(t *testing.T) {
	i := vfs.FileInfo{Modified: 1_788_026_072_512_999_999}
	if got, want := i.Time(), time.Unix(1_788_026_072, 512_999_999); !got.Equal(want) {
		t.Errorf("time: got %v, want %v", got, want)
	}
	if got := i.Millis(); got != 1_788_026_072_512 {
		t.Errorf("milliseconds: got %d", got)
	}
}
