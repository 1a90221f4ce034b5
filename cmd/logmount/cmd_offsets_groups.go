package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/vfs"
)

// groupJSON is how far a consumer group is in one partition, as --groups --json prints it.
type groupJSON struct {
	Group       string          `json:"group"`
	Topic       string          `json:"topic"`
	Partition   int32           `json:"partition"`
	Offset      storage.Offset  `json:"offset"`       // the next record that the group wants
	LeaderEpoch int32           `json:"leader_epoch"` // -1 where it is not known
	Metadata    string          `json:"metadata"`
	Committed   int64           `json:"committed"`     // when, in milliseconds
	End         *storage.Offset `json:"end,omitempty"` // where the log ends; not there if the log is not
	Lag         *int64          `json:"lag,omitempty"` // offsets from there to the end
}

// printGroups prints the offsets that consumer groups committed, as __consumer_offsets has them, and how far behind the end of the logs they are. args is
// what follows DATA: a topic, or a partition of it, or nothing for all.
func printGroups(c *cobra.Command, arg string, args []string, asJSON bool) error {
	dirs, err := dirsThere(arg)
	if err != nil {
		return err
	}
	return openDirs(c.Context(), dirs, true, nil, func(e storage.Engine) error {
		var failed error
		bad := func(ce *storage.CorruptError) { failed = errors.Join(failed, ce) }
		offsets, err := inspect.GroupOffsets(c.Context(), vfs.OS(), dirs, bad)
		if err != nil {
			return err
		}
		wanted, err := groupFilter(args)
		if err != nil {
			return err
		}
		ends := map[storage.TopicPartition]*storage.Offset{}
		list := make([]groupJSON, 0, len(offsets))
		for _, o := range offsets {
			if !wanted(o.TopicPartition) {
				continue
			}
			end, known := ends[o.TopicPartition]
			if !known {
				end, err = logEnd(c.Context(), e, o.TopicPartition)
				failed = errors.Join(failed, err)
				ends[o.TopicPartition] = end
			}
			j := groupJSON{Group: o.Group, Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata, Committed: o.Committed, End: end}
			if end != nil {
				lag := max(int64(*end-o.Offset), 0)
				j.Lag = &lag
			}
			list = append(list, j)
		}
		if len(list) == 0 {
			// A group may have committed offsets of a topic that is elsewhere; nobody having done so, it should at least be here.
			if _, err := selectPartitions(c.Context(), e, args); err != nil {
				return err
			}
		}
		if len(list) == 0 && failed != nil {
			return damageOr(failed)
		}
		if err := writeGroups(c, list, asJSON); err != nil {
			return err
		}
		return damageOr(failed)
	})
}

// groupFilter returns what tells whether a partition is among those that were asked for.
func groupFilter(args []string) (func(storage.TopicPartition) bool, error) {
	if len(args) == 0 {
		return func(storage.TopicPartition) bool { return true }, nil
	}
	if len(args) == 1 {
		return func(tp storage.TopicPartition) bool { return tp.Topic == args[0] }, nil
	}
	n, err := parsePartition(args[1])
	if err != nil {
		return nil, err
	}
	return func(tp storage.TopicPartition) bool { return tp.Topic == args[0] && tp.Partition == n }, nil
}

// logEnd returns where a log ends, or nil where there is no such log.
func logEnd(ctx context.Context, e storage.Engine, tp storage.TopicPartition) (*storage.Offset, error) {
	_, s, err := open(ctx, e, tp)
	switch {
	case errors.Is(err, storage.ErrTopicNotFound), errors.Is(err, storage.ErrPartitionNotFound), errors.Is(err, storage.ErrInvalidName):
		return nil, nil // another broker has it, or it was deleted
	case err != nil:
		return nil, err
	}
	end := s.End()
	return &end, nil
}

func writeGroups(c *cobra.Command, list []groupJSON, asJSON bool) error {
	if asJSON {
		return printJSON(c.OutOrStdout(), list)
	}
	rows := make([][]string, 0, len(list))
	for _, j := range list {
		end, lag := "-", "-"
		if j.End != nil {
			end, lag = num(*j.End), strconv.FormatInt(*j.Lag, 10)
		}
		rows = append(rows, []string{shown(j.Group), shown(j.Topic), strconv.Itoa(int(j.Partition)), num(j.Offset), end, lag})
	}
	return printTable(c.OutOrStdout(), []string{"GROUP", "TOPIC", "PARTITION", "OFFSET", "END", "LAG"}, rows)
}

// shown is a name as a table can show it: a group's may be anything.
func shown(s string) string {
	for _, r := range s {
		if r <= ' ' || !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return orDash(s)
}
