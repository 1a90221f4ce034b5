package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/test/logtree"
)

// segmentsOf returns the names of the logs of a partition, ascending.
func segmentsOf(t tree, dir string) []string {
	var out []string
	for name := range t {
		if strings.HasPrefix(name, dir+"/") && strings.HasSuffix(name, ".log") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// starts returns where the batches of a log start.
func starts(tb testing.TB, log []byte) []int {
	tb.Helper()
	var out []int
	err := inspect.Walk(bytes.NewReader(log), int64(len(log)), -1, func(b inspect.Batch) error {
		out = append(out, int(b.Pos))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// change is one row of a table of damage.
type change struct {
	name string
	do   func(t tree)
	left []inspect.What // damage that is reported only
}

// repairs damages a tree, repairs it, and looks at all that is promised.
func repairs(t *testing.T, good tree, c change) {
	t.Helper()
	damaged := tree{}
	for k, v := range good {
		damaged[k] = v
	}
	c.do(damaged)
	m := damaged.Disk(t)
	_, hadMarker := damaged[state.CleanMarkerFile]
	before := records(t, damaged.Disk(t))
	whole := records(t, good.Disk(t))
	for k, v := range before {
		if whole[k] != v {
			delete(before, k) // under an offset that it never had
		}
	}
	planned, plan := repaired(t, m, Options{})
	if plan.Rounds != 1 {
		t.Errorf("a dry run takes %d rounds", plan.Rounds)
	}
	if got := logtree.Read(t, m, "/data", logtree.All); len(got) != len(damaged) {
		t.Errorf("a dry run changed something")
	}
	actions, res := repaired(t, m, Options{Apply: true})
	for _, a := range actions {
		t.Log(a.String())
	}
	if plan.Actions > 0 && len(planned) > 0 && planned[0].Kind.Changes() && actions[0].String() != planned[0].String() {
		t.Errorf("planned %s, did %s", planned[0].String(), actions[0].String())
	}
	if gone := lost(before, records(t, m)); len(gone) > 0 {
		t.Errorf("%d of %d records cannot be read any more, the first is %s", len(gone), len(before), gone[0])
	}
	damage, _ := verified(t, m)
	for _, f := range damage {
		if !slices.Contains(c.left, f.What) {
			t.Errorf("left: %+v", f)
		}
	}
	if res.Left > 0 && len(c.left) == 0 {
		t.Errorf("left: %+v", res)
	}
	after := logtree.Read(t, m, "/data", logtree.All)
	if _, has := after[state.CleanMarkerFile]; has != hadMarker && res.Marker == "" {
		t.Errorf("marker: %v before, %v after", hadMarker, has)
	} else if has && !bytes.Equal(after[state.CleanMarkerFile], damaged[state.CleanMarkerFile]) {
		t.Error("the marker is another one")
	}
	if _, has := after[state.LockFile]; has {
		t.Error("the lock was left")
	}
	if open := m.OpenFiles(); len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
	undone(t, damaged, after)
	again, res := repaired(t, m, Options{Apply: true})
	if res.Actions != 0 {
		t.Errorf("a second run does %d actions: %s", res.Actions, again[0].String())
	}
	if got := logtree.Read(t, m, "/data", logtree.All); !sameTree(got, after) {
		t.Error("a second run changed something")
	}
}

func sameTree(a, b tree) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || !bytes.Equal(v, w) {
			return false
		}
	}
	return true
}

// undone puts everything back that the journal tells of, the last change first, and compares the logs with what they were.
func undone(t *testing.T, before, after tree) {
	t.Helper()
	now := maps.Clone(after)
	is := func(e Entry, b []byte) {
		if h := sha256.Sum256(b); hex.EncodeToString(h[:]) != e.SHA256 || int64(len(b)) != e.Length {
			t.Errorf("%+v: %d bytes were kept, or other ones", e, len(b))
		}
	}
	list := readJournal(t, after)
	for i := len(list); i > 0; {
		n := i - 1
		for n > 0 && list[n-1].Step == list[n].Step {
			n--
		}
		group := list[n:i]
		i = n
		back := tree{}
		for _, e := range group {
			if e.Action == Cut { // positions are those of the file before the change, so they go back in ascending order
				b := make([]byte, e.Length)
				if e.Kept != "" {
					b = after[e.Kept]
				}
				is(e, b)
				now[e.Path] = slices.Insert(slices.Clone(now[e.Path]), int(e.Pos), b...)
			}
			if e.Action == SetAside || e.Action == Move {
				is(e, now[e.Kept])
				back[e.Path] = now[e.Kept]
				delete(now, e.Kept)
			}
			if e.Action == SetEpoch {
				old, err := strconv.Atoi(e.Old)
				if err != nil {
					t.Fatal(err)
				}
				now[e.Path] = slices.Clone(now[e.Path])
				binary.BigEndian.PutUint32(now[e.Path][e.Pos:], uint32(old))
			}
			if e.Action == Segment {
				delete(now, e.Path)
			}
		}
		maps.Copy(now, back)
	}
	for name, want := range before {
		if strings.HasSuffix(name, ".log") && !bytes.Equal(now[name], want) {
			t.Errorf("%s: %d bytes after undoing all, want %d", name, len(now[name]), len(want))
		}
	}
}

func TestHealthyDirectoriesAreLeftAlone(t *testing.T) {
	for name, good := range map[string]tree{
		"ours":   ownTree(),
		"broker": logtree.Broker(t, "clean-4.4.0", "clean", brokerParts...),
	} {
		t.Run(name, func(t *testing.T) {
			m := good.Disk(t)
			actions, res := repaired(t, m, Options{Apply: true})
			if res.Actions != 0 || res.Left != 0 || res.Rounds != 1 {
				t.Errorf("%+v: %v", res, actions)
			}
			if got := logtree.Read(t, m, "/data", logtree.All); !sameTree(got, good) {
				t.Error("something was changed")
			}
		})
	}
}

// brokerParts are partitions of the broker's directory.
var brokerParts = []string{"segments-0", "transactions-0", "compacted-0", "times-unordered-0", "start-moved-0", "codec-zstd-0", "mixed.with_dots-and-9-0", "mixed.with_dots-and-9-1"}

func TestRepairOwn(t *testing.T) {
	good := ownTree()
	logs := segmentsOf(good, "orders-0")
	if len(logs) < 3 {
		t.Fatalf("%d segments", len(logs))
	}
	for _, c := range some(logChanges(t, good, logs)) {
		t.Run(c.name, func(t *testing.T) { repairs(t, good, c) })
	}
}

func TestRepairOwnNotClosed(t *testing.T) {
	good := tree{}
	for k, v := range ownTree() {
		good[k] = v
	}
	delete(good, state.CleanMarkerFile)
	good[state.RecoveryPointFile] = []byte("0\n1\norders 0 100\n")
	for _, c := range some(logChanges(t, good, segmentsOf(good, "orders-0"))) {
		t.Run(c.name, func(t *testing.T) { repairs(t, good, c) })
	}
}

func TestRepairBrokers(t *testing.T) {
	for _, part := range []string{"segments-0", "transactions-0", "compacted-0", "start-moved-0", "codec-zstd-0"} {
		good := logtree.Broker(t, "clean-4.4.0", "clean", part)
		t.Run(part, func(t *testing.T) {
			for i, c := range some(logChanges(t, good, segmentsOf(good, part))) {
				if part == "segments-0" && i%9 != 0 { // it is large
					continue
				}
				t.Run(c.name, func(t *testing.T) { repairs(t, good, c) })
			}
		})
	}
}

// some takes every fourth row where all would take too long.
func some(rows []change) []change {
	if !sampled() {
		return rows
	}
	var out []change
	for i := 0; i < len(rows); i += 4 {
		out = append(out, rows[i])
	}
	return out
}

// logChanges is what can happen to the logs of a partition.
func logChanges(tb testing.TB, good tree, logs []string) []change {
	tb.Helper()
	logs = slices.DeleteFunc(slices.Clone(logs), func(name string) bool { return len(starts(tb, good[name])) < 6 })
	first, last := logs[0], logs[len(logs)-1]
	at := starts(tb, good[first])
	end := starts(tb, good[last])
	var out []change
	add := func(name string, do func(t tree)) { out = append(out, change{name: name, do: do}) }
	for _, field := range []struct {
		name string
		at   int
	}{{"offset", 6}, {"length", 10}, {"epoch", 15}, {"version", 16}, {"checksum", 18}, {"attributes", 22}, {"delta", 26}, {"time", 34}, {"count", 60}, {"record", 70}} {
		add("flip "+field.name+" in the middle", func(t tree) { t.Flip(first, at[len(at)/2]+field.at) })
		add("flip "+field.name+" of the first batch", func(t tree) { t.Flip(first, field.at) })
		add("flip "+field.name+" of the last batch of a closed segment", func(t tree) { t.Flip(first, at[len(at)-1]+field.at) })
		add("flip "+field.name+" of the last batch of the log", func(t tree) { t.Flip(last, end[len(end)-1]+field.at) })
	}
	cut := func(name string, n int) {
		add("cut "+name, func(t tree) { t.Edit(last, func(b []byte) []byte { return b[:len(b)-n] }) })
		add("cut "+name+" of a closed segment", func(t tree) { t.Edit(first, func(b []byte) []byte { return b[:len(b)-n] }) })
	}
	cut("one byte", 1)
	cut("a batch", len(good[last])-end[len(end)-1])
	add("cut to nothing", func(t tree) { t[last] = nil })
	add("cut a closed segment to nothing", func(t tree) { t[first] = nil })
	zeros := func(name string, file string, from, to int) {
		add("zero "+name, func(t tree) { t.Edit(file, func(b []byte) []byte { clear(b[from:to]); return b }) })
	}
	zeros("a block", first, at[2], at[4])
	zeros("a header", first, at[2], at[2]+61)
	zeros("the end of the log", last, end[len(end)-2], len(good[last]))
	zeros("the end of a closed segment", first, at[len(at)-2], len(good[first]))
	zeros("the first segment", first, 0, len(good[first]))
	zeros("the whole last segment", last, 0, len(good[last]))
	add("zeros behind the log", func(t tree) { t.Edit(last, func(b []byte) []byte { return append(b, make([]byte, 5000)...) }) })
	add("garbage behind the log", func(t tree) {
		t.Edit(last, func(b []byte) []byte { return append(b, "certainly not a batch of records"...) })
	})
	add("garbage between", func(t tree) {
		t.Edit(first, func(b []byte) []byte { return slices.Insert(b, at[3], []byte("certainly no batch")...) })
	})
	add("a byte lost", func(t tree) { t.Edit(first, func(b []byte) []byte { return slices.Delete(b, at[3]+80, at[3]+81) }) })
	add("a batch twice", func(t tree) {
		t.Edit(first, func(b []byte) []byte { return slices.Insert(b, at[3], slices.Clone(b[at[2]:at[3]])...) })
	})
	add("batches swapped", func(t tree) {
		t.Edit(first, func(b []byte) []byte {
			x, y := slices.Clone(b[at[2]:at[3]]), slices.Clone(b[at[3]:at[4]])
			copy(b[at[2]:], append(y, x...))
			return b
		})
	})
	add("the log twice in its file", func(t tree) { t.Edit(last, func(b []byte) []byte { return append(b, b...) }) })
	add("many places", func(t tree) {
		for i := 1; i < len(at); i += 2 {
			t.Flip(first, at[i]+70)
		}
	})
	return out
}
