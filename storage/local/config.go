package local

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
)

// setting is one topic setting that the engine knows. Names and ranges are Kafka's; segment.bytes may be as small as brokers before 4.1 allow.
type setting struct {
	name      string
	low, high int64
	field     func(*storage.TopicConfig) *int64
}

var settings = []setting{
	{"index.interval.bytes", 0, math.MaxInt32, func(c *storage.TopicConfig) *int64 { return &c.IndexIntervalBytes }},
	{"max.message.bytes", 0, math.MaxInt32, func(c *storage.TopicConfig) *int64 { return &c.MaxMessageBytes }},
	{"segment.bytes", 14, math.MaxInt32, func(c *storage.TopicConfig) *int64 { return &c.SegmentBytes }},
	{"segment.index.bytes", 4, math.MaxInt32, func(c *storage.TopicConfig) *int64 { return &c.SegmentIndexBytes }},
	{"segment.ms", 1, math.MaxInt64, func(c *storage.TopicConfig) *int64 { return &c.SegmentMs }},
}

// SettingNames returns the names of the settings that a topic can have, in their order.
func SettingNames() []string {
	names := make([]string, 0, len(settings))
	for _, s := range settings {
		names = append(names, s.name)
	}
	return names
}

// ParseConfig returns the settings of a topic whose catalogue entry says values; what it does not say has Kafka's default. An unknown name and a value
// out of range are storage.ErrInvalidConfig.
func ParseConfig(values map[string]string) (storage.TopicConfig, error) {
	c := storage.DefaultTopicConfig()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
		if i < 0 {
			return c, fmt.Errorf("%w: %.80q is not known; known are %s (there is none of retention: nothing is deleted by itself)", storage.ErrInvalidConfig, name, strings.Join(SettingNames(), ", "))
		}
		s := settings[i]
		n, err := strconv.ParseInt(values[name], 10, 64)
		if err != nil {
			return c, fmt.Errorf("%w: %s=%.80q is not a whole number", storage.ErrInvalidConfig, name, values[name])
		}
		if n < s.low || n > s.high {
			return c, fmt.Errorf("%w: %s=%d is not within %d to %d", storage.ErrInvalidConfig, name, n, s.low, s.high)
		}
		*s.field(&c) = n
	}
	return c, nil
}

// CheckConfig returns what ParseConfig says against the settings of a topic, nil if nothing.
func CheckConfig(values map[string]string) error {
	_, err := ParseConfig(values)
	return err
}
