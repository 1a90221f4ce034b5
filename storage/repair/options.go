package repair

import (
	"time"

	"github.com/logmount/logmount/storage"
)

// Options say what to repair and how.
type Options struct {
	Select   []string // topics, or partitions spelt topic-partition; none is all of them
	Apply    bool     // do it; without it only the first round's actions are worked out
	Interval int64    // index.interval.bytes of foreign topics; 0 is what the indexes that are there were made with
	MaxIndex int64    // segment.index.bytes of foreign topics; 0 is Kafka's default
	Jobs     int      // segments that are verified at once; 0 is the number of processors
	Config   func(map[string]string) (storage.TopicConfig, error)
	Now      func() time.Time
	Emit     func(Action)            // told of each action before it is done; may be nil
	Progress func(done, total int64) // told of bytes of log that were verified; may be nil
}
