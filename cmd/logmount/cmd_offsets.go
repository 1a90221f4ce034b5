package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/fs"
	"github.com/logmount/logmount/storage"
)

// offsetsJSON is a partition's bounds as --json prints them.
type offsetsJSON struct {
	Topic     string         `json:"topic"`
	Partition int32          `json:"partition"`
	Start     storage.Offset `json:"start"`
	End       storage.Offset `json:"end"`
	*timedJSON
}

// timedJSON is what --time adds.
type timedJSON struct {
	Time   int64           `json:"time"`   // what --time means, in milliseconds
	Offset *storage.Offset `json:"offset"` // the first record at or after it; null where there is none
}

func newOffsetsCmd() *cobra.Command {
	var asJSON, groups bool
	var at string
	c := &cobra.Command{
		Use:   "offsets DATA [TOPIC [PARTITION]]",
		Short: "Print where logs start and end, which offset belongs to a time, how far consumer groups are",
		Long: `Print where logs start and end: the offset of the first record, and the one that the next
record gets. With --time also the offset of the first record that is of that time or later.
With --groups, instead, the offsets that consumer groups committed, as __consumer_offsets has
them, and how many are left to the end. DATA may be a list with commas, like a broker's
log.dirs. It reads only, and may be used while a broker or a mount is at work in DATA.

--json prints an array with an object for each partition, of the fields topic, partition,
start and end; with --time also time (milliseconds) and offset, which is null where no record
is of that time or later. With --groups the fields are group, topic, partition, offset (the
next record that the group wants), leader_epoch (-1 where it is not known), metadata,
committed (when, in milliseconds), and, where the log is in DATA, end and lag.

Exit status: 0 fine, 1 damage kept a log from being read, 2 it could not be done.`,
		Example: `  logmount offsets /srv/log
  logmount offsets /srv/log orders 0 --time -1h
  logmount offsets /srv/log orders --time 2026-08-30T12:00Z --json
  logmount offsets /srv/log --groups`,
		Args:              between(1, 3, "offsets DATA [TOPIC [PARTITION]] [--time T | --groups] [--json]"),
		ValidArgsFunction: topicsOf(1),
		RunE: func(c *cobra.Command, args []string) error {
			if groups && c.Flags().Changed("time") {
				return errors.New("--groups and --time exclude each other: a group has one offset, the one that it committed last")
			}
			if groups {
				return printGroups(c, args[0], args[1:], asJSON)
			}
			ms, err := parseAt(at, c.Flags().Changed("time"))
			if err != nil {
				return err
			}
			return openFor(c.Context(), args[0], true, nil, func(e storage.Engine) error {
				tps, err := selectPartitions(c.Context(), e, args[1:])
				if err != nil {
					return err
				}
				list := make([]offsetsJSON, 0, len(tps))
				var failed error
				for _, tp := range tps {
					o, err := offsetsOf(c.Context(), e, tp, ms)
					if err != nil {
						failed = errors.Join(failed, err)
						continue
					}
					list = append(list, o)
				}
				if len(list) == 0 && failed != nil {
					return damageOr(failed) // a heading without a line says nothing
				}
				if err := printOffsets(c, list, ms != nil, asJSON); err != nil {
					return err
				}
				return damageOr(failed)
			})
		},
	}
	c.Flags().StringVar(&at, "time", "", "also print the first offset whose timestamp is at least this, - where there is none; spelt as under time/")
	c.Flags().BoolVar(&groups, "groups", false, "print the offsets that consumer groups committed, read from __consumer_offsets, and how many are left to the end")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// damageOr gives an error about damaged logs, and about nothing else, the exit status of damage.
func damageOr(err error) error {
	if errors.Is(err, storage.ErrCorrupt) {
		return &exitError{code: exitDamage, err: err}
	}
	return err
}

func parseAt(at string, given bool) (*int64, error) {
	if !given {
		return nil, nil
	}
	ms, err := parseTime("time", at, time.Now())
	if err != nil {
		return nil, err
	}
	return &ms, nil
}

// parseTime reads the time that a flag has, in milliseconds.
func parseTime(flag, value string, now time.Time) (int64, error) {
	ms, ok := fs.ParseTime(value, now, time.Local)
	if !ok {
		return 0, fmt.Errorf("--%s %q is not a time: milliseconds, @seconds, 2026-08-30T12:00Z, now, or -90s -15m -1h -7d", flag, value)
	}
	return ms, nil
}

// selectPartitions returns what the arguments after DATA name: everything, a topic, or a partition.
func selectPartitions(ctx context.Context, e storage.Engine, args []string) ([]storage.TopicPartition, error) {
	var infos []storage.TopicInfo
	if len(args) == 0 {
		all, err := e.Topics(ctx)
		if err != nil {
			return nil, err
		}
		infos = all
	} else {
		t, err := e.Topic(ctx, args[0])
		if err != nil {
			return nil, about("topic", args[0], err)
		}
		infos = []storage.TopicInfo{t}
	}
	if len(args) == 2 {
		n, err := parsePartition(args[1])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(infos[0].Partitions, n) {
			return nil, fmt.Errorf("partition %s-%d: %w", args[0], n, storage.ErrPartitionNotFound)
		}
		return []storage.TopicPartition{{Topic: args[0], Partition: n}}, nil
	}
	var tps []storage.TopicPartition
	for _, t := range infos {
		for _, n := range t.Partitions {
			tps = append(tps, storage.TopicPartition{Topic: t.Name, Partition: n})
		}
	}
	return tps, nil
}

func parsePartition(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("partition %q is not a number", s)
	}
	return int32(n), nil
}

func offsetsOf(ctx context.Context, e storage.Engine, tp storage.TopicPartition, ms *int64) (offsetsJSON, error) {
	_, s, err := open(ctx, e, tp)
	if err != nil {
		return offsetsJSON{}, err
	}
	j := offsetsJSON{Topic: tp.Topic, Partition: tp.Partition, Start: s.Start(), End: s.End()}
	if ms != nil {
		o, err := s.FindTime(ctx, *ms)
		if err != nil {
			return offsetsJSON{}, about("partition", tp.String(), err)
		}
		j.timedJSON = &timedJSON{Time: *ms}
		if o < s.End() {
			j.Offset = &o
		}
	}
	return j, nil
}

func printOffsets(c *cobra.Command, list []offsetsJSON, timed, asJSON bool) error {
	if asJSON {
		return printJSON(c.OutOrStdout(), list)
	}
	heading := []string{"TOPIC", "PARTITION", "START", "END"}
	if timed {
		heading = append(heading, "OFFSET")
	}
	var rows [][]string
	for _, j := range list {
		row := []string{j.Topic, strconv.Itoa(int(j.Partition)), num(j.Start), num(j.End)}
		if j.timedJSON != nil {
			at := "-"
			if j.Offset != nil {
				at = num(*j.Offset)
			}
			row = append(row, at)
		}
		rows = append(rows, row)
	}
	return printTable(c.OutOrStdout(), heading, rows)
}
