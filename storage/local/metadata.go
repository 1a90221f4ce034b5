package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/kraft"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// maxMetadataBatch bounds a batch of the metadata log; controllers write far smaller ones.
const maxMetadataBatch = 64 << 20

// loadMetadata reads the metadata log of the cluster that a broker's directory belongs to: from the directory itself, or the first of others that has one.
func loadMetadata(fsys vfs.FS, cluster string, dirs []string) (*kraft.State, error) {
	log := state.MetadataTopic + "-0"
	for _, dir := range dirs {
		at := filepath.Join(dir, log)
		if filepath.Base(dir) == log {
			at, dir = dir, filepath.Dir(dir)
		}
		there, err := vfs.Exists(fsys, at)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		if err := sameCluster(fsys, dir, cluster); err != nil {
			return nil, err
		}
		return readMetadata(fsys, at)
	}
	return nil, fmt.Errorf("there is no %s", log)
}

// sameCluster checks that a directory is not one of another cluster.
func sameCluster(fsys vfs.FS, dir, cluster string) error {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, state.MetaPropertiesFile), metadataLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := state.ParseMetaProperties(b)
	if err != nil {
		return err
	}
	if m.ClusterID != cluster {
		return fmt.Errorf("%s is of cluster %s, not %s", dir, m.ClusterID, cluster)
	}
	return nil
}

// readMetadata reads the newest snapshot in a directory, and the log behind it.
func readMetadata(fsys vfs.FS, dir string) (*kraft.State, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var logs []storage.Offset
	snapshot, end := "", storage.Offset(-1)
	for _, en := range entries {
		if base, ok := state.ParseLogName(en.Name); ok {
			logs = append(logs, base)
		}
		if o, ok := snapshotName(en.Name); ok && o >= end { // entries are sorted: of equal offsets the later epoch counts
			snapshot, end = en.Name, o
		}
	}
	s := &kraft.State{}
	if snapshot != "" {
		if err := eachBatch(fsys, filepath.Join(dir, snapshot), false, func(b []byte) error { return s.Snapshot(b, end) }); err != nil {
			return nil, err
		}
	}
	slices.Sort(logs)
	for i, base := range logs {
		if i+1 < len(logs) && logs[i+1] <= s.Next() {
			continue // the snapshot has all of it
		}
		name := filepath.Join(dir, state.FileName(base, state.ExtLog))
		if err := eachBatch(fsys, name, i == len(logs)-1, s.Batch); err != nil {
			return nil, err
		}
	}
	if s.Next() == 0 {
		return nil, fmt.Errorf("%s is empty", dir)
	}
	return s, nil
}

// snapshotName reads the name of a snapshot of the metadata log, END-EPOCH.checkpoint.
func snapshotName(name string) (end storage.Offset, ok bool) {
	head, ok := strings.CutSuffix(name, ".checkpoint")
	if !ok || len(head) != 31 || head[20] != '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(head[:20], 10, 63)
	if err != nil {
		return 0, false
	}
	_, err = strconv.ParseUint(head[21:], 10, 31)
	return storage.Offset(n), err == nil
}

// eachBatch calls fn for the batches of a file. torn says that the last one need not be whole.
func eachBatch(fsys vfs.FS, name string, torn bool, fn func([]byte) error) error {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 1<<20)
	var buf []byte
	for {
		head, err := r.Peek(record.FrameSize)
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		frame, err := record.ParseFrame(head)
		if torn && (errors.Is(err, record.ErrTruncated) || errors.Is(err, record.ErrZero)) {
			return nil
		}
		if err == nil && frame.Size > maxMetadataBatch {
			err = fmt.Errorf("%w: a batch of %d bytes", storage.ErrCorrupt, frame.Size)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if int64(cap(buf)) < frame.Size {
			buf = make([]byte, frame.Size)
		}
		buf = buf[:frame.Size]
		switch _, err := io.ReadFull(r, buf); {
		case torn && errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := fn(buf); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}
