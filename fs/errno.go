package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"github.com/logmount/logmount/storage"
)

// refusal is an errno that this package chose itself, as against one that a storage error becomes.
type refusal syscall.Errno

// Error implements error.
func (r refusal) Error() string { return syscall.Errno(r).Error() }

const (
	errNoEntry    = refusal(syscall.ENOENT)
	errNotAllowed = refusal(syscall.EPERM)
	errNoAccess   = refusal(syscall.EACCES)
	errInvalid    = refusal(syscall.EINVAL)
	errNotDir     = refusal(syscall.ENOTDIR)
	errIsDir      = refusal(syscall.EISDIR)
	errBadFile    = refusal(syscall.EBADF)
	errTryAgain   = refusal(syscall.EAGAIN)
	errStale      = refusal(syscall.ESTALE)
	errExists     = refusal(syscall.EEXIST)
)

// errnoRow says what a sentinel becomes at the boundary to the kernel.
type errnoRow struct {
	err   error
	errno syscall.Errno
	// told is set where the errno alone does not say enough: the reason goes to the reports.
	told bool
}

// errnoRows is looked through in its order, so that what weighs more stands first: an error that says both "corrupt" and "not found" is a corruption.
// ENOSYS and its relatives never appear: the kernel remembers them for the life of the mount and stops asking.
var errnoRows = []errnoRow{
	{storage.ErrCorrupt, syscall.EIO, true},
	{storage.ErrPoisoned, syscall.EIO, true},
	{storage.ErrUnsupported, syscall.EIO, true},
	{storage.ErrOffsetGone, syscall.ESTALE, false},
	{storage.ErrReadOnly, syscall.EROFS, true},
	{storage.ErrNotPermitted, syscall.EPERM, true},
	{storage.ErrTooLarge, syscall.EMSGSIZE, true},
	{storage.ErrInvalidRecord, syscall.EINVAL, true},
	{storage.ErrInvalidConfig, syscall.EINVAL, true},
	{storage.ErrInvalidName, syscall.EINVAL, true},
	{storage.ErrTopicNotFound, syscall.ENOENT, false},
	{storage.ErrPartitionNotFound, syscall.ENOENT, false},
	{storage.ErrOutOfRange, syscall.ENOENT, false},
	{storage.ErrTopicExists, syscall.EEXIST, false},
	{storage.ErrNotEmpty, syscall.ENOTEMPTY, false},
	{storage.ErrNotLogDirectory, syscall.EINVAL, true},
	{storage.ErrLocked, syscall.EBUSY, true},
	// Not EAGAIN: on a blocking file it makes the runtimes of Go and Python wait for a readiness that is never announced.
	{storage.ErrUnavailable, syscall.ETIMEDOUT, true},
	// Not EBADF, which reads as a mistake of the program.
	{storage.ErrClosed, syscall.ESHUTDOWN, false},
	{context.DeadlineExceeded, syscall.ETIMEDOUT, false},
	{context.Canceled, syscall.EINTR, false},
}

// errnoPassed are the errors of the disk that a program knows how to take.
var errnoPassed = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE, syscall.EROFS, syscall.EACCES,
}

// classify is the one place where an error becomes an errno. told says that its reason should be told to people; known is false for an error that nobody
// expected, which is EIO.
func classify(err error) (errno syscall.Errno, told, known bool) {
	if err == nil {
		return 0, false, true
	}
	for i := range errnoRows {
		if row := &errnoRows[i]; errors.Is(err, row.err) {
			return row.errno, row.told, true
		}
	}
	for _, e := range errnoPassed {
		if errors.Is(err, e) {
			return e, false, true
		}
	}
	return syscall.EIO, true, false
}

// failure turns err into the errno of operation op on path, a path below the mount point. What a person should read afterwards goes to reports and to
// the log, a corrupt place once; the rest is seen with debug logging only. Either of log and reports may be nil.
func failure(log *slog.Logger, reports *Reports, op, path string, err error) syscall.Errno {
	errno, told, known := classify(err)
	switch {
	case errno == 0:
		return 0
	case !known:
		if log != nil {
			log.Warn("unexpected error", "op", op, "path", path, "error", err)
		}
		reports.add(storage.Report{Path: path, Reason: op + ": " + err.Error()}, "", false)
	case told:
		report, more := reportOf(path, err)
		reports.add(report, more, true)
	}
	if log != nil {
		log.Debug("refused", "op", op, "path", path, "errno", int(errno), "error", err)
	}
	return errno
}

// reportOf describes an expected error. more is what the reason ends with where that is known: whoever meets a damaged place first may not know where the log
// goes on, and the place is the same.
func reportOf(path string, err error) (report storage.Report, more string) {
	if c, ok := errors.AsType[*storage.CorruptError](err); ok {
		r := storage.Report{Path: c.Path, Reason: strings.TrimPrefix(c.Error(), c.Path+": ")}
		if d, ok := errors.AsType[*damageError](err); ok {
			more = fmt.Sprintf("; the log goes on at offset %d", d.next)
		}
		return r, more
	}
	return storage.Report{Path: path, Reason: err.Error()}, ""
}
