package local

import (
	"reflect"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func TestStatusTellsWhatIsNotShown(t *testing.T) {
	id := strings.Repeat("0a", 16)
	fsys := memfs.New()
	put(t, fsys, map[string]string{
		"meta.properties": "version=1\n", "a-0/": "", "a-0." + id + "-delete/": "", "b-b-1." + id + "-stray/": "", "a-0." + id + "-future/x": "y",
		"c-0." + id + "-stray": "a file",
	})
	e := mustOpen(t, testOptions(fsys))
	defer mustClose(t, e)
	want := []storage.Aside{
		{Path: "/data/a-0." + id + "-delete", Kind: "delete", Topic: "a"},
		{Path: "/data/a-0." + id + "-future", Kind: "future", Topic: "a"},
		{Path: "/data/b-b-1." + id + "-stray", Kind: "stray", Topic: "b-b", Partition: 1},
	}
	st := e.Status()
	if !reflect.DeepEqual(st.Aside, want) || st.Topics != 1 || st.Partitions != 1 {
		t.Errorf("got %+v, want %+v", st, want)
	}
	put(t, fsys, map[string]string{"d-0/": "", "d-1." + id + "-delete/": ""})
	if st := e.Status(); len(st.Aside) != 4 || st.Topics != 2 {
		t.Errorf("after more came: got %+v", st)
	}
}

func TestStatusOfNothing(t *testing.T) {
	e := mustOpen(t, testOptions(memfs.New()))
	if st := e.Status(); st.Aside == nil || st.List == nil || st.Remote || st.Missing != 0 {
		t.Errorf("got %+v", st)
	}
	mustClose(t, e)
	_ = e.Status() // must not touch what is closed
}

// TestStatusOfTieredLogs: segments below the first one on this disk are somewhere else.
func TestStatusOfTieredLogs(t *testing.T) {
	for _, c := range []struct {
		name   string
		starts string // log-start-offset-checkpoint
		traces bool
		want   string
		start  storage.Offset
	}{
		{name: "nothing checkpointed", starts: "0\n0\n", start: 40},
		{name: "the start is here", starts: "0\n1\nt 0 40\n", start: 40},
		{name: "within what is here", starts: "0\n1\nt 0 41\n", start: 41},
		{name: "moved away", starts: "0\n1\nt 0 7\n", traces: true, start: 40, want: "offsets 7 to 39 are in remote storage"},
		{name: "moved away or deleted", starts: "0\n1\nt 0 0\n", start: 40, want: "offsets 0 to 39 are in remote storage or deleted a moment ago"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			w := mustOpen(t, testOptions(fsys))
			mustAppend(t, mustCreate(t, w, "made"), "a", "b", "c")
			mustClose(t, w)
			b, err := vfs.ReadFile(fsys, "/data/made-0/"+state.FileName(0, state.ExtLog), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			b[7] = 40 // the base offset; no checksum covers it
			fsys = memfs.New()
			files := map[string]string{
				"meta.properties": "version=1\n", state.LogStartFile: c.starts, "t-0/" + state.FileName(40, state.ExtLog): string(b),
				"t-0/" + state.FileName(40, state.ExtIndex): "", "t-0/" + state.FileName(40, state.ExtTimeIndex): "",
			}
			if c.traces {
				files[state.RemoteCacheDir+"/"] = ""
			}
			put(t, fsys, files)
			e := mustOpen(t, testOptions(fsys))
			defer mustClose(t, e)
			s, err := mustPartition(t, e, "t", 0).Snapshot(t.Context())
			if err != nil || s.Start() != c.start || s.End() != 43 {
				t.Fatalf("got %v, want %d to 43", err, c.start)
			}
			if o, err := s.Next(t.Context(), s.Start()); err != nil || o != c.start {
				t.Errorf("first record: got %d, %v", o, err)
			}
			st := e.Status()
			if st.Remote != c.traces || len(st.List) != 1 || st.List[0].Remote != c.want {
				t.Errorf("got %+v, want remote %q", st, c.want)
			}
		})
	}
}

func TestStatusCountsCheckpointsOfLogsThatAreNotThere(t *testing.T) {
	fsys := memfs.New()
	put(t, fsys, map[string]string{
		"meta.properties": "version=1\n", "t-0/": "", state.LogStartFile: "0\n2\nt 1 5\ngone 0 7\n", state.RecoveryPointFile: "0\n3\nt 0 0\nt 1 9\nt 2 9\n",
	})
	e := mustOpen(t, testOptions(fsys))
	defer mustClose(t, e)
	if got, want := e.Status().Missing, 3; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if st := e.Status(); st.Partitions != 1 || st.Topics != 1 {
		t.Errorf("got %+v", st)
	}
}
