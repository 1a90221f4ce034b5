package storagetest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/logmount/logmount/storage"
)

func checkName(name string) error {
	ok := len(name) >= 1 && len(name) <= 249 && name != "." && name != ".."
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("topic %q: %w: 1 to 249 of A-Z a-z 0-9 . _ - are allowed", name, storage.ErrInvalidName)
	}
	return nil
}

// parseConfig returns the settings that the map stands for.
func parseConfig(settings map[string]string) (storage.TopicConfig, error) {
	c := storage.DefaultTopicConfig()
	const maxInt32 = 1<<31 - 1
	known := map[string]struct {
		to        *int64
		low, high int64
	}{
		"segment.bytes":        {&c.SegmentBytes, 14, maxInt32},
		"segment.ms":           {&c.SegmentMs, 1, 1<<63 - 1},
		"segment.index.bytes":  {&c.SegmentIndexBytes, 4, maxInt32},
		"index.interval.bytes": {&c.IndexIntervalBytes, 0, maxInt32},
		"max.message.bytes":    {&c.MaxMessageBytes, 0, maxInt32},
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		k, ok := known[name]
		if !ok {
			return c, fmt.Errorf("%w: %s is not known", storage.ErrInvalidConfig, name)
		}
		n, err := strconv.ParseInt(settings[name], 10, 64)
		if err != nil || n < k.low || n > k.high {
			return c, fmt.Errorf("%w: %s = %q is not a number from %d to %d", storage.ErrInvalidConfig, name, settings[name], k.low, k.high)
		}
		*k.to = n
	}
	return c, nil
}
