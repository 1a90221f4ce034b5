package state

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/logmount/logmount/storage"
)

// idText is how ids are spelled: 16 bytes in 22 characters. It is strict, so that an id has one spelling.
var idText = base64.RawURLEncoding.Strict()

// NewTopicID makes a topic id from a source of random bytes. It holds no '-', which tools might take for an option.
func NewTopicID(random io.Reader) (string, error) {
	for range 1000 { // an id has a '-' three times of ten
		id, err := uuid.NewRandomFromReader(random)
		if err != nil {
			return "", fmt.Errorf("make random id: %w", err)
		}
		if s := idText.EncodeToString(id[:]); !strings.Contains(s, "-") {
			return s, nil
		}
	}
	return "", errors.New("make random id: the source is not random")
}

// ParseTopicID reads a topic id: 22 characters, not the id that stands for none. An id may begin with '-', though none is made that does.
func ParseTopicID(s string) (id [16]byte, err error) {
	b, err := idText.DecodeString(s)
	if err != nil || len(s) != 22 || len(b) != len(id) {
		return id, fmt.Errorf("%w: topic id %s is not 22 characters of base64", storage.ErrInvalidName, quote(s))
	}
	copy(id[:], b)
	if id == ([16]byte{}) {
		return id, fmt.Errorf("%w: topic id %s stands for no topic", storage.ErrInvalidName, quote(s))
	}
	return id, nil
}

// NewDirID makes the id in the name of a directory that is being deleted: 32 lower-case hexadecimal digits.
func NewDirID(random io.Reader) (string, error) {
	id, err := uuid.NewRandomFromReader(random)
	if err != nil {
		return "", fmt.Errorf("make random id: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}

// FormatPartitionMetadata returns the bytes of partition.metadata, which does not end in a line end.
func FormatPartitionMetadata(topicID string) []byte {
	return []byte("version: 0\ntopic_id: " + topicID)
}

// ParsePartitionMetadata reads partition.metadata and returns the topic id. Only the first two lines count.
func ParsePartitionMetadata(b []byte) (topicID string, err error) {
	const what = MetadataFile
	all := lines(b)
	if len(all) < 2 {
		return "", corruptLine(what, len(all), "the line is missing")
	}
	version, ok := metadataField(all[0], "version")
	if v, err := strconv.ParseInt(version, 10, 32); !ok || err != nil || v < 0 {
		return "", corruptLine(what, 0, "%s is not a version", quote(all[0]))
	}
	topicID, ok = metadataField(all[1], "topic_id")
	if !ok {
		return "", corruptLine(what, 1, "%s is not a topic id", quote(all[1]))
	}
	if _, err := ParseTopicID(topicID); err != nil {
		return "", fmt.Errorf("%w: %w", corruptLine(what, 1, "bad topic id"), err)
	}
	return topicID, nil
}

// metadataField returns the value of a line "name: value".
func metadataField(line, name string) (string, bool) {
	value, ok := strings.CutPrefix(line, name+":")
	if !ok || value == "" || !blank(rune(value[0])) {
		return "", false
	}
	return strings.TrimFunc(value, blank), true
}
