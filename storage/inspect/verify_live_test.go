package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/logtree"
)

// A directory that is being written to is growing, not damaged.
func TestVerifyWhileAppending(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	e := logtree.Must(local.Open(ctx, local.Options{FS: vfs.OS(), Dir: dir, Now: time.Now, Rand: rand.New(rand.NewSource(1))}))
	config := map[string]string{"segment.bytes": "100000", "index.interval.bytes": "1000"}
	if err := e.CreateTopic(ctx, storage.TopicSpec{Name: "t", Partitions: 2, Config: config}); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	appended := make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil && !done.Load() && i < 5000; i++ {
			var p storage.Partition
			if p, err = e.Partition(ctx, storage.TopicPartition{Topic: "t", Partition: int32(i % 2)}); err == nil {
				recs := []storage.Record{{Timestamp: int64(i), Value: fmt.Appendf(nil, "%0200d", i)}, {Timestamp: int64(i), Value: fmt.Appendf(nil, "%0300d", i)}}
				_, err = p.Append(ctx, recs, 300)
			}
		}
		appended <- err
	}()
	for range 20 {
		_, err := Verify(ctx, vfs.OS(), dir, VerifyOptions{}, func(f Finding) {
			if f.Severity == Damage {
				t.Errorf("%+v", f)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	if err := errors.Join(<-appended, e.Close()); err != nil {
		t.Fatal(err)
	}
	sum, err := Verify(ctx, vfs.OS(), dir, VerifyOptions{}, func(f Finding) { t.Errorf("%+v", f) })
	if err != nil || sum.Segments < 2 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// refusing is a disk on which some files cannot be opened.
type refusing struct {
	vfs.FS
	name string
	err  error
}

func (r refusing) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if strings.HasSuffix(name, r.name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: r.err}
	}
	return r.FS.OpenFile(name, flag, perm)
}

func TestVerifyFilesThatCannotBeRead(t *testing.T) {
	for _, name := range []string{"00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex", "partition.metadata", "leader-epoch-checkpoint", "recovery-point-offset-checkpoint", ".logmount-topics.json"} {
		var found []Finding
		try := func(err error) error {
			found = nil
			_, got := Verify(context.Background(), refusing{ownTree().Disk(t), name, err}, "/data", VerifyOptions{}, func(f Finding) { found = append(found, f) })
			return got
		}
		if err := try(syscall.EACCES); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s: no permission: %v", name, err)
		}
		if err := try(syscall.EIO); err != nil || len(found) != 1 || found[0].What != Unreadable || found[0].Severity != Damage {
			t.Errorf("%s: bad disk: %+v, %v", name, found, err)
		}
		if err := try(os.ErrNotExist); err != nil {
			t.Errorf("%s: vanished: %v", name, err)
		}
		for _, f := range found {
			if f.Severity == Damage {
				t.Errorf("%s: vanished: %+v", name, f)
			}
		}
	}
}
