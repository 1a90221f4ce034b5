package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
)

func newTopicsCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "topics",
		Short: "List, describe, create, delete and import the topics of a log directory",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("no verb %q: topics has list, describe, create, delete and import", args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(newTopicsListCmd(), newTopicsDescribeCmd(), newTopicsCreateCmd(), newTopicsDeleteCmd(), newTopicsImportCmd())
	return c
}

// topicJSON is a topic as --json prints it.
type topicJSON struct {
	Topic      string            `json:"topic"`
	ID         string            `json:"id,omitempty"`
	Partitions int               `json:"partitions"`
	Created    *time.Time        `json:"created,omitempty"`
	Config     map[string]string `json:"config"`
	List       []partitionJSON   `json:"partition_list,omitempty"`
}

// partitionJSON is a partition as --json prints it.
type partitionJSON struct {
	Partition int32          `json:"partition"`
	Start     storage.Offset `json:"start"`
	End       storage.Offset `json:"end"`
	Modified  *time.Time     `json:"modified,omitempty"`
	Files     int            `json:"files"`
	Bytes     int64          `json:"bytes"`
}

func topicOf(t storage.TopicInfo) topicJSON {
	j := topicJSON{Topic: t.Name, ID: t.ID, Partitions: len(t.Partitions), Config: t.Config}
	if j.Config == nil {
		j.Config = map[string]string{}
	}
	if !t.Created.IsZero() {
		j.Created = &t.Created
	}
	return j
}

func newTopicsListCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list DATA",
		Short: "List the topics",
		Long: `List the topics of a log directory, also of one that is mounted or that a broker writes.

--json prints an array with an object for each topic, of the fields topic, id, partitions (how
many), created and config (an object with the settings that were given). Topics of brokers and
copies have no created, and an id only where their files tell it.`,
		Args:              exactly(1, "topics list DATA [--json]"),
		ValidArgsFunction: directories,
		RunE: func(c *cobra.Command, args []string) error {
			return openFor(c.Context(), args[0], true, nil, func(e storage.Engine) error {
				infos, err := e.Topics(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					list := make([]topicJSON, 0, len(infos))
					for _, t := range infos {
						list = append(list, topicOf(t))
					}
					return printJSON(c.OutOrStdout(), list)
				}
				var rows [][]string
				for _, t := range infos {
					rows = append(rows, []string{t.Name, strconv.Itoa(len(t.Partitions)), orDash(t.ID), timeOrDash(t.Created)})
				}
				return printTable(c.OutOrStdout(), []string{"TOPIC", "PARTITIONS", "ID", "CREATED"}, rows)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newTopicsDescribeCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "describe DATA TOPIC...",
		Short: "Show settings, partitions, offsets and sizes of topics",
		Long: `Show settings, partitions, offsets and sizes of topics, also of a log directory that is mounted
or that a broker writes.

--json prints an array with an object for each topic. It has the fields that topics list prints,
and partition_list, an array of objects with the fields partition, start, end, modified (the
last append; not there if nobody knows), files and bytes (of all its files).`,
		Args:              between(2, 1<<20, "topics describe DATA TOPIC... [--json]"),
		ValidArgsFunction: topicsOf(-1),
		RunE: func(c *cobra.Command, args []string) error {
			return openFor(c.Context(), args[0], true, nil, func(e storage.Engine) error {
				var list []topicJSON
				for _, name := range args[1:] {
					t, err := describe(c.Context(), e, name)
					if err != nil {
						return err
					}
					list = append(list, t)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), list)
				}
				for i, t := range list {
					if err := printTopic(c.OutOrStdout(), t, i > 0); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func describe(ctx context.Context, e storage.Engine, name string) (topicJSON, error) {
	info, err := e.Topic(ctx, name)
	if err != nil {
		return topicJSON{}, about("topic", name, err)
	}
	t := topicOf(info)
	for _, n := range info.Partitions {
		tp := storage.TopicPartition{Topic: name, Partition: n}
		p, s, err := open(ctx, e, tp)
		if err != nil {
			return topicJSON{}, err
		}
		j := partitionJSON{Partition: n, Start: s.Start(), End: s.End()}
		if ms := s.Modified(); ms > 0 {
			at := time.UnixMilli(ms)
			j.Modified = &at
		}
		files, err := p.Files(ctx)
		if err != nil && !errors.Is(err, storage.ErrUnsupported) {
			return topicJSON{}, about("partition", tp.String(), err)
		}
		for _, f := range files {
			j.Files++
			j.Bytes += f.Size
		}
		t.List = append(t.List, j)
	}
	return t, nil
}

// open returns a partition and its newest state.
func open(ctx context.Context, e storage.Engine, tp storage.TopicPartition) (storage.Partition, storage.Snapshot, error) {
	p, err := e.Partition(ctx, tp)
	if err != nil {
		return nil, nil, about("partition", tp.String(), err)
	}
	s, err := p.Snapshot(ctx)
	if err != nil {
		return nil, nil, about("partition", tp.String(), err)
	}
	return p, s, nil
}

func printTopic(w io.Writer, t topicJSON, gap bool) error {
	var b strings.Builder
	if gap {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "topic %s\n", t.Topic)
	if t.ID != "" {
		fmt.Fprintf(&b, "id %s\n", t.ID)
	}
	if t.Created != nil {
		fmt.Fprintf(&b, "created %s\n", t.Created.Format(time.RFC3339))
	}
	for _, k := range slices.Sorted(maps.Keys(t.Config)) {
		fmt.Fprintf(&b, "config %s=%s\n", k, t.Config[k])
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	var rows [][]string
	for _, p := range t.List {
		at := time.Time{}
		if p.Modified != nil {
			at = *p.Modified
		}
		rows = append(rows, []string{strconv.Itoa(int(p.Partition)), num(p.Start), num(p.End), strconv.Itoa(p.Files), strconv.FormatInt(p.Bytes, 10), timeOrDash(at)})
	}
	return printTable(w, []string{"PARTITION", "START", "END", "FILES", "BYTES", "MODIFIED"}, rows)
}

// about puts what an error is about before it, unless it names it already.
func about(kind, name string, err error) error {
	if strings.Contains(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s %s: %w", kind, name, err)
}

func num(o storage.Offset) string { return strconv.FormatInt(int64(o), 10) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}
