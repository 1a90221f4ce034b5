package state

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/test/fixture"
)

// TestFilesOfBrokers reads every small file of real log directories and writes it again.
func TestFilesOfBrokers(t *testing.T) {
	seen := map[string]int{}
	for _, archive := range []string{"clean-4.4.0", "killed-4.4.0", "legacy-3.9.1"} {
		root := fixture.Unpack(t, archive)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, path)
			if d.IsDir() {
				if filepath.Dir(rel) == "clean" {
					dn, err := ParseDirName(d.Name())
					if err != nil || dn.Kind != DirNormal || dn.String() != d.Name() {
						t.Errorf("%s: got %+v, %v", rel, dn, err)
					}
				}
				return nil
			}
			base := d.Name()
			if b, ext, suffix, ok := ParseFileName(base); ok {
				seen[ext+suffix]++
				if got := FileName(b, ext+suffix); got != base {
					t.Errorf("%s: written again as %s", rel, got)
				}
				if ext != ExtSnapshot {
					return nil
				}
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			again, err := reformat(base, raw)
			if err != nil || again != nil && !bytes.Equal(again, raw) {
				t.Errorf("%s: got %q, %v, want %q", rel, again, err, raw)
			}
			if again != nil {
				seen[base[max(strings.LastIndexByte(base, '.'), 0):]]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		ExtLog, ExtIndex, ExtTimeIndex, ExtTxnIndex, ExtSnapshot, ExtLog + SuffixDeleted, ".metadata", EpochsFile, RecoveryPointFile, LogStartFile, HighWatermarkFile,
		CleanerOffsetFile, ".properties", CleanMarkerFile,
	} {
		if seen[want] == 0 {
			t.Errorf("no file %s was read", want)
		}
	}
}

// reformat parses a file and formats what was in it; nil for a file that is not known or not kept byte for byte.
func reformat(name string, raw []byte) ([]byte, error) {
	switch name {
	case RecoveryPointFile, LogStartFile, HighWatermarkFile, CleanerOffsetFile:
		c, err := ParseCheckpoint(raw)
		return orEmpty(c.Format(), raw), err
	case EpochsFile:
		e, err := ParseEpochs(raw)
		return orEmpty(e.Format(), raw), err
	case MetadataFile:
		id, err := ParsePartitionMetadata(raw)
		return FormatPartitionMetadata(id), err
	case CleanMarkerFile:
		return FormatCleanMarker(ParseCleanMarker(raw)), nil
	case MetaPropertiesFile:
		m, err := ParseMetaProperties(raw)
		if err == nil && (m.ClusterID == "" || m.NodeID < 0) {
			return []byte("no cluster or node"), nil
		}
		return raw, err
	}
	if strings.HasSuffix(name, ExtSnapshot) || strings.HasSuffix(name, ExtSnapshot+SuffixDeleted) {
		e, err := DecodeSnapshot(raw)
		return EncodeSnapshot(e), err
	}
	return nil, nil
}

// orEmpty returns raw where it is empty, since an empty checkpoint is written with its version.
func orEmpty(got, raw []byte) []byte {
	if len(raw) == 0 {
		return raw
	}
	return got
}

func TestStartMoved(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean", LogStartFile))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCheckpoint(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := c.Get(storage.TopicPartition{Topic: "start-moved"}); got != 38 || !ok {
		t.Errorf("got %d, %t, want 38", got, ok)
	}
}
