package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/test/logtree"
)

// tree is a log directory: its files by their paths.
type tree = logtree.Tree

var testNow = logtree.Now

func config(m map[string]string) (storage.TopicConfig, error) { return local.ParseConfig(m) }

// ownTree is a directory of ours: orders-0 with several segments and users-0, closed in order.
var ownTree = sync.OnceValue(func() tree {
	return logtree.Write(nil, 8, map[string]string{"segment.bytes": "20000", "index.interval.bytes": "2000"}, "orders", "users")
})

// records returns all records that can be read, as text, by partition and offset.
func records(tb testing.TB, fsys vfs.FS) map[string]string {
	tb.Helper()
	ctx := tb.Context()
	e, err := local.Open(ctx, local.Options{FS: fsys, Dir: "/data", ReadOnly: true, Now: func() time.Time { return testNow }, Rand: rand.New(rand.NewSource(1))})
	if err != nil {
		tb.Logf("open: %v", err)
		return nil
	}
	defer func() { _ = e.Close() }()
	topics, err := e.Topics(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]string{}
	for _, t := range topics {
		for _, n := range t.Partitions {
			tp := storage.TopicPartition{Topic: t.Name, Partition: n}
			p, err := e.Partition(ctx, tp)
			if err != nil {
				tb.Logf("%s: %v", tp, err)
				continue
			}
			s, err := p.Snapshot(ctx)
			if err != nil {
				tb.Logf("%s: %v", tp, err)
				continue
			}
			c := s.Records(s.Start())
			for bad := 0; bad < 10000; {
				r, err := c.Next(ctx)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					bad++
					continue
				}
				out[fmt.Sprintf("%s %d", tp, r.Offset)] = fmt.Sprintf("%d %q %q %q", r.Timestamp, r.Key, r.Value, r.Headers)
			}
			c.Close()
		}
	}
	return out
}

// lost returns the records that were there before and are not afterwards.
func lost(before, after map[string]string) []string {
	var out []string
	for k, v := range before {
		if after[k] != v {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// verified returns what Verify finds.
func verified(tb testing.TB, fsys vfs.FS) (damage, notices []inspect.Finding) {
	tb.Helper()
	_, err := inspect.Verify(context.Background(), fsys, "/data", inspect.VerifyOptions{Jobs: 1}, func(f inspect.Finding) {
		if f.Severity == inspect.Damage {
			damage = append(damage, f)
		} else {
			notices = append(notices, f)
		}
	})
	if err != nil {
		tb.Fatalf("verify: %v", err)
	}
	return damage, notices
}

// repaired repairs and returns the actions.
func repaired(tb testing.TB, fsys vfs.FS, opt Options) ([]Action, Result) {
	tb.Helper()
	actions, res, err := tryRepair(fsys, opt)
	if err != nil {
		for _, a := range actions {
			tb.Log(a.String())
		}
		tb.Fatalf("repair: %v", err)
	}
	return actions, res
}

func tryRepair(fsys vfs.FS, opt Options) (actions []Action, res Result, err error) {
	opt.Jobs, opt.Config, opt.Now = 1, config, func() time.Time { return testNow }
	opt.Emit = func(a Action) { actions = append(actions, a) }
	res, err = Repair(context.Background(), fsys, "/data", opt)
	return actions, res, err
}

// readJournal reads the journal.
func readJournal(tb testing.TB, t tree) []Entry {
	tb.Helper()
	var out []Entry
	for line := range strings.Lines(string(t[JournalFile])) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			tb.Fatalf("journal: %v", err)
		}
		out = append(out, e)
	}
	return out
}
