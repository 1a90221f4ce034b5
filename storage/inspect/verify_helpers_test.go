package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/logtree"
)

// tree is a log directory: its files by their paths.
type tree = logtree.Tree

func cloneTree(t tree) tree { return maps.Clone(t) }

// ownTree is a directory of ours: orders-0 with several segments, closed in order.
var ownTree = sync.OnceValue(func() tree { return writeOwn(nil, 12) })

// writeOwn appends to orders-0, on a disk that may hold it already, and closes the engine.
func writeOwn(m *memfs.FS, appends int) tree {
	return logtree.Write(m, appends, map[string]string{"segment.bytes": "30000", "index.interval.bytes": "2000"}, "orders")
}

// brokerTree is part of what a real broker left after an orderly stop.
func brokerTree(tb testing.TB, partitions ...string) tree {
	tb.Helper()
	return logtree.Broker(tb, "clean-4.4.0", "clean", partitions...)
}

// verify returns what Verify finds in a tree.
func verify(tb testing.TB, fsys vfs.FS, opt VerifyOptions) ([]Finding, Summary) {
	tb.Helper()
	var list []Finding
	sum, err := Verify(context.Background(), fsys, "/data", opt, func(f Finding) { list = append(list, f) })
	if err != nil {
		tb.Fatalf("verify: %v", err)
	}
	return list, sum
}

// kinds returns severity, kind and path of findings, sorted; what is found in the undamaged tree, and leftovers, are left out.
func kinds(list []Finding) []string {
	var out []string
	for _, f := range list {
		if f.What != FileLeftover {
			out = append(out, fmt.Sprintf("%s %s %s", f.Severity, f.What, f.Path))
		}
	}
	slices.Sort(out)
	return out
}

// batchesOf lists the batches of a log.
func batchesOf(tb testing.TB, log []byte) []Batch {
	tb.Helper()
	var list []Batch
	err := Walk(strings.NewReader(string(log)), int64(len(log)), -1, func(b Batch) error {
		b.Raw = slices.Clone(b.Raw)
		list = append(list, b)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return list
}
