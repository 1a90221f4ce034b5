package fs

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/storagetest"
)

// control returns the content of a control file.
func control(t *testing.T, tree *Tree, name string) string {
	t.Helper()
	for _, f := range tree.controlFiles() {
		if f.name == name {
			text, err := f.content(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	t.Fatalf("no control file %s", name)
	return ""
}

func TestControlFiles(t *testing.T) {
	umask, uid := uint32(0o27), uint32(1000)
	e := storagetest.NewMemory()
	defer func() { _ = e.Close() }()
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: "orders", Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 8, 30, 12, 0, 0, 0, time.UTC)
	tree := NewTree(e, Options{
		Now: func() time.Time { return start }, Version: "1.2.3", UID: &uid, Umask: &umask, ReadOnly: true,
		Settings: map[string]string{"mountpoint": "/mnt/<o>", "log_level": "INFO"},
	})
	tree.reports.Add(storage.Report{Path: "orders-0", Reason: "cut"})

	var names []string
	for _, f := range tree.controlFiles() {
		names = append(names, f.name)
	}
	if want := []string{"README", "config", "errors", "status", "version"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if got := control(t, tree, "version"); got != "1.2.3\n" {
		t.Errorf("version: got %q", got)
	}
	if got := control(t, tree, "README"); !strings.HasSuffix(got, "\n") {
		t.Errorf("README: got %q", got)
	}
	if got, want := control(t, tree, "errors"), `{"time":"2026-08-30T12:00:00Z","path":"orders-0","reason":"cut"}`+"\n"; got != want {
		t.Errorf("errors: got %q, want %q", got, want)
	}

	config := control(t, tree, "config")
	var c map[string]any
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"read_only": true, "batch.size": 16384.0, "isolation": "read_uncommitted", "uid": 1000.0, "umask": "027", "mountpoint": "/mnt/<o>",
		"log_level": "INFO", "gid": nil, "time_zone": "UTC",
	} {
		if c[name] != want {
			t.Errorf("config %s: got %v, want %v", name, c[name], want)
		}
	}
	if !strings.Contains(config, `"/mnt/<o>"`) || !strings.HasSuffix(config, "}\n") {
		t.Errorf("config: got %s", config)
	}

	var s mountStatus
	if err := json.Unmarshal([]byte(control(t, tree, "status")), &s); err != nil {
		t.Fatal(err)
	}
	if s.PID != os.Getpid() || s.Version != "1.2.3" || !s.Started.Equal(start) || s.Writable || s.Reason == "" || s.Reports != 1 || s.Engine.Topics != 1 ||
		s.Engine.Partitions != 2 || s.Mountpoint != "/mnt/<o>" || s.Stopping || s.Isolation != storage.ReadUncommitted {
		t.Errorf("status: got %+v", s)
	}
	if text := control(t, tree, "status"); !strings.Contains(text, `"aside": []`) {
		t.Errorf("status: nothing is set aside: got %s", text)
	}
	tree.Shutdown(t.Context())
	if err := json.Unmarshal([]byte(control(t, tree, "status")), &s); err != nil || !s.Stopping {
		t.Errorf("after Shutdown: %v, %+v", err, s)
	}
}

func TestControlFilesKeepTheirTimes(t *testing.T) {
	e := storagetest.NewMemory()
	defer func() { _ = e.Close() }()
	now := clock()
	tree := NewTree(e, Options{Now: now, Reports: NewReports(nil, now)})
	for _, f := range tree.controlFiles() {
		if got := tree.controlTime(f.name); !got.Equal(tree.started) {
			t.Errorf("%s: got %v, want the start %v", f.name, got, tree.started)
		}
	}
	tree.reports.Add(storage.Report{Path: "orders-0", Reason: "cut", Time: tree.started.Add(-time.Hour)})
	first, again := tree.controlTime("errors"), tree.controlTime("errors")
	if !first.After(tree.started) || !again.Equal(first) {
		t.Errorf("errors: got %v, then %v, want the time at which the report came in", first, again)
	}
	if got := tree.controlTime("status"); !got.Equal(tree.started) {
		t.Errorf("status: got %v, want %v", got, tree.started)
	}
}
