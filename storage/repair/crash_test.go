package repair

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/local"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
	"github.com/logmount/logmount/test/fixture"
	"github.com/logmount/logmount/test/logtree"
)

// smallTree is a directory of ours of a few KB: orders-0 with several segments.
var smallTree = sync.OnceValue(func() tree {
	ctx := context.Background()
	m := memfs.New()
	e := logtree.Must(local.Open(ctx, local.Options{FS: m, Dir: "/data", Create: true, Now: func() time.Time { return testNow }, Rand: rand.New(rand.NewSource(1))}))
	spec := storage.TopicSpec{Name: "orders", Partitions: 1, Config: map[string]string{"segment.bytes": "2000", "index.interval.bytes": "300"}}
	if err := e.CreateTopic(ctx, spec); err != nil {
		panic(err)
	}
	p := logtree.Must(e.Partition(ctx, storage.TopicPartition{Topic: "orders"}))
	for i := range 24 {
		var recs []storage.Record
		for j := range 4 {
			recs = append(recs, storage.Record{Timestamp: testNow.UnixMilli() + int64(i*10+j), Value: fmt.Appendf(nil, "value %050d", i*10+j)})
		}
		logtree.Must(p.Append(ctx, recs, 1<<20))
	}
	if err := e.Close(); err != nil {
		panic(err)
	}
	return logtree.Read(logtree.TB{}, m, "/data", logtree.All)
})

// ruin damages a directory in many ways at once.
func ruin(tb testing.TB, t tree) {
	tb.Helper()
	logs := segmentsOf(t, "orders-0")
	if len(logs) < 4 {
		tb.Fatalf("%d segments", len(logs))
	}
	at := starts(tb, t[logs[0]])
	t.Flip(logs[0], at[1]+70)
	t.Flip(logs[0], at[3]+18)
	t.Edit(logs[1], func(b []byte) []byte { return b[:len(b)-3] })
	last := logs[len(logs)-1]
	t.Edit(last, func(b []byte) []byte { return append(b, "torn, or whatever one may call it"...) })
	t.Flip(last, 15) // a leader epoch
	a, b := logs[2], logs[3]
	t[a], t[b] = t[b], t[a]
	t["orders-0/00000000000000000002.log"] = []byte("in the way")
	t[strings.TrimSuffix(last, ".log")+".index"] = []byte("no index")
	t["orders-0/"+state.EpochsFile] = []byte("0\n1\n")
	t["orders-0/"+state.MetadataFile] = []byte("version: 0")
	t["orders-0/00000000000000000033.snapshot"] = []byte("no snapshot")
	t[state.LogStartFile] = []byte("0\n2\norders 0 0\nx")
	t[state.HighWatermarkFile] = []byte("0\n2\nelse 7 9\norders 0 5000\n")
}

// whatRepairMakes is what a repair that nothing disturbs leaves of a ruin.
func whatRepairMakes(t *testing.T, damaged tree) (tree, map[string]string) {
	t.Helper()
	before := records(t, damaged.Disk(t))
	m := damaged.Disk(t)
	actions, res := repaired(t, m, Options{Apply: true})
	if res.Left != 0 || res.Actions < 10 {
		t.Fatalf("%+v", res)
	}
	for _, a := range actions {
		t.Log(a.String())
	}
	return logtree.Read(t, m, "/data", logtree.All), before
}

// finished looks at a directory after the run that went on with a repair that was cut short.
func finished(t *testing.T, m *memfs.FS, damaged, want tree, before map[string]string) {
	t.Helper()
	actions, res, err := tryRepair(m, Options{Apply: true})
	if err != nil {
		t.Fatalf("the next run: %v", err)
	}
	if res.Left != 0 {
		t.Errorf("left: %+v", actions)
	}
	if damage, _ := verified(t, m); len(damage) > 0 {
		t.Errorf("left: %+v", damage)
	}
	if gone := lost(before, records(t, m)); len(gone) > 0 {
		t.Errorf("%d records are lost, the first is %s", len(gone), gone[0])
	}
	got := logtree.Read(t, m, "/data", logtree.All)
	for name, b := range want {
		switch {
		case name == JournalFile, name == state.CleanMarkerFile, strings.HasSuffix(name, state.SuffixTorn), name == state.RecoveryPointFile:
		case strings.HasSuffix(name, state.ExtSizeIndex) && sameSizes(got[name], b):
		case !bytes.Equal(got[name], b):
			t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(b))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && !strings.HasSuffix(name, state.SuffixTorn) && !strings.HasSuffix(name, state.SuffixTemp) && name != JournalFile && name != state.CleanMarkerFile {
			t.Errorf("%s is left", name)
		}
	}
	if b, ok := got[state.CleanMarkerFile]; ok && !bytes.Equal(b, damaged[state.CleanMarkerFile]) {
		t.Error("the marker is another one")
	}
	undone(t, damaged, got)
}

func TestEveryFailingCall(t *testing.T) {
	damaged := maps.Clone(smallTree())
	ruin(t, damaged)
	want, before := whatRepairMakes(t, damaged)
	for i := 0; ; i++ {
		m := damaged.Disk(t)
		f := faultfs.New(m)
		if i%2 == 0 {
			f.ShortAt(i)
		} else {
			f.FailAt(i, nil)
		}
		_, _, err := tryRepair(f, Options{Apply: true})
		if f.Calls() <= i {
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls", i)
			return
		}
		if strings.Contains(f.Log()[i], " release ") { // the lock is still held
			continue
		}
		if open := m.OpenFiles(); len(open) > 0 {
			t.Fatalf("call %d: left open: %v", i, open)
		}
		finished(t, m, damaged, want, before)
		if t.Failed() {
			t.Fatalf("call %s: %v", f.Log()[i], err)
		}
		if sampled() {
			i += 6
		}
	}
}

// sampled reports that some of the calls must do.
func sampled() bool { return testing.Short() || fixture.Race }

// changing are the calls after which a crash finds something else than before.
var changing = []faultfs.Op{faultfs.OpOpen, faultfs.OpRemove, faultfs.OpRename, faultfs.OpSyncDir, faultfs.OpWrite, faultfs.OpSync, faultfs.OpTruncate, faultfs.OpRelease}

func TestEveryCrash(t *testing.T) {
	damaged := maps.Clone(smallTree())
	ruin(t, damaged)
	want, before := whatRepairMakes(t, damaged)
	for _, unsynced := range []float64{0, 0.5, 1} {
		t.Run(fmt.Sprint(unsynced), func(t *testing.T) {
			m := damaged.Disk(t)
			f := faultfs.New(m)
			r := rand.New(rand.NewSource(7))
			var disks []*memfs.FS
			var calls []string
			f.Hook(func(op faultfs.Op, name string) error {
				if slices.Contains(changing, op) {
					disks = append(disks, m.Crash(r, memfs.CrashOptions{Unsynced: unsynced}))
					calls = append(calls, op.String()+" "+name)
				}
				return nil
			})
			if _, _, err := tryRepair(f, Options{Apply: true}); err != nil {
				t.Fatal(err)
			}
			for i, d := range disks {
				if sampled() && i%7 != 0 {
					continue
				}
				finished(t, d, damaged, want, before)
				if t.Failed() {
					t.Fatalf("crash %d of %d, before %s", i, len(disks), calls[i])
				}
			}
		})
	}
}
