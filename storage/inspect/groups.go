package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// GroupOffset is how far a consumer group has committed in one partition.
type GroupOffset struct {
	Group string
	storage.TopicPartition
	Offset      storage.Offset // of the next record that the group wants
	LeaderEpoch int32          // of the record before it; -1 is unknown
	Metadata    string         // the consumer's own note
	Committed   int64          // time of the commit in milliseconds; -1 where it is not known
}

// groupKey is what a commit is for.
type groupKey struct {
	group string
	storage.TopicPartition
}

// maxCommitBytes bounds the texts that are kept of a directory's commits.
const maxCommitBytes = 1 << 30

// groupReader gathers the commits of the partitions of __consumer_offsets.
type groupReader struct {
	ctx     context.Context //nolint:containedctx // It lives as long as GroupOffsets, which takes the context.
	fs      vfs.FS
	last    map[groupKey]commit
	pending map[int64][]commit // by producer id: commits in a transaction that has not ended
	size    int64              // of the texts kept, about
	bad     func(*storage.CorruptError)
}

// commit is a record of __consumer_offsets.
type commit struct {
	key     groupKey
	at      GroupOffset
	record  storage.Offset // its own offset
	removed bool           // a tombstone
}

func (c *commit) size() int64 {
	return int64(len(c.key.group)+len(c.key.Topic)+len(c.at.Metadata)) + 200
}

// GroupOffsets reads the partitions of __consumer_offsets in a log directory and returns the last offset that each group committed in each partition, in the
// order of groups, topics and partitions. Commits that were taken back or belong to a transaction that was aborted, or has not ended, do not count. What is
// damaged is told to bad and passed over. Without that topic the list is empty.
func GroupOffsets(ctx context.Context, fsys vfs.FS, dirs []string, bad func(*storage.CorruptError)) ([]GroupOffset, error) {
	g := groupReader{ctx: ctx, fs: fsys, last: map[groupKey]commit{}, bad: bad}
	for _, dir := range dirs {
		entries, err := fsys.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if d, err := state.ParseDirName(e.Name); err != nil || d.Kind != state.DirNormal || d.Topic != topicOffsets {
				continue
			}
			if err := g.partition(filepath.Join(dir, e.Name)); err != nil {
				return nil, err
			}
		}
	}
	list := make([]GroupOffset, 0, len(g.last))
	for _, c := range g.last {
		list = append(list, c.at)
	}
	slices.SortFunc(list, func(a, b GroupOffset) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list, nil
}

// partition reads one partition's segments in order. A group's commits are all in one partition.
func (g *groupReader) partition(dir string) error {
	entries, err := g.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	g.pending = map[int64][]commit{}
	for _, e := range entries { // names of 20 digits sort as their numbers do
		base, ok := state.ParseLogName(e.Name)
		if !ok {
			continue
		}
		if err := g.segment(filepath.Join(dir, e.Name), base); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (g *groupReader) segment(path string, base storage.Offset) error {
	f, err := g.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	i, err := f.Stat()
	if err != nil {
		return err
	}
	var rec record.Reader
	err = Walk(contextReader{g.ctx, f}, i.Size, base, func(b Batch) error {
		err := b.Err
		switch {
		case b.Gap == GapTorn || b.Gap == GapZero:
			return nil
		case err == nil && !b.CRCOK:
			err = record.ErrCRC
		case err == nil:
			if err = rec.Reset(b.Raw); err == nil {
				err = g.batch(&rec)
			}
		}
		if err == nil || !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrUnsupported) {
			return err
		}
		g.bad(&storage.CorruptError{Path: path, Pos: b.Pos, Offset: b.Header.BaseOffset, Reason: "unreadable commits", Err: err})
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// batch takes the commits of a batch: at once, or when their transaction ends.
func (g *groupReader) batch(rec *record.Reader) error {
	h := *rec.Header()
	var r storage.Record
	for {
		ok, err := rec.Next(&r)
		if err != nil || !ok {
			return err
		}
		if h.Attributes.Control() {
			c, err := record.ParseControl(&r)
			if err != nil {
				return err
			}
			if c.Type == record.Commit || c.Type == record.Abort {
				g.end(h.ProducerID, c.Type == record.Commit)
			}
			continue
		}
		x, ok := parseCommit(&r)
		if !ok {
			continue // of another kind
		}
		if h.Attributes.Transactional() {
			g.pending[h.ProducerID] = append(g.pending[h.ProducerID], x)
			g.size += x.size()
		} else {
			g.apply(x)
		}
		if g.size > maxCommitBytes {
			return errors.New("the commits take too much memory")
		}
	}
}

// end takes the commits of a transaction, or drops them.
func (g *groupReader) end(producer int64, committed bool) {
	for _, x := range g.pending[producer] {
		g.size -= x.size()
		if committed {
			g.apply(x)
		}
	}
	delete(g.pending, producer)
}

// apply lets a commit replace the one before it. One that was made after it stays, though its transaction ended earlier.
func (g *groupReader) apply(x commit) {
	before, there := g.last[x.key]
	if there && before.record > x.record {
		return
	}
	if there {
		g.size -= before.size()
	}
	if x.removed {
		delete(g.last, x.key)
		return
	}
	g.last[x.key] = x
	g.size += x.size()
}

// parseCommit reads a record of __consumer_offsets. ok is false where it is no commit, or of a version that is not known.
func parseCommit(rec *storage.Record) (x commit, ok bool) {
	k := fieldReader{b: rec.Key}
	if version := k.integer(2); version < 0 || version > 1 {
		return x, false
	}
	x.record = rec.Offset
	x.key.group = string(k.str(false, true))
	x.key.Topic = string(k.str(false, true))
	x.key.Partition = int32(k.integer(4))
	if k.err != nil || len(k.b) > 0 {
		return x, false
	}
	if rec.Value == nil {
		x.removed = true
		return x, true
	}
	v := fieldReader{b: rec.Value}
	version := v.integer(2)
	x.at = GroupOffset{Group: x.key.group, TopicPartition: x.key.TopicPartition, Offset: storage.Offset(v.integer(8)), LeaderEpoch: -1}
	if version >= 3 {
		x.at.LeaderEpoch = int32(v.integer(4))
	}
	x.at.Metadata = string(v.str(version >= 4, true))
	x.at.Committed = v.integer(8)
	return x, v.err == nil && version >= 0 && version <= 4
}
