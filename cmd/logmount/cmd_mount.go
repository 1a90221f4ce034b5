package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/logmount/logmount/fs"
)

// mountFlags are the flags of mount as typed.
type mountFlags struct {
	foreground bool
	create     bool
	readWrite  bool
	metadata   string
	options    []string
	logFile    string
	logLevel   string
	statusFD   int
}

// complete has the flags completed that register has added to c's.
func (f *mountFlags) complete(c *cobra.Command) {
	completeFlag(c, "options", mountOption)
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	completeFlag(c, "metadata-dir", directories)
}

func (f *mountFlags) register(s *pflag.FlagSet) {
	s.BoolVarP(&f.foreground, "foreground", "f", false, "stay in the foreground (systemd, debugging)")
	s.StringArrayVarP(&f.options, "options", "o", nil, "mount options, as for mount(8): "+knownOptions)
	s.BoolVar(&f.create, "create", false, "create DATA, with its parents, where it is missing")
	s.BoolVar(&f.readWrite, "read-write", false, "let records be appended to, and deleted from the start of, the logs of a stopped broker or a copy")
	s.StringVar(&f.metadata, "metadata-dir", "", "with --read-write: where the cluster's __cluster_metadata-0 is, if not in DATA")
	s.StringVar(&f.logFile, "log-file", "", "append the daemon's log to this file")
	s.StringVar(&f.logLevel, "log-level", "info", "log from this level on: debug, info, warn or error")
	numberVar(s, &f.statusFD, "status-fd", 1, math.MaxInt32, "descriptor on which the daemon tells its parent how the mount went")
	_ = s.MarkHidden("status-fd")
}

func newMountCmd() *cobra.Command {
	var o mountFlags
	c := &cobra.Command{
		Use:   "mount DATA MNT",
		Short: "Mount the log directory DATA at MNT (the default verb)",
		RunE:  func(c *cobra.Command, args []string) error { return runMount(c, args, &o) },
	}
	o.register(c.Flags())
	o.complete(c)
	c.ValidArgsFunction = directories
	return c
}

// mountRequest is a mount, with everything checked that can be checked without touching DATA or MNT.
type mountRequest struct {
	dirs      []string // absolute
	data, mnt string   // absolute; data is all of dirs with commas between them
	opts      mountOptions
	create    bool
	readWrite bool
	metadata  string // absolute, or empty
	logFile   string // absolute, or empty
	logLevel  slog.Level
}

func (f *mountFlags) request(args []string) (r mountRequest, err error) {
	if err := exactly(2, "DATA MNT [-o OPTIONS]")(nil, args); err != nil {
		return r, err
	}
	if r.opts, err = parseMountOptions(f.options); err != nil {
		return r, err
	}
	if r.dirs, err = dataPaths(args[0]); err != nil {
		return r, err
	}
	r.data = strings.Join(r.dirs, ",")
	if args[1] == "" {
		return r, errors.New("MNT is empty; give the path of an empty directory")
	}
	if r.mnt, err = filepath.Abs(args[1]); err != nil {
		return r, fmt.Errorf("%s: %w", args[1], err)
	}
	if f.logFile != "" {
		if r.logFile, err = filepath.Abs(f.logFile); err != nil {
			return r, fmt.Errorf("log file %s: %w", f.logFile, err)
		}
		if within(r.logFile, r.mnt) {
			return r, fmt.Errorf("the log file %s lies below the mountpoint", r.logFile)
		}
	}
	switch strings.ToLower(f.logLevel) {
	case "debug":
		r.logLevel = slog.LevelDebug
	case "info":
		r.logLevel = slog.LevelInfo
	case "warn":
		r.logLevel = slog.LevelWarn
	case "error":
		r.logLevel = slog.LevelError
	default:
		return r, fmt.Errorf("unknown log level %q: debug, info, warn or error", f.logLevel)
	}
	r.create = f.create
	return r, f.foreign(&r)
}

// foreign checks what is about writing a directory that is another's.
func (f *mountFlags) foreign(r *mountRequest) (err error) {
	r.readWrite = f.readWrite
	switch {
	case f.readWrite && r.opts.readOnly:
		return errors.New("--read-write and -o ro exclude each other")
	case f.readWrite && r.opts.exact:
		return errors.New("-o batch=exact is for directories of logmount's own, not with --read-write")
	case !f.readWrite && f.metadata != "":
		return errors.New("--metadata-dir says something only with --read-write")
	case !f.readWrite && len(r.opts.sole) > 0:
		return errors.New("-o assume-unreplicated says something only with --read-write")
	case f.metadata == "":
		return nil
	}
	if r.metadata, err = dataPath(f.metadata); err != nil {
		return fmt.Errorf("--metadata-dir: %w", err)
	}
	if info, err := os.Stat(r.metadata); err != nil || !info.IsDir() {
		return fmt.Errorf("--metadata-dir %s: no such directory; give the one that holds __cluster_metadata-0", r.metadata)
	}
	return nil
}

// arguments are those with which the daemon is started: the same mount, spelt so that `ps` shows it.
func (r *mountRequest) arguments() []string {
	a := []string{"mount", "--foreground", "--log-level", strings.ToLower(r.logLevel.String())}
	if r.logFile != "" {
		a = append(a, "--log-file", r.logFile)
	}
	if r.create {
		a = append(a, "--create")
	}
	if r.readWrite {
		a = append(a, "--read-write")
	}
	if r.metadata != "" {
		a = append(a, "--metadata-dir", r.metadata)
	}
	if len(r.opts.given) > 0 {
		a = append(a, "-o", strings.Join(r.opts.given, ","))
	}
	return a
}

func runMount(c *cobra.Command, args []string, f *mountFlags) error {
	r, err := f.request(args)
	if err != nil {
		return err
	}
	if f.statusFD > 0 {
		return runDaemon(c.Context(), r, f.statusFD)
	}
	if r.mnt, err = fs.CheckMountpoint(c.Context(), r.mnt, r.dirs...); err != nil {
		return err
	}
	created := tellCreated(c.ErrOrStderr(), r.dirs[0])
	if f.foreground {
		return runForeground(c.Context(), r, c.ErrOrStderr(), created)
	}
	if err := startDaemon(c.Context(), r); err != nil {
		return err
	}
	created()
	return nil
}

// runForeground serves the mount in this process and logs to stderr or the log file.
func runForeground(ctx context.Context, r mountRequest, stderr io.Writer, ready func()) error {
	w := stderr
	if r.logFile != "" {
		f, err := openLog(r.logFile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // lines are written through; there is nothing to lose
		w = f
	}
	return serve(ctx, r, newLogger(w, r.logLevel), true, ready)
}

func openLog(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("log file %s: %w", name, err)
	}
	return f, nil
}
