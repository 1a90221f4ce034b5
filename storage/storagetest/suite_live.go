package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/logmount/logmount/storage"
)

func (t *test) watch() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", nil)
	a, b := make(chan struct{}, 1), make(chan struct{}, 1)
	stopA, stopB := p.Watch(a), p.Watch(b)
	defer stopB()
	add(ctx, t, p, 1000, value(1, "v"))
	<-a
	<-b
	for range 10 { // a full channel does not block the appender
		add(ctx, t, p, 1000, value(1, "v"))
	}
	<-a
	<-b
	if err := p.SetStart(ctx, 3); err != nil {
		t.Fatal(err)
	}
	<-b
	stopA()
	stopA()
	for len(a) > 0 {
		<-a
	}
	add(ctx, t, p, 1000, value(1, "v"))
	<-b
	if len(a) != 0 {
		t.Error("a stopped watcher was told")
	}
}

// cancel: with a cancelled context a method either gives its cause, having done nothing, or does its work.
func (t *test) cancel() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	fill(ctx, t, p)
	snap := snapshot(ctx, t, p)
	cause := errors.New("the reader has gone")
	gone, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	check := func(what string, err error) bool {
		t.Helper()
		if err != nil && !errors.Is(err, cause) && !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want the cause", what, err)
		}
		return err == nil
	}
	_, err := e.Topics(gone)
	check("topics", err)
	_, err = e.Topic(gone, "t")
	check("topic", err)
	_, err = e.Partition(gone, storage.TopicPartition{Topic: "t"})
	check("partition", err)
	_, err = p.Snapshot(gone)
	check("snapshot", err)
	_, err = snap.Next(gone, 1)
	check("next", err)
	_, err = snap.FindTime(gone, 5)
	check("find time", err)
	_, err = snap.FindLast(gone, 5)
	check("find last", err)
	for _, m := range measures() {
		_, err = snap.Extent(gone, m, 0, snap.End())
		check("extent", err)
		_, _, err = snap.Locate(gone, m, 40, -30)
		check("locate", err)
	}
	c := snap.Records(0)
	defer c.Close()
	_, err = c.Next(gone)
	check("cursor", err)
	want := snap.End()
	_, err = p.Append(gone, []storage.Record{value(1, "v")}, 1000)
	if check("append", err) {
		want++
	}
	check("sync", p.Sync(gone))
	check("check", p.CheckAppend(gone, &storage.Record{}))
	start := snap.Start()
	if check("start", p.SetStart(gone, 1)) {
		start = 1
	}
	created := check("create", e.CreateTopic(gone, storage.TopicSpec{Name: "u", Partitions: 1}))
	if _, err := e.Topic(ctx, "u"); (err == nil) != created {
		t.Errorf("create said %t, the topic: %v", created, err)
	}
	if after := snapshot(ctx, t, p); after.End() != want || after.Start() != start {
		t.Errorf("got %d to %d, want %d to %d", after.Start(), after.End(), start, want)
	}
	add(ctx, t, p, 1000, value(1, "still works"))
	if err := p.Sync(ctx); err != nil {
		t.Errorf("sync: %v", err)
	}
}

