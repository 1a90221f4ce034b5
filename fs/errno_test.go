package fs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
)

// sentinels is checked against storage/errors.go by TestEverySentinelHasAnErrno.
var sentinels = map[string]struct {
	err  error
	want syscall.Errno
}{
	"ErrTopicNotFound":     {storage.ErrTopicNotFound, syscall.ENOENT},
	"ErrPartitionNotFound": {storage.ErrPartitionNotFound, syscall.ENOENT},
	"ErrTopicExists":       {storage.ErrTopicExists, syscall.EEXIST},
	"ErrNotEmpty":          {storage.ErrNotEmpty, syscall.ENOTEMPTY},
	"ErrInvalidName":       {storage.ErrInvalidName, syscall.EINVAL},
	"ErrInvalidRecord":     {storage.ErrInvalidRecord, syscall.EINVAL},
	"ErrInvalidConfig":     {storage.ErrInvalidConfig, syscall.EINVAL},
	"ErrTooLarge":          {storage.ErrTooLarge, syscall.EMSGSIZE},
	"ErrOutOfRange":        {storage.ErrOutOfRange, syscall.ENOENT},
	"ErrOffsetGone":        {storage.ErrOffsetGone, syscall.ESTALE},
	"ErrReadOnly":          {storage.ErrReadOnly, syscall.EROFS},
	"ErrNotPermitted":      {storage.ErrNotPermitted, syscall.EPERM},
	"ErrPoisoned":          {storage.ErrPoisoned, syscall.EIO},
	"ErrCorrupt":           {storage.ErrCorrupt, syscall.EIO},
	"ErrUnsupported":       {storage.ErrUnsupported, syscall.EIO},
	"ErrLocked":            {storage.ErrLocked, syscall.EBUSY},
	"ErrNotLogDirectory":   {storage.ErrNotLogDirectory, syscall.EINVAL},
	"ErrUnavailable":       {storage.ErrUnavailable, syscall.ETIMEDOUT},
	"ErrClosed":            {storage.ErrClosed, syscall.ESHUTDOWN},
}

func TestEverySentinelHasAnErrno(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../storage/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if !strings.HasPrefix(name.Name, "Err") {
					continue
				}
				declared++
				s, ok := sentinels[name.Name]
				if !ok {
					t.Errorf("storage.%s has no row in this test", name.Name)
					continue
				}
				got, _, known := classify(fmt.Errorf("doing this: %w", s.err))
				if got != s.want || !known {
					t.Errorf("storage.%s: got %v (known %v), want %v", name.Name, got, known, s.want)
				}
			}
		}
	}
	if declared != len(sentinels) {
		t.Errorf("storage/errors.go declares %d sentinels, the test knows %d", declared, len(sentinels))
	}
}

func TestErrnoOf(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		want  syscall.Errno
		known bool
	}{
		{"nil", nil, 0, true},
		{"corrupt error", &storage.CorruptError{Path: "x", Reason: "crc"}, syscall.EIO, true},
		{"corruption found while looking for a missing thing", &storage.CorruptError{Path: "x", Err: storage.ErrTopicNotFound}, syscall.EIO, true},
		{"poisoned by a full disk", fmt.Errorf("%w: %w", storage.ErrPoisoned, syscall.ENOSPC), syscall.EIO, true},
		{"read-only medium", fmt.Errorf("%w: %w", storage.ErrReadOnly, syscall.EACCES), syscall.EROFS, true},
		{"interrupted", fmt.Errorf("wait: %w", context.Canceled), syscall.EINTR, true},
		{"deadline", context.DeadlineExceeded, syscall.ETIMEDOUT, true},
		{"disk full", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, syscall.ENOSPC, true},
		{"quota", syscall.EDQUOT, syscall.EDQUOT, true},
		{"too big for the disk's file system", syscall.EFBIG, syscall.EFBIG, true},
		{"descriptors of the daemon", &os.PathError{Err: syscall.EMFILE}, syscall.EMFILE, true},
		{"descriptors of the machine", syscall.ENFILE, syscall.ENFILE, true},
		{"medium turned read-only", syscall.EROFS, syscall.EROFS, true},
		{"not ours", syscall.EACCES, syscall.EACCES, true},
		{"a disk that cannot", syscall.ENOSYS, syscall.EIO, false},
		{"a disk that does not", syscall.EOPNOTSUPP, syscall.EIO, false},
		{"a file missing on disk", syscall.ENOENT, syscall.EIO, false},
		{"unknown", errors.New("surprise"), syscall.EIO, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, known := classify(tt.err)
			if got != tt.want || known != tt.known {
				t.Errorf("got %v (known %v), want %v (known %v)", got, known, tt.want, tt.known)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	r := NewReports(nil, clock())
	corrupt := &storage.CorruptError{Path: "orders-0/0.log", Pos: 61, Offset: 4, Reason: "checksum does not match"}
	for range 3 {
		if got := failure(nil, r, "read", "orders/0/tail", fmt.Errorf("read: %w", corrupt)); got != syscall.EIO {
			t.Fatalf("got %v, want EIO", got)
		}
	}
	failure(nil, r, "read", "orders/0/tail", &damageError{fmt.Errorf("read: %w", corrupt), 9})
	failure(nil, r, "write", "orders/0/tail.json", fmt.Errorf("%w: column 3", storage.ErrInvalidRecord))
	failure(nil, r, "write", "orders/0/tail.json", fmt.Errorf("%w: column 9", storage.ErrInvalidRecord))
	failure(nil, r, "write", "orders/0/tail.json", fmt.Errorf("%w: column 9", storage.ErrInvalidRecord))
	failure(nil, r, "open", "orders", fmt.Errorf("%w: internal", storage.ErrNotPermitted))
	failure(nil, r, "mkdir", "orders", fmt.Errorf("%w: the next number is 1", storage.ErrInvalidName))
	failure(nil, r, "write", "orders/0/tail", fmt.Errorf("%w: max.message.bytes is 9", storage.ErrTooLarge))
	failure(nil, r, "read", "orders/0/tail", context.Canceled)
	failure(nil, r, "lookup", "nothing", storage.ErrTopicNotFound)
	failure(nil, r, "open", "orders/0/tail", errors.New("surprise"))
	if got := failure(nil, r, "open", "x", nil); got != 0 {
		t.Errorf("nil: got %v, want 0", got)
	}

	want := `{"time":"2026-08-30T00:00:04Z","path":"orders-0/0.log","reason":"position 61, offset 4: checksum does not match; the log goes on at offset 9","first":"2026-08-30T00:00:01Z","count":4}
{"time":"2026-08-30T00:00:05Z","path":"orders/0/tail.json","reason":"invalid record: column 3"}
{"time":"2026-08-30T00:00:07Z","path":"orders/0/tail.json","reason":"invalid record: column 9","first":"2026-08-30T00:00:06Z","count":2}
{"time":"2026-08-30T00:00:08Z","path":"orders","reason":"operation not permitted: internal"}
{"time":"2026-08-30T00:00:09Z","path":"orders","reason":"invalid name: the next number is 1"}
{"time":"2026-08-30T00:00:10Z","path":"orders/0/tail","reason":"record too large: max.message.bytes is 9"}
{"time":"2026-08-30T00:00:11Z","path":"orders/0/tail","reason":"open: surprise"}
`
	if got := string(r.JSON()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
