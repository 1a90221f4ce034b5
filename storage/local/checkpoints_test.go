package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
)

// TestCheckpointsThatCannotBeRead: what cannot be read does not keep anybody from looking at the logs. It is an error where it would have to be written.
func TestCheckpointsThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(path string) error
	}{
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"a FIFO", func(path string) error { return syscall.Mkfifo(path, 0o644) }},
		{"a link to itself", func(path string) error { return os.Symlink(filepath.Base(path), path) }},
		{"a link to a directory", func(path string) error { return os.Symlink(".", path) }},
		{"nonsense", func(path string) error { return os.WriteFile(path, []byte("\xff\n\n"), 0o600) }},
		{"unreadable", nil},
	} {
		for _, file := range []string{state.LogStartFile, state.RecoveryPointFile} {
			t.Run(c.name+" "+file, func(t *testing.T) {
				disk := faultfs.New(vfs.OS())
				o := testOptions(disk)
				o.Dir = t.TempDir() + "/data"
				e := mustOpen(t, o)
				mustAppend(t, mustCreate(t, e, "orders"), "a", "b")
				mustClose(t, e)
				path := filepath.Join(o.Dir, file)
				if c.put == nil {
					disk.Hook(func(op faultfs.Op, name string) error {
						if op == faultfs.OpOpen && name == path {
							return fs.ErrPermission
						}
						return nil
					})
				} else {
					if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Fatal(err)
					}
					if err := c.put(path); err != nil {
						t.Fatal(err)
					}
				}
				var reports collector
				o.ReadOnly, o.Report = true, reports.add
				e = mustOpen(t, o)
				p := mustPartition(t, e, "orders", 0)
				s, err := p.Snapshot(t.Context())
				if err != nil || s.Start() != 0 || s.End() != 2 {
					t.Errorf("snapshot: %v, %v", s, err)
				}
				if _, err := e.Topics(t.Context()); err != nil {
					t.Errorf("topics: %v", err)
				}
				if all := strings.Join(reports.reasons(), "\n"); !strings.Contains(all, path) {
					t.Errorf("not reported: %s", all)
				}
				mustClose(t, e)

				o.ReadOnly = false
				e, err = Open(t.Context(), o)
				if nonsense := c.name == "nonsense"; (err == nil) != nonsense || errors.Is(err, storage.ErrNotLogDirectory) {
					t.Errorf("for writing: %v", err)
				}
				if err == nil {
					mustClose(t, e)
				}
			})
		}
	}
}
