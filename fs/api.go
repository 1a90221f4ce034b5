package fs

import (
	"context"
	"time"
)

// ParseTime reads a point in time as the names under time/ spell it, as milliseconds since the Unix epoch: verbs take the same spellings as names do.
// now is what "now" and "-1h" count from, loc the zone of a date or time that names none.
func ParseTime(s string, now time.Time, loc *time.Location) (ms int64, ok bool) {
	return parseTime(s, now, loc)
}

// CheckMountpoint is what Mount does first: it returns the absolute path of a mount point, free of symbolic links, or what is wrong with it. Whoever
// opens or makes a log directory for a mount asks first, and leaves nothing behind when there is nowhere to mount it.
func CheckMountpoint(ctx context.Context, mountpoint string, dirs ...string) (string, error) {
	return prepareMountpoint(ctx, mountpoint, dirs)
}
