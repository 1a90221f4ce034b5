package local

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		name          string
		files         map[string]string
		cluster, node string
		own           bool
		reports       int
	}{
		{name: "KRaft", files: map[string]string{"meta.properties": "#\nversion=1\ncluster.id=q1Sh\nnode.id=3\ndirectory.id=x\n"}, cluster: "q1Sh", node: "3"},
		{name: "ZooKeeper", files: map[string]string{"meta.properties": "version=0\ncluster.id=q1Sh\nbroker.id=0\n"}, cluster: "q1Sh", node: "0"},
		{name: "says nothing", files: map[string]string{"meta.properties": ""}},
		{name: "damaged", files: map[string]string{"meta.properties": "version=1\nnode.id=x\n"}, reports: 1},
		{name: "not a file", files: map[string]string{"meta.properties/": "", "a-0/": ""}, reports: 1},
		{name: "a copy", files: map[string]string{"a-0/": ""}},
		{name: "ours", files: map[string]string{state.TopicsFile: `{"version":1,"topics":{}}`}, own: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			put(t, fsys, c.files)
			var told collector
			o := testOptions(fsys)
			o.Report = told.add
			e := mustOpen(t, o)
			defer mustClose(t, e)
			i := e.Info()
			if i.ClusterID != c.cluster || i.NodeID != c.node || i.Own != c.own || len(i.Dirs) != 1 || i.Dirs[0] != "/data" {
				t.Errorf("got %+v, want %+v", i, c)
			}
			if c.reports > 0 != (len(told.reasons()) > 0) {
				t.Errorf("reports: got %q", told.reasons())
			}
		})
	}
}

// TestOneOfSeveral: what is shown together with other directories is never made ours.
func TestOneOfSeveral(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		err   error
	}{
		{name: "missing", err: fs.ErrNotExist},
		{name: "empty", files: map[string]string{}, err: storage.ErrNotLogDirectory},
		{name: "an empty disk", files: map[string]string{"lost+found/": ""}, err: storage.ErrNotLogDirectory},
		{name: "ours", files: map[string]string{state.TopicsFile: oneTopic}, err: storage.ErrNotPermitted},
		{name: "ours without a topic", files: map[string]string{state.TopicsFile: `{"version":1,"topics":{}}`}, err: storage.ErrNotPermitted},
		{name: "a broker's", files: map[string]string{"meta.properties": ""}},
		{name: "a copy", files: map[string]string{"a-0/": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			if c.files != nil {
				put(t, fsys, c.files)
			}
			o := testOptions(fsys)
			o.OneOfSeveral = true
			e, err := Open(t.Context(), o)
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if err == nil {
				mustClose(t, e)
			}
			entries, err := fsys.ReadDir("/data")
			if c.files == nil {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("made: %v", err)
				}
			} else if len(entries) != len(c.files) {
				t.Errorf("got %v, want the %d that were there", entries, len(c.files))
			}
		})
	}
}
