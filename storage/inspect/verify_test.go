package inspect

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/fixture"
	"github.com/logmount/logmount/test/logtree"
)

func TestVerifyBrokers(t *testing.T) {
	for _, test := range []struct {
		archive, dir string
		records      int64
		notices      []What
	}{
		{"clean-4.4.0", "clean", 22268, []What{FileLeftover}},
		{"live-4.4.0", "live", 22250, []What{FileLeftover, NotClean}},
		{"killed-4.4.0", "killed", 3025, []What{NotClean}},
		{"legacy-3.9.1", "legacy/v0", 1200, []What{CheckpointLine, MetadataMissing}},
		{"legacy-3.9.1", "legacy/v1", 1279, []What{CheckpointLine, MetadataMissing}},
	} {
		t.Run(test.dir, func(t *testing.T) {
			dir := filepath.Join(fixture.Unpack(t, test.archive), test.dir)
			var got []What
			sum, err := Verify(context.Background(), vfs.OS(), dir, VerifyOptions{}, func(f Finding) {
				if f.Severity == Damage {
					t.Errorf("%+v", f)
				}
				if !slices.Contains(got, f.What) {
					got = append(got, f.What)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.notices) || sum.Records != test.records || sum.Damage != 0 {
				t.Errorf("notices %v, want %v; %+v", got, test.notices, sum)
			}
		})
	}
}

// A .lock that was left by somebody who was killed says nothing; one that somebody holds does.
func TestVerifyTellsWhoHoldsTheLock(t *testing.T) {
	fsys := ownTree().Disk(t)
	lock, err := fsys.Lock("/data/.lock", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := verify(t, fsys, VerifyOptions{}); len(list) != 1 || list[0].What != Locked || list[0].Severity != Notice {
		t.Errorf("held: %+v", list)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(fsys, "/data/.lock", nil, 0o644, nil); err != nil {
		t.Fatal(err)
	}
	if list, _ := verify(t, fsys, VerifyOptions{}); len(list) != 0 {
		t.Errorf("left: %+v", list)
	}
}

func TestVerifyOwn(t *testing.T) {
	own := ownTree()
	list, sum := verify(t, own.Disk(t), VerifyOptions{})
	if len(list) != 0 || sum.Records != 720 || sum.Segments < 3 || !sum.CleanShutdown {
		t.Fatalf("%v, %+v", list, sum)
	}
	again := writeOwn(own.Disk(t), 5)
	if list, sum := verify(t, again.Disk(t), VerifyOptions{Adopt: true}); len(list) != 0 || sum.Records != 1020 {
		t.Fatalf("reopened: %v, %+v", list, sum)
	}
	if list, sum := verify(t, tree{}.Disk(t), VerifyOptions{}); len(list) != 0 || sum != (Summary{}) {
		t.Fatalf("empty: %v, %+v", list, sum)
	}
}

func TestVerifySelects(t *testing.T) {
	own := ownTree()
	own = cloneTree(own)
	for name, b := range own {
		if rest, ok := strings.CutPrefix(name, "orders-0/"); ok {
			own["other-0/"+rest] = b
		}
	}
	own.Flip("orders-0/00000000000000000000.log", 100)
	for _, test := range []struct {
		sel        []string
		partitions int
		damage     bool
	}{
		{nil, 2, true},
		{[]string{"orders"}, 1, true},
		{[]string{"other"}, 1, false},
		{[]string{"other-0", "orders-0"}, 2, true},
	} {
		_, sum := verify(t, own.Disk(t), VerifyOptions{Select: test.sel})
		if sum.Partitions != test.partitions || (sum.Damage > 0) != test.damage {
			t.Errorf("%v: %+v", test.sel, sum)
		}
	}
	_, err := Verify(context.Background(), own.Disk(t), "/data", VerifyOptions{Select: []string{"orders-1"}}, func(Finding) {})
	if !errors.Is(err, storage.ErrTopicNotFound) {
		t.Errorf("unknown partition: %v", err)
	}
	m := tree{"a file": nil}.Disk(t)
	if _, err := Verify(context.Background(), m, "/data", VerifyOptions{}, func(Finding) {}); !errors.Is(err, storage.ErrNotLogDirectory) {
		t.Errorf("no log directory: %v", err)
	}
}

func TestVerifyStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	want := errors.New("enough")
	cancel(want)
	_, err := Verify(ctx, ownTree().Disk(t), "/data", VerifyOptions{}, func(Finding) {})
	if !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestVerifyProgress(t *testing.T) {
	var last, all int64
	_, sum := verify(t, ownTree().Disk(t), VerifyOptions{Jobs: 3, Progress: func(done, total int64) {
		if done < last {
			t.Errorf("%d after %d", done, last)
		}
		last, all = done, total
	}})
	if last != sum.Bytes || all != sum.Bytes {
		t.Errorf("got %d of %d, want %d", last, all, sum.Bytes)
	}
}

func TestVerifyWritesNothing(t *testing.T) {
	own := ownTree()
	m := own.Disk(t)
	_, _ = verify(t, m, VerifyOptions{Adopt: true})
	after := logtree.Read(t, m, "/data", func(string) bool { return true })
	if len(after) != len(own) {
		t.Errorf("%d files, want %d", len(after), len(own))
	}
	if open := m.OpenFiles(); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}
