package partition

import (
	"errors"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// TestGone: a log that has been removed, abandoned or closed says so to whoever asks, and what was read before stays readable.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(l *Log) error
		want error
	}{
		{"removed", func(l *Log) error { l.Remove(); return nil }, storage.ErrPartitionNotFound},
		{"abandoned", func(l *Log) error { l.Abandon(); return nil }, storage.ErrClosed},
		{"closed", func(l *Log) error { return l.Close(t.Context()) }, storage.ErrClosed},
		{"closed, then removed", func(l *Log) error { err := l.Close(t.Context()); l.Remove(); return err }, storage.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t, memfs.New())
			l := d.open(t)
			mustAppend(t, l, storage.Record{Value: []byte("a")}, storage.Record{Value: []byte("b")})
			s, err := l.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wake := make(chan struct{}, 1)
			defer l.Watch(wake)()
			if err := c.end(l); err != nil {
				t.Fatal(err)
			}
			<-wake
			_, snapErr := l.Snapshot(t.Context())
			_, appendErr := l.Append(t.Context(), []storage.Record{{Value: []byte("x")}}, 1000)
			for what, err := range map[string]error{
				"snapshot": snapErr, "append": appendErr, "check": l.CheckAppend(t.Context(), &storage.Record{}), "sync": l.Sync(t.Context()), "start": l.SetStart(t.Context(), 1),
			} {
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", what, err, c.want)
				}
			}
			cur := s.Records(0)
			defer cur.Close()
			if r, err := cur.Next(t.Context()); err != nil || string(r.Value) != "a" {
				t.Errorf("a snapshot from before: %v, %v", r, err)
			}
		})
	}
}
