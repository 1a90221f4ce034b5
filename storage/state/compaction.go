package state

import (
	"math"
	"slices"

	"github.com/logmount/logmount/storage"
)

// Replacement is a complete segment that a compaction has written and not moved into place.
type Replacement struct {
	Base storage.Offset
	Next storage.Offset // behind its last batch; Base where it has none
}

// CompleteSwaps returns which of the logs that wait to be swapped in are complete, where a compaction was cut short: those below all that was still being
// written. Both are given by their base offsets.
func CompleteSwaps(swaps, cleaned []storage.Offset) []storage.Offset {
	writing := storage.Offset(math.MaxInt64)
	for _, base := range cleaned {
		writing = min(writing, base)
	}
	return slices.DeleteFunc(slices.Clone(swaps), func(base storage.Offset) bool { return base >= writing })
}

// Replaced reports whether the segment with that base is not part of the log any more once all replacements are in place: they take the place of all that
// starts in the range from the lowest to the end of the highest, holes included, and of what has their names.
func Replaced(base storage.Offset, by []Replacement) bool {
	from, to := storage.Offset(math.MaxInt64), storage.Offset(-1)
	for _, r := range by {
		if r.Base == base {
			return true
		}
		from, to = min(from, r.Base), max(to, r.Next)
	}
	return from <= base && base < to
}
