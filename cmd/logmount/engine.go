package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/logmount/logmount/fs"
	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/vfs"
)

// lockWait is how long a mount waits for the lock of a directory that is being unmounted.
const lockWait = 30 * time.Second

// engineOptions are the options that mounts and verbs have in common. They lack the directory.
func engineOptions(readOnly bool, log *slog.Logger) local.Options {
	return local.Options{
		FS:       vfs.OS(),
		ReadOnly: readOnly,
		CacheDir: cacheDir(),
		Now:      time.Now,
		Rand:     rand.Reader,
		Log:      log,
	}
}

// openFor opens DATA for a verb and hands the engine to do. A verb that writes refuses a directory that somebody has locked; instead says what to do on
// the mount that holds it.
func openFor(ctx context.Context, arg string, readOnly bool, instead func(mnt string) string, do func(storage.Engine) error) error {
	dirs, err := dirsThere(arg)
	if err != nil {
		return err
	}
	return openDirs(ctx, dirs, readOnly, instead, do)
}

// openDirs is openFor of directories that may be missing: one that is to be written is made then.
func openDirs(ctx context.Context, dirs []string, readOnly bool, instead func(mnt string) string, do func(storage.Engine) error) (err error) {
	data := strings.Join(dirs, ",")
	e, err := openEngine(ctx, dirs, engineOptions(readOnly, slog.New(slog.DiscardHandler)))
	if errors.Is(err, storage.ErrLocked) {
		return lockedError(data, instead, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if cerr := e.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("closing %s: %w", data, cerr)
		}
	}()
	return do(e)
}

// tellCreated returns what tells, when it is called, that a log directory has been made which is missing now: its name may have been a slip.
func tellCreated(w io.Writer, data string) func() {
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		return func() {}
	}
	return func() { _, _ = fmt.Fprintf(w, "created %s\n", data) }
}

// lockedError says who has a directory and which file operation does on its mount what was asked for.
func lockedError(data string, instead func(mnt string) string, err error) error {
	at := mountsOf(data)
	if len(at) == 0 {
		return fmt.Errorf("%w; no mount of it is to be seen here: another logmount, another container or a broker has it", err)
	}
	if instead == nil {
		return fmt.Errorf("%s is already mounted at %s; unmount it first: logmount umount %s", data, strings.Join(at, " and "), at[0])
	}
	return fmt.Errorf("%s is mounted at %s; on a mounted directory this is done with: %s", data, at[0], instead(at[0]))
}

// mountsOf lists where a log directory is mounted.
func mountsOf(data string) []string {
	var at []string
	all, err := fs.Mounts()
	if err != nil {
		return nil // it only makes an error clearer
	}
	for _, m := range all {
		if m.Source == data {
			at = append(at, m.Mountpoint)
		}
	}
	return at
}

// newLogger returns a logger of lines for people and for grep.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
