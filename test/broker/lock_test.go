package broker

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

// TestLock takes the lock that a writable mount takes, against a broker that starts and stops.
func TestLock(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			n := k.New(t, Options{})
			name := filepath.Join(n.Data, ".lock")
			take := func() vfs.Lock {
				t.Helper()
				l, err := vfs.OS().Lock(name, 0o644)
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			refused := func() {
				t.Helper()
				n.Launch(t)
				n.Wait(t)
				if log := n.Log(t); !strings.Contains(log, "Failed to acquire lock on file .lock") {
					t.Errorf("the broker ended for another reason:\n%s", tail(serious(log), 10))
				}
			}
			l := take()
			refused()
			if !l.Ours() {
				t.Error("the lock is not ours after a broker was refused")
			}
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
			rounds := 2
			if k.Version != Versions()[0] {
				rounds = 1
			}
			for range rounds {
				n.Start(t)
				if _, err := vfs.OS().Lock(name, 0o644); !errors.Is(err, storage.ErrLocked) {
					t.Fatalf("lock beside a broker: got %v, want ErrLocked", err)
				}
				// As early as it can be had while the broker stops: that one unlinks the file, maybe after it let go of it.
				n.Terminate(t)
				var l vfs.Lock
				Until(t, "the lock of a broker that stops", func() bool {
					var err error
					if l, err = vfs.OS().Lock(name, 0o644); err != nil && !errors.Is(err, storage.ErrLocked) {
						t.Fatal(err)
					}
					return err == nil
				})
				early := !n.Ended()
				n.Wait(t)
				t.Logf("locked before the broker's process ended: %v; ours afterwards: %v", early, l.Ours())
				if !l.Ours() {
					// Seen by who holds it, and remedied by taking it again.
					if err := l.Release(); err != nil {
						t.Fatal(err)
					}
					l = take()
				}
				start := time.Now()
				refused()
				t.Logf("refused after %v", time.Since(start).Round(time.Millisecond))
				if !l.Ours() {
					t.Error("the lock is not ours after a broker was refused")
				}
				if err := l.Release(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
