package state

import (
	"slices"
	"testing"

	"github.com/logmount/logmount/storage"
)

func TestCutShortCompaction(t *testing.T) {
	type offsets = []storage.Offset
	segments := offsets{0, 10, 20, 30, 40}
	next := map[storage.Offset]storage.Offset{0: 10, 5: 15, 10: 20, 20: 25, 30: 30, 40: 60}
	for _, tt := range []struct {
		name           string
		swaps, cleaned offsets
		complete, left offsets // left: of the segments that were there
	}{
		{"nothing", nil, nil, nil, segments},
		{"still being written", nil, offsets{0}, nil, segments},
		{"one for one", offsets{0}, nil, offsets{0}, offsets{10, 20, 30, 40}},
		{"the last", offsets{40}, nil, offsets{40}, offsets{0, 10, 20, 30}},
		{"shorter than what it replaces", offsets{20}, nil, offsets{20}, offsets{0, 10, 30, 40}},
		{"into the next segment", offsets{5}, nil, offsets{5}, offsets{0, 20, 30, 40}},
		{"with a hole between", offsets{20, 0}, nil, offsets{20, 0}, offsets{30, 40}},
		{"without a batch", offsets{30}, nil, offsets{30}, offsets{0, 10, 20, 40}},
		{"the last of two without a batch", offsets{20, 30}, nil, offsets{20, 30}, offsets{0, 10, 40}},
		{"a lower one still being written", offsets{10, 20}, offsets{0}, nil, segments},
		{"the same still being written", offsets{10}, offsets{10}, nil, segments},
		{"a higher one still being written", offsets{0, 20}, offsets{30, 10}, offsets{0}, offsets{10, 20, 30, 40}},
	} {
		complete := CompleteSwaps(tt.swaps, tt.cleaned)
		if !slices.Equal(complete, tt.complete) {
			t.Errorf("%s: complete: got %v, want %v", tt.name, complete, tt.complete)
		}
		var by []Replacement
		for _, base := range complete {
			by = append(by, Replacement{base, next[base]})
		}
		left := slices.DeleteFunc(slices.Clone(segments), func(base storage.Offset) bool { return Replaced(base, by) })
		if !slices.Equal(left, tt.left) {
			t.Errorf("%s: left: got %v, want %v", tt.name, left, tt.left)
		}
	}
}
