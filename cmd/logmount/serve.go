package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/logmount/logmount/fs"
	"github.com/logmount/logmount/storage"
)

// errSignalled is the cause of a context that a signal cancelled.
var errSignalled = errors.New("stopped by a signal")

// serve opens DATA, mounts it, calls ready when the mount answers, and serves until it is unmounted or a signal comes. Then it takes everything down in
// the order that keeps what was written: no new requests, unmount, engine.
func serve(ctx context.Context, r mountRequest, log *slog.Logger, hangup bool, ready func()) error {
	ctx, release := stopOnSignal(ctx, log, hangup)
	defer release()
	reports := fs.NewReports(log, time.Now)
	o := engineOptions(r.opts.readOnly, log)
	o.Report = reports.Add
	o.Create = r.create
	o.Committed = r.opts.committed
	o.ReadWrite, o.Unreplicated, o.Exact = r.readWrite, r.opts.sole, r.opts.exact
	if r.metadata != "" {
		o.MetadataDirs = []string{r.metadata}
	}
	already := mountsOf(r.data)
	if len(already) == 0 {
		o.LockWait = lockWait // who holds the lock without a mount is letting go of it
	}
	e, err := openEngine(ctx, r.dirs, o)
	if errors.Is(err, storage.ErrLocked) {
		return lockedError(r.data, nil, err)
	}
	if len(r.dirs) == 1 && r.opts.readOnly && errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not there; give the path of a log directory", r.data)
	}
	if err := lockRefused(err); err != nil {
		return err
	}
	if errors.Is(err, os.ErrNotExist) && !r.create && !r.opts.readOnly {
		return fmt.Errorf("%s is not there, and neither is %s; --create makes both", r.data, filepath.Dir(r.data))
	}
	if err != nil {
		return err
	}
	m, err := fs.Mount(ctx, e, mountOptionsOf(r, reports, log))
	if err != nil {
		return errors.Join(err, e.Close())
	}
	info := e.Info()
	log.Info("mounted", "data", r.data, "mountpoint", r.mnt, "writable", info.Writable, "reason", info.Reason, "pid", os.Getpid(), "version", buildVersion())
	ready()
	return takeDown(ctx, m, e, log)
}

// lockName is the file at the top of a log directory that a writer locks.
const lockName = ".lock"

// lockRefused says what can be done where the lock cannot be taken because DATA belongs to somebody else; of any other error it is nil.
func lockRefused(err error) error {
	pe, ok := errors.AsType[*os.PathError](err)
	if !ok || filepath.Base(pe.Path) != lockName || !errors.Is(err, os.ErrPermission) {
		return nil
	}
	return fmt.Errorf("%s: %w: only who may write the log directory may mount it for writing; -o ro reads without a lock", pe.Path, pe.Err)
}

// mountOptionsOf says how the tree is to look.
func mountOptionsOf(r mountRequest, reports *fs.Reports, log *slog.Logger) fs.MountOptions {
	return fs.MountOptions{
		Mountpoint: r.mnt,
		AllowOther: r.opts.allowOther,
		Flags:      r.opts.flags,
		FSName:     r.data,
		Tree: fs.Options{
			ReadOnly:  r.opts.readOnly,
			UID:       r.opts.uid,
			GID:       r.opts.gid,
			Umask:     r.opts.umask,
			BatchSize: r.opts.batchSize,
			Now:       time.Now,
			Location:  time.Local,
			Version:   versionString(),
			Log:       log,
			Reports:   reports,
			Settings:  settingsOf(r),
		},
	}
}

// settingsOf is what `.logmount/config` shows of the command line, beside what the tree knows by itself.
func settingsOf(r mountRequest) map[string]string {
	return map[string]string{
		"mountpoint": r.mnt,
		"options":    strings.Join(r.opts.given, ","),
		"log_file":   r.logFile,
		"log_level":  r.logLevel.String(),
		"read_write": strconv.FormatBool(r.readWrite),
	}
}

// takeDown waits for the end of the mount, whoever brings it about, and lets go of everything. The engine's sync is not cut short by anything.
func takeDown(ctx context.Context, m *fs.Mounted, e storage.Engine, log *slog.Logger) error {
	select {
	case <-ctx.Done():
		log.Info("stopping", "cause", context.Cause(ctx))
	case <-m.Done():
		log.Info("unmounted")
	}
	// Everything is on stable storage and marked so before the mount goes: whoever sees it gone may take the directory.
	whole := context.WithoutCancel(ctx)
	m.Quiesce(whole)
	err := e.Close()
	if err != nil {
		log.Error("closing the log directory failed", "err", err)
		err = fmt.Errorf("closing the log directory: %w", err)
	}
	if derr := m.Detach(whole); derr != nil {
		log.Error("unmounting failed", "err", derr)
		err = errors.Join(err, derr)
	}
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// stopOnSignal returns a context that the first SIGINT or SIGTERM (and, where hangup, SIGHUP) cancels. Further ones are swallowed until release. Nor does it
// end a mount that whoever read its stderr has gone away: SIGPIPE is caught, rather than ignored, as programs started from here would inherit that.
func stopOnSignal(ctx context.Context, log *slog.Logger, hangup bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	if hangup {
		signal.Notify(ch, syscall.SIGHUP)
	} else {
		signal.Ignore(syscall.SIGHUP)
	}
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case s := <-ch:
				if ctx.Err() != nil {
					log.Warn("still stopping: what was written is being put on stable storage", "signal", s.String())
				}
				cancel(fmt.Errorf("%w: %s", errSignalled, s))
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-stopped
		signal.Stop(ch)
		signal.Stop(pipe)
		cancel(nil)
	}
}
