package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
)

func newTopicsCreateCmd() *cobra.Command {
	partitions := int32(1)
	var config []string
	c := &cobra.Command{
		Use:   "create DATA TOPIC...",
		Short: "Create topics in a log directory that is not mounted",
		Example: `  logmount topics create /srv/log orders --partitions 4
  logmount topics create /srv/log blobs --config max.message.bytes=67108864`,
		Args:              between(2, 1<<20, "topics create DATA TOPIC... [--partitions N] [--config NAME=VALUE]"),
		ValidArgsFunction: directories,
		RunE: func(c *cobra.Command, args []string) error {
			settings, err := parseSettings(config)
			if err != nil {
				return err
			}
			topics := args[1:]
			if err := notTwice("topic", topics); err != nil {
				return err
			}
			for _, name := range topics {
				if err := local.CheckTopicName(name); err != nil {
					return about("topic", name, err)
				}
			}
			dirs, err := dataPaths(args[0])
			if err != nil {
				return err
			}
			created := tellCreated(c.ErrOrStderr(), dirs[0])
			err = openDirs(c.Context(), dirs, false, func(mnt string) string { return createOnMount(mnt, topics[0], partitions, len(settings) > 0) }, func(e storage.Engine) error {
				if err := noneThere(c.Context(), e, topics); err != nil {
					return err
				}
				for _, name := range topics {
					if err := e.CreateTopic(c.Context(), storage.TopicSpec{Name: name, Partitions: partitions, Config: settings}); err != nil {
						return about("topic", name, err)
					}
				}
				created()
				return nil
			})
			if errors.Is(err, os.ErrNotExist) && isThere(dirs[0]) != nil {
				return fmt.Errorf("%s is not there, and neither is %s; make that first: mkdir -p %s", dirs[0], filepath.Dir(dirs[0]), filepath.Dir(dirs[0]))
			}
			return err
		},
	}
	numberVar(c.Flags(), &partitions, "partitions", 1, local.MaxPartitions, "number of partitions")
	c.Flags().StringArrayVar(&config, "config", nil, "a setting, NAME=VALUE with Kafka's names: "+strings.Join(local.SettingNames(), ", ")+"; may be repeated")
	return c
}

// noneThere makes sure that topics can be made, as far as that can be told beforehand: it is all of them or none.
func noneThere(ctx context.Context, e storage.Engine, topics []string) error {
	if !e.Info().Writable {
		return nil // the engine has the reason
	}
	for _, name := range topics {
		switch _, err := e.Topic(ctx, name); {
		case err == nil:
			return about("topic", name, storage.ErrTopicExists)
		case !errors.Is(err, storage.ErrTopicNotFound):
			return err
		}
	}
	return nil
}

// createOnMount is the file operation that creates a topic.
func createOnMount(mnt, topic string, partitions int32, settings bool) string {
	if settings {
		return fmt.Sprintf("logmount umount %s, then this command again (mkdir makes a topic with the default settings)", mnt)
	}
	if partitions == 1 {
		return fmt.Sprintf("mkdir %s/%s", mnt, topic)
	}
	return fmt.Sprintf("mkdir %s/%s, then mkdir %s/%s/1 and so on up to %d", mnt, topic, mnt, topic, partitions-1)
}

// parseSettings reads NAME=VALUE pairs. The engine says which names and values there are.
func parseSettings(pairs []string) (map[string]string, error) {
	settings := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--config %s: the form is NAME=VALUE", p)
		}
		if _, twice := settings[name]; twice {
			return nil, fmt.Errorf("--config %s: %s is given twice", p, name)
		}
		settings[name] = value
	}
	return settings, nil
}

func newTopicsDeleteCmd() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:               "delete DATA TOPIC...",
		Short:             "Delete topics of a log directory that is not mounted",
		Long:              "Delete topics. A topic that still holds records is deleted, with all of them, only with --force.",
		Args:              between(2, 1<<20, "topics delete DATA TOPIC... [--force]"),
		ValidArgsFunction: topicsOf(-1),
		RunE: func(c *cobra.Command, args []string) error {
			topics := args[1:]
			if err := notTwice("topic", topics); err != nil {
				return err
			}
			return openFor(c.Context(), args[0], false, func(mnt string) string { return deleteOnMount(mnt, topics[0]) }, func(e storage.Engine) error {
				for _, name := range topics {
					if err := e.DeleteTopic(c.Context(), name, force); err != nil {
						return deleteError(name, err)
					}
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "delete the records too")
	return c
}

// deleteOnMount is the file operation that deletes a topic.
func deleteOnMount(mnt, topic string) string {
	return fmt.Sprintf("rmdir %s/%s (a partition is emptied with: cat end > start)", mnt, topic)
}

func deleteError(topic string, err error) error {
	err = about("topic", topic, err)
	if errors.Is(err, storage.ErrNotEmpty) {
		return fmt.Errorf("%w; --force deletes them too", err)
	}
	return err
}
