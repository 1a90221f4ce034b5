package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// TestFullDisk: whatever there is no room for is refused with ENOSPC and leaves no trace; with room everything works again, and the end is an orderly one.
func TestFullDisk(t *testing.T) {
	create := func(e *Engine, name string) error {
		return e.CreateTopic(t.Context(), storage.TopicSpec{Name: name, Partitions: 2})
	}
	for room := range int64(1200) {
		if room%37 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%d bytes left", room), func(t *testing.T) {
			mem := memfs.New()
			e := mustOpen(t, testOptions(mem))
			p := mustCreate(t, e, "orders")
			mustCreate(t, e, "empty")
			mustAppend(t, p, "a", "b", "c")

			mem.SetCapacity(mem.Used() + room)
			made := create(e, "more")
			for _, err := range []error{made, create(e, "more2"), e.AddPartition(t.Context(), "orders", 1), e.DeleteTopic(t.Context(), "empty", false), p.SetStart(t.Context(), 1)} {
				if err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("full: %v, want ENOSPC", err)
				}
			}
			if err := p.Writable(context.Background()); err != nil {
				t.Errorf("writable: %v", err)
			}

			mem.SetCapacity(0)
			mustAppend(t, p, "d")
			if err := create(e, "more"); (made == nil) != errors.Is(err, storage.ErrTopicExists) || made != nil && err != nil {
				t.Errorf("create: %v, after %v", err, made)
			}
			mustAppend(t, mustPartition(t, e, "more", 1), "x")
			mustCreate(t, e, "another")
			if err := p.SetStart(t.Context(), 2); err != nil {
				t.Errorf("start: %v", err)
			}
			if err := e.DeleteTopic(t.Context(), "empty", false); err != nil && !errors.Is(err, storage.ErrTopicNotFound) {
				t.Errorf("delete: %v", err)
			}
			mustClose(t, e)
			if there, err := vfs.Exists(mem, "/data/"+state.CleanMarkerFile); !there {
				t.Errorf("no marker of a clean shutdown: %v", err)
			}
			entries, err := mem.ReadDir("/data")
			if err != nil {
				t.Fatal(err)
			}
			for _, en := range entries {
				if strings.HasSuffix(en.Name, "-delete") || strings.HasSuffix(en.Name, vfs.TempSuffix) {
					t.Errorf("%s is left", en.Name)
				}
			}
		})
	}
}

// TestFullDiskLeavesNoTopic: a topic that could not be made is not found by the next start either, also where taking it back had to wait for room.
func TestFullDiskLeavesNoTopic(t *testing.T) {
	mem := memfs.New()
	disk := faultfs.New(mem)
	e := mustOpen(t, testOptions(disk))
	mustCreate(t, e, "orders")
	full := false
	disk.Hook(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpMkdir {
			full = true
		}
		if full && (op == faultfs.OpWrite || op == faultfs.OpMkdir) {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: "more", Partitions: 1}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("create: %v, want ENOSPC", err)
	}
	disk.Reset()
	mustClose(t, e)
	e = mustOpen(t, testOptions(mem))
	defer mustClose(t, e)
	if _, err := e.Topic(t.Context(), "more"); !errors.Is(err, storage.ErrTopicNotFound) {
		t.Errorf("topic: %v, want none", err)
	}
}

// TestCatalogueInDoubt: while it is not known which catalogue a crash would leave, appends go on, save to what it may say to be deleted.
func TestCatalogueInDoubt(t *testing.T) {
	disk := faultfs.New(memfs.New())
	e := mustOpen(t, testOptions(disk))
	p := mustCreate(t, e, "orders")
	doomed := mustCreate(t, e, "empty")
	disk.Hook(func(op faultfs.Op, name string) error {
		if op == faultfs.OpSyncDir && name == "/data" {
			return syscall.EIO
		}
		return nil
	})
	if err := e.DeleteTopic(t.Context(), "empty", false); !errors.Is(err, syscall.EIO) {
		t.Fatalf("delete: %v, want EIO", err)
	}
	mustAppend(t, p, "a")
	if _, err := doomed.Append(t.Context(), []storage.Record{{Value: []byte("x")}}, 1000); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("append to what may be deleted: %v, want %v", err, storage.ErrReadOnly)
	}
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: "more", Partitions: 1}); !errors.Is(err, syscall.EIO) {
		t.Errorf("create: %v, want EIO", err)
	}
	disk.Reset()
	mustCreate(t, e, "more")
	mustAppend(t, doomed, "x")
	mustClose(t, e)
}
