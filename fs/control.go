package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/logmount/logmount/storage"
)

// controlFile is a file of .logmount/. Its content is worked out when it is opened and stays that for as long as it is open.
type controlFile struct {
	name    string
	content func(ctx context.Context) ([]byte, error)
}

// controlTime is the mtime of a control file. It is no look's own time: tar(1) takes a file whose times differ between two looks for one that changes.
func (t *Tree) controlTime(name string) time.Time {
	if last := t.reports.Last(); name == "errors" && !last.IsZero() {
		return last
	}
	return t.started
}

// controlFiles lists what .logmount/ holds, in the order of names.
func (t *Tree) controlFiles() []controlFile {
	return []controlFile{
		{"README", func(context.Context) ([]byte, error) { return []byte(controlReadme), nil }},
		{"config", func(context.Context) ([]byte, error) { return indented(t.configJSON()) }},
		{"errors", func(context.Context) ([]byte, error) { return t.reports.JSON(), nil }},
		{"status", func(context.Context) ([]byte, error) { return indented(t.statusJSON()) }},
		{"version", func(context.Context) ([]byte, error) { return []byte(t.opts.Version + "\n"), nil }},
	}
}

const controlReadme = `This directory is about the mount itself. Each file is as it was when it was opened.

version  the version of the daemon
config   the settings of the mount, a JSON object
status   what the daemon is doing, a JSON object; with its pid
errors   what went wrong or was put right lately, a JSON object per line, oldest first;
         the same of the same path is counted rather than listed again
`

// configJSON returns the settings of the mount: those that decide what the tree does in their own types, the others as the command line had them.
func (t *Tree) configJSON() map[string]any {
	config := make(map[string]any, len(t.opts.Settings)+8)
	for name, value := range t.opts.Settings {
		config[name] = value
	}
	info := t.engine.Info()
	config["data"] = info.Data
	config["read_only"] = t.opts.ReadOnly
	config["batch.size"] = t.opts.BatchSize
	config["isolation"] = info.Isolation()
	config["time_zone"] = t.opts.Location.String()
	if t.opts.UID != nil {
		config["uid"] = *t.opts.UID
	}
	if t.opts.GID != nil {
		config["gid"] = *t.opts.GID
	}
	if t.opts.Umask != nil {
		config["umask"] = fmt.Sprintf("%03o", *t.opts.Umask)
	}
	return config
}

// mountStatus is .logmount/status. Programs read it: names stay, new ones may come.
type mountStatus struct {
	PID          int       `json:"pid"`
	PIDNamespace string    `json:"pid_namespace,omitempty"` // in which the pid counts
	Version      string    `json:"version"`
	Started      time.Time `json:"started"`
	Data         string    `json:"data"`
	Mountpoint   string    `json:"mountpoint,omitempty"`
	Writable     bool      `json:"writable"`
	Reason       string    `json:"reason,omitempty"` // why it is not writable
	Isolation    string    `json:"isolation"`
	Stopping     bool      `json:"stopping"`

	Open    openStatus           `json:"open"`
	Sizes   sizeStatus           `json:"size_indexes"`
	Reports int64                `json:"reports"`
	Engine  storage.EngineStatus `json:"engine"`
}

// openStatus counts what programs have in use.
type openStatus struct {
	Readers   int64 `json:"readers"`
	Writers   int64 `json:"writers"`
	Followers int64 `json:"followers"`
	Locks     int   `json:"locks"`
	Inodes    int   `json:"inodes"` // that the kernel remembers
	Names     int   `json:"names"`  // of those without end (offset/42) among them
}

// sizeStatus is the progress of the size indexes, over the partitions that have been looked at.
type sizeStatus struct {
	Segments int `json:"segments"`
	Ready    int `json:"ready"`
}

func (t *Tree) statusJSON() mountStatus {
	info := t.engine.Info()
	s := mountStatus{
		PID: os.Getpid(), PIDNamespace: pidNamespace(), Version: t.opts.Version, Started: t.started.UTC(), Data: info.Data,
		Mountpoint: t.opts.Settings["mountpoint"], Writable: info.Writable, Reason: info.Reason, Isolation: info.Isolation(), Stopping: t.stopping.Load(),
		Reports: t.reports.Total(), Engine: t.engine.Status(),
	}
	if t.opts.ReadOnly {
		s.Writable, s.Reason = false, "mounted read-only"
	}
	s.Open.Readers, s.Open.Writers, s.Open.Followers = t.openHandles()
	s.Open.Locks = t.locks.held()
	s.Open.Inodes, s.Open.Names = t.raw.table.counts()
	for i := range s.Engine.List {
		s.Sizes.Segments += s.Engine.List[i].Segments
		s.Sizes.Ready += s.Engine.List[i].Sized
	}
	if s.Engine.List == nil {
		s.Engine.List = []storage.PartitionStatus{} // a list is a list also when it is empty
	}
	if s.Engine.Aside == nil {
		s.Engine.Aside = []storage.Aside{}
	}
	return s
}

// indented returns v as people and jq like it.
func indented(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return buf.Bytes(), nil
}