// concurrent: what a follower sees is always a prefix, every append is one piece, and each writer's order is kept.
func (t *test) concurrent() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", map[string]string{"segment.bytes": "4000"})
	const writers, appends, each = 4, 40, 3
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range appends {
				var rs []storage.Record
				for j := range each {
					rs = append(rs, value(int64(i), "%d %d %d", w, i, j))
				}
				a, err := p.Append(ctx, rs, 120)
				if err != nil || a.Next-a.First != each {
					t.Errorf("append: got %v, %v", a, err)
					return
				}
				if snap, err := p.Snapshot(ctx); err != nil || snap.End() < a.Next {
					t.Errorf("a snapshot after an append up to %d: %v", a.Next, err)
				}
				if i%16 == w {
					if err := p.Sync(ctx); err != nil {
						t.Errorf("sync: %v", err)
					}
				}
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			if err := follow(ctx, p, writers*appends*each, each); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// follow reads n records as they arrive.
func follow(ctx context.Context, p storage.Partition, n, each int) error {
	ch := make(chan struct{}, 1)
	defer p.Watch(ch)()
	snap, err := p.Snapshot(ctx)
	if err != nil {
		return err
	}
	c := snap.Records(0)
	defer c.Close()
	last := map[int]int{} // the writer's last append
	var w, i, j, wantW, wantI int
	for seen := 0; seen < n; {
		r, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			<-ch
			next, err := p.Snapshot(ctx)
			if err != nil {
				return err
			}
			if next.End() < snap.End() {
				return fmt.Errorf("the end went back from %d to %d", snap.End(), next.End())
			}
			snap = next
			c.Advance(snap)
			continue
		}
		if err != nil {
			return fmt.Errorf("follow at %d: %w", c.Offset(), err)
		}
		if r.Offset != storage.Offset(seen) {
			return fmt.Errorf("got offset %d, want %d", r.Offset, seen)
		}
		if _, err := fmt.Sscanf(string(r.Value), "%d %d %d", &w, &i, &j); err != nil {
			return fmt.Errorf("record %d: %q: %w", r.Offset, r.Value, err)
		}
		if j != seen%each || j > 0 && (w != wantW || i != wantI) {
			return fmt.Errorf("record %d is %q within append %d of writer %d", r.Offset, r.Value, wantI, wantW)
		}
		if j == 0 && i != last[w] {
			return fmt.Errorf("record %d: append %d of writer %d, want %d", r.Offset, i, w, last[w])
		}
		if j == 0 {
			last[w]++
		}
		wantW, wantI = w, i
		seen++
	}
	return nil
}

func (t *test) closed() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", nil)
	add(ctx, t, p, 1000, value(1, "v"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	tp := storage.TopicPartition{Topic: "t"}
	_, err := e.Topics(ctx)
	wantErr(t, "topics", err, storage.ErrClosed)
	_, err = e.Topic(ctx, "t")
	wantErr(t, "topic", err, storage.ErrClosed)
	_, err = e.Partition(ctx, tp)
	wantErr(t, "partition", err, storage.ErrClosed)
	wantErr(t, "create", e.CreateTopic(ctx, storage.TopicSpec{Name: "u", Partitions: 1}), storage.ErrClosed)
	wantErr(t, "delete", e.DeleteTopic(ctx, "t", true), storage.ErrClosed)
	wantErr(t, "add", e.AddPartition(ctx, "t", 1), storage.ErrClosed)
	_, err = p.Append(ctx, []storage.Record{value(1, "v")}, 1000)
	wantErr(t, "append", err, storage.ErrClosed)
	wantErr(t, "start", p.SetStart(ctx, 1), storage.ErrClosed)
	wantErr(t, "close", e.Close(), storage.ErrClosed)
	e.Info()
	e.Status()
}

func (t *test) reopen() {
	if t.o.Reopen == nil {
		t.Skip("the engine keeps nothing")
	}
	ctx, e := t.Context(), t.open(t.T)
	p := create(ctx, t, e, "t", smallSegments)
	if err := e.CreateTopic(ctx, storage.TopicSpec{Name: "u", Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	want := numbered(0, varied())
	add(ctx, t, p, 1<<14, varied()...)
	before, err := e.Topics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		e = t.o.Reopen(t.T, e)
		closeLater(t.T, e)
		after, err := e.Topics(ctx)
		if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Fatalf("topics: got %v, %v, want %v", after, err, before)
		}
		p = partition(ctx, t, e, "t", 0)
		compare(t, "after reopening", read(ctx, t, snapshot(ctx, t, p), storage.Offset(i)), want[i:])
		a := add(ctx, t, p, 1<<14, value(int64(i), "again"))
		want = append(want, numbered(a.First, []storage.Record{value(int64(i), "again")})...)
		if err := p.SetStart(ctx, storage.Offset(i)+1); err != nil {
			t.Fatal(err)
		}
	}
}
