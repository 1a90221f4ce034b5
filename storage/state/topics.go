package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/logmount/logmount/storage"
)

const (
	// MaxPartitions is how many partitions of ours a topic may have.
	MaxPartitions = 100_000
	// MaxTopicsBytes is how large a TopicsFile may be.
	MaxTopicsBytes = 64 << 20

	topicsVersion = 1
)

// Topics is the content of a TopicsFile: the catalogue of the topics that are ours.
type Topics struct {
	Version  int              `json:"version"`
	Topics   map[string]Topic `json:"topics"`
	Deleting []Deletion       `json:"deleting,omitempty"`
}

// Topic is what the catalogue says of a topic.
type Topic struct {
	ID         string            `json:"id"`
	Partitions int32             `json:"partitions"`
	Config     map[string]string `json:"config,omitempty"`
	Created    time.Time         `json:"created"`
}

// Deletion is a directory of a deleted topic that is on its way out: it has its old name, or the new one, or is gone already.
type Deletion struct {
	Dir string `json:"dir"` // orders-0
	As  string `json:"as"`  // orders-0.<32 hexadecimal digits>-delete
}

// NewTopics returns a catalogue without topics.
func NewTopics() *Topics { return &Topics{Version: topicsVersion, Topics: map[string]Topic{}} }

// ParseTopics reads a whole TopicsFile. What it says of topics and deletions is not looked at: see Check. A version that is not ours is
// storage.ErrUnsupported.
func ParseTopics(b []byte) (*Topics, error) {
	t := &Topics{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	if t.Version != topicsVersion {
		return nil, fmt.Errorf("version %d: %w", t.Version, storage.ErrUnsupported)
	}
	if t.Topics == nil {
		t.Topics = map[string]Topic{}
	}
	return t, nil
}

// Clone returns a copy to change.
func (t *Topics) Clone() *Topics {
	return &Topics{Version: t.Version, Topics: maps.Clone(t.Topics), Deleting: slices.Clone(t.Deleting)}
}

// Format returns the file's content.
func (t *Topics) Format() ([]byte, error) {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", TopicsFile, err)
	}
	return append(b, '\n'), nil
}

// Check returns what keeps a topic from being ours; config, if it is not nil, says so of its settings.
func (t *Topic) Check(name string, config func(map[string]string) error) error {
	if err := ValidTopic(name); err != nil {
		return err
	}
	if _, err := ParseTopicID(t.ID); err != nil {
		return err
	}
	if !t.Bounded() {
		return fmt.Errorf("%d partitions", t.Partitions)
	}
	if config == nil {
		return nil
	}
	return config(t.Config)
}

// Bounded reports whether the number of partitions is one that a topic can have.
func (t *Topic) Bounded() bool { return t.Partitions >= 1 && t.Partitions <= MaxPartitions }

// Check returns why the names cannot be those of a deletion.
func (d *Deletion) Check() error {
	from, err := ParseDirName(d.Dir)
	if err != nil {
		return err
	}
	as, err := ParseDirName(d.As)
	if err != nil {
		return err
	}
	if from.Kind != DirNormal || as.Kind != DirDelete {
		return errors.New("the names are not those of a deletion")
	}
	return nil
}
