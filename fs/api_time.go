package fs

import "time"

// ParseTime reads a point in time as the names under time/ spell it, as milliseconds since the Unix epoch: verbs take the same spellings as names do.
// now is what "now" and "-1h" count from, loc the zone of a date or time that names none.
func ParseTime(s string, now time.Time, loc *time.Location) (ms int64, ok bool) {
	return parseTime(s, now, loc)
}
