package composite_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/composite"
	"github.com/logmount/logmount/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		t.Helper()
		e, err := composite.New(t.Context(), storagetest.NewMemory())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}, storagetest.Options{Batches: true})
}

// disk is a log directory of a broker.
type disk struct {
	*storagetest.Memory
	info   storage.EngineInfo
	hidden []int32 // partitions that are elsewhere
	more   storage.EngineStatus
}

// newDisk makes the partitions named, topic:number, and hides those of smaller numbers.
func newDisk(t *testing.T, data string, logs ...string) *disk {
	t.Helper()
	d := &disk{Memory: storagetest.NewMemory(), info: storage.EngineInfo{Data: data, Dirs: []string{data}, Reason: "a broker's", Mode: 0o750}}
	for _, l := range logs {
		topic, number, _ := strings.Cut(l, ":")
		n := int32(number[0] - '0')
		if err := d.CreateTopic(t.Context(), storage.TopicSpec{Name: topic, Partitions: n + 1}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			d.hidden = append(d.hidden, i)
		}
		p := d.log(t, topic, n)
		if _, err := p.Append(t.Context(), []storage.Record{{Value: []byte(data)}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *disk) log(t *testing.T, topic string, n int32) storage.Partition {
	t.Helper()
	p, err := d.Memory.Partition(t.Context(), storage.TopicPartition{Topic: topic, Partition: n})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (d *disk) Info() storage.EngineInfo { return d.info }

func (d *disk) Topics(ctx context.Context) ([]storage.TopicInfo, error) {
	all, err := d.Memory.Topics(ctx)
	for i := range all {
		all[i] = d.shown(all[i])
	}
	return all, err
}

func (d *disk) Topic(ctx context.Context, name string) (storage.TopicInfo, error) {
	i, err := d.Memory.Topic(ctx, name)
	return d.shown(i), err
}

func (d *disk) shown(i storage.TopicInfo) storage.TopicInfo {
	i.Partitions = slices.DeleteFunc(i.Partitions, func(n int32) bool { return slices.Contains(d.hidden, n) })
	return i
}

func (d *disk) Partition(ctx context.Context, tp storage.TopicPartition) (storage.Partition, error) {
	if slices.Contains(d.hidden, tp.Partition) {
		return nil, storage.ErrPartitionNotFound
	}
	return d.Memory.Partition(ctx, tp)
}

func (d *disk) CreateTopic(ctx context.Context, s storage.TopicSpec) error {
	if ctx.Value(broker{}) != nil {
		return storage.ErrNotPermitted
	}
	return d.Memory.CreateTopic(ctx, s)
}

// broker marks the context of calls that a broker's directory refuses.
type broker struct{}

func (d *disk) Status() storage.EngineStatus {
	st := d.Memory.Status()
	st.Aside, st.Remote, st.Missing, st.Clean = d.more.Aside, d.more.Remote, d.more.Missing, !d.more.Clean
	return st
}

func (d *disk) Room(context.Context) (storage.Room, error) {
	return storage.Room{Total: int64(len(d.info.Data))}, nil
}

func mustNew(t *testing.T, engines ...storage.Engine) *composite.Engine {
	t.Helper()
	e, err := composite.New(t.Context(), engines...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, storage.ErrClosed) {
			t.Error(err)
		}
	})
	return e
}

// served returns the value of a log's first record: where the log is.
func served(t *testing.T, e storage.Engine, topic string, n int32) string {
	t.Helper()
	p, err := e.Partition(t.Context(), storage.TopicPartition{Topic: topic, Partition: n})
	if err != nil {
		return err.Error()
	}
	s, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := s.Records(0)
	defer c.Close()
	r, err := c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Value)
}

func TestTopicsAreSpread(t *testing.T) {
	a, b := newDisk(t, "/a", "both:0", "only-a:0"), newDisk(t, "/b", "both:1", "only-b:1")
	e := mustNew(t, a, b)
	all, err := e.Topics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]int32{}
	for _, info := range all {
		got[info.Name] = info.Partitions
		one, err := e.Topic(t.Context(), info.Name)
		if err != nil || !reflect.DeepEqual(one, info) {
			t.Errorf("topic %s: got %+v, %v, want %+v", info.Name, one, err, info)
		}
	}
	if want := map[string][]int32{"both": {0, 1}, "only-a": {0}, "only-b": {1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, c := range []struct {
		topic string
		n     int32
		want  string
	}{
		{"both", 0, "/a"},
		{"both", 1, "/b"},
		{"only-a", 0, "/a"},
		{"only-b", 1, "/b"},
		{"both", 7, "partition both-7: no such partition"},
		{"none", 0, "no such partition"}, // b knows of no partition 0
	} {
		if got := served(t, e, c.topic, c.n); got != c.want {
			t.Errorf("%s-%d: got %s, want %s", c.topic, c.n, got, c.want)
		}
	}
	if _, err := e.Topic(t.Context(), "none"); !errors.Is(err, storage.ErrTopicNotFound) {
		t.Errorf("no topic: got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	with := func(d *disk, change func(*storage.EngineInfo)) *disk { change(&d.info); return d }
	broken := newDisk(t, "/b")
	broken.Fail("topics", errDisk)
	for _, c := range []struct {
		name string
		list []storage.Engine
		want error
		says []string
	}{
		{"none", nil, storage.ErrInvalidConfig, nil},
		{"one of ours", []storage.Engine{
			newDisk(t, "/a"), with(newDisk(t, "/b"), func(i *storage.EngineInfo) { i.Own = true }),
		}, storage.ErrNotPermitted, []string{"/b"}},
		{"the same twice", []storage.Engine{newDisk(t, "/a"), newDisk(t, "/a")}, storage.ErrInvalidConfig, []string{"/a"}},
		{"two clusters", []storage.Engine{
			with(newDisk(t, "/a"), func(i *storage.EngineInfo) { i.ClusterID = "x" }), newDisk(t, "/b"),
			with(newDisk(t, "/c"), func(i *storage.EngineInfo) { i.ClusterID = "y" }),
		}, storage.ErrInvalidConfig, []string{"/a", "x", "/c", "y"}},
		{"two nodes", []storage.Engine{
			with(newDisk(t, "/a"), func(i *storage.EngineInfo) { i.ClusterID, i.NodeID = "x", "1" }),
			with(newDisk(t, "/b"), func(i *storage.EngineInfo) { i.ClusterID, i.NodeID = "x", "2" }),
		}, storage.ErrInvalidConfig, []string{"/a", "1", "/b", "2"}},
		{"a log twice", []storage.Engine{
			newDisk(t, "/a", "t:1"), newDisk(t, "/b", "u:1"), newDisk(t, "/c", "t:1"),
		}, storage.ErrTopicExists, []string{"t-1", "/a", "/c"}},
		{"one that cannot be read", []storage.Engine{newDisk(t, "/a"), broken}, errDisk, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := composite.New(t.Context(), c.list...)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not name %s", err, s)
				}
			}
		})
	}
}

var errDisk = errors.New("the disk is gone")

func TestOneAloneMayBeOurs(t *testing.T) {
	d := newDisk(t, "/a")
	d.info.Own, d.info.Writable, d.info.Reason = true, true, ""
	e := mustNew(t, d)
	if err := e.CreateTopic(t.Context(), storage.TopicSpec{Name: "t", Partitions: 1}); err != nil || !e.Info().Writable {
		t.Errorf("got %v, %+v", err, e.Info())
	}
}

func TestInfo(t *testing.T) {
	a, b := newDisk(t, "/a"), newDisk(t, "/b")
	a.info.Modified, b.info.Modified = time.Unix(1, 0), time.Unix(2, 0)
	a.info.UID, b.info.UID, b.info.Mode = 7, 8, 0o700
	b.info.ClusterID, b.info.NodeID = "x", "3"
	a.info.Committed, b.info.Committed = true, true
	want := storage.EngineInfo{
		Data: "/a,/b", Dirs: []string{"/a", "/b"}, Reason: "a broker's", UID: 7, Mode: 0o750, Modified: time.Unix(2, 0), Committed: true, ClusterID: "x", NodeID: "3",
	}
	e := mustNew(t, a, b)
	if got := e.Info(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if room, err := e.Room(t.Context()); err != nil || room.Total != 2 {
		t.Errorf("room: got %+v, %v", room, err)
	}
	if _, err := mustNew(t, storagetest.NewMemory()).Room(t.Context()); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("room of an engine without: got %v", err)
	}
}

func TestTopicsAreNotChanged(t *testing.T) {
	a, b := newDisk(t, "/a", "t:0"), newDisk(t, "/b")
	e := mustNew(t, a, b)
	told := context.WithValue(t.Context(), broker{}, true)
	if err := e.CreateTopic(told, storage.TopicSpec{Name: "u", Partitions: 1}); !errors.Is(err, storage.ErrNotPermitted) {
		t.Errorf("the first one's reason: got %v", err)
	}
	a.info.Writable = true
	for what, err := range map[string]error{
		"create": e.CreateTopic(t.Context(), storage.TopicSpec{Name: "u", Partitions: 1}),
		"delete": e.DeleteTopic(t.Context(), "t", true),
		"add":    e.AddPartition(t.Context(), "t", 1),
	} {
		if !errors.Is(err, storage.ErrNotPermitted) {
			t.Errorf("%s: got %v, want ErrNotPermitted", what, err)
		}
	}
	if i := e.Info(); i.Writable || i.Reason != "a broker's" {
		t.Errorf("one of them is read-only: got %+v", i)
	}
	a.info.Reason, b.info.Writable, b.info.Reason = "", true, ""
	if i := e.Info(); !i.Writable || i.Reason != "" {
		t.Errorf("none of them is: got %+v", i)
	}
}

// TestALogMoves: a broker moves a log from one disk to another.
func TestALogMoves(t *testing.T) {
	a, b := newDisk(t, "/a", "t:0"), newDisk(t, "/b")
	e := mustNew(t, a, b)
	check := func(when, want string) {
		t.Helper()
		if got := served(t, e, "t", 0); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
		if i, err := e.Topic(t.Context(), "t"); err != nil || len(i.Partitions) != 1 {
			t.Errorf("%s: got %+v, %v", when, i, err)
		}
		if st := e.Status(); st.Topics != 1 {
			t.Errorf("%s: got %+v", when, st)
		}
	}
	check("before", "/a")
	if err := b.Memory.CreateTopic(t.Context(), storage.TopicSpec{Name: "t", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.log(t, "t", 0).Append(t.Context(), []storage.Record{{Value: []byte("/b")}}, 1); err != nil {
		t.Fatal(err)
	}
	check("in both", "/a")
	if err := a.DeleteTopic(t.Context(), "t", true); err != nil {
		t.Fatal(err)
	}
	check("after", "/b")
	check("after that", "/b")
}

func TestADiskFails(t *testing.T) {
	for _, failing := range []string{"first", "second"} {
		t.Run(failing, func(t *testing.T) {
			good, bad := newDisk(t, "/good", "t:0"), newDisk(t, "/bad", "t:1", "u:1")
			list := []storage.Engine{good, bad}
			if failing == "first" {
				slices.Reverse(list)
			}
			e := mustNew(t, list...)
			bad.Fail("topics", errDisk)
			if i, err := e.Topic(t.Context(), "t"); err != nil || !slices.Equal(i.Partitions, []int32{0}) {
				t.Errorf("what the good one has: got %+v, %v", i, err)
			}
			bad.Fail("topics", errDisk)
			if _, err := e.Topic(t.Context(), "u"); !errors.Is(err, errDisk) {
				t.Errorf("what nobody else has: got %v", err)
			}
			bad.Fail("topics", errDisk)
			if _, err := e.Topics(t.Context()); !errors.Is(err, errDisk) {
				t.Errorf("list: got %v", err)
			}
			if got := served(t, e, "t", 0); got != "/good" {
				t.Errorf("log: got %s", got)
			}
			bad.Fail("partition", errDisk)
			if got := served(t, e, "t", 1); got != errDisk.Error() {
				t.Errorf("log of the bad one: got %s", got)
			}
			// One that nobody has looked at yet may be on the good one.
			if err := good.AddPartition(t.Context(), "t", 1); err != nil {
				t.Fatal(err)
			}
			if err := good.AddPartition(t.Context(), "t", 2); err != nil {
				t.Fatal(err)
			}
			if _, err := good.log(t, "t", 2).Append(t.Context(), []storage.Record{{Value: []byte("new")}}, 1); err != nil {
				t.Fatal(err)
			}
			bad.Fail("partition", errDisk)
			if got := served(t, e, "t", 2); got != "new" {
				t.Errorf("new log: got %s", got)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	a, b := newDisk(t, "/a", "x:0", "y:0"), newDisk(t, "/b", "x:1")
	a.more = storage.EngineStatus{Missing: 1, Aside: []storage.Aside{{Path: "/a/z"}}}
	b.more = storage.EngineStatus{Missing: 2, Aside: []storage.Aside{{Path: "/b/z"}}, Remote: true, Clean: true}
	st := mustNew(t, a, b).Status()
	if st.Topics != 2 || st.Missing != 3 || len(st.Aside) != 2 || !st.Remote || st.Clean {
		t.Errorf("got %+v", st)
	}
	var names []string
	for _, p := range st.List {
		names = append(names, p.Topic)
	}
	if !slices.IsSorted(names) || len(names) != 4 || st.Partitions != 4 || st.Opened != 4 {
		t.Errorf("got %+v", st)
	}
}

func TestClose(t *testing.T) {
	a, b := newDisk(t, "/a"), newDisk(t, "/b")
	e := mustNew(t, a, b)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := b.Close(); !errors.Is(err, storage.ErrClosed) {
		t.Error("the second was left open")
	}
}

func TestCancel(t *testing.T) {
	e := mustNew(t, newDisk(t, "/a", "t:0"), newDisk(t, "/b"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDisk)
	if _, err := e.Topic(ctx, "t"); !errors.Is(err, errDisk) {
		t.Errorf("topic: got %v", err)
	}
	if _, err := e.Topics(ctx); !errors.Is(err, errDisk) {
		t.Errorf("topics: got %v", err)
	}
	if _, err := e.Partition(ctx, storage.TopicPartition{Topic: "none"}); !errors.Is(err, errDisk) {
		t.Errorf("partition: got %v", err)
	}
}
