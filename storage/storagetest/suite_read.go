package storagetest

import (
	"context"
	"errors"
	"io"

	"github.com/logmount/logmount/storage"
)

// smallSegments makes a log roll after a few records.
var smallSegments = map[string]string{"segment.bytes": "500", "index.interval.bytes": "100"}

func (t *test) snapshotIsFixed() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	empty := snapshot(ctx, t, p)
	add(ctx, t, p, 1<<14, value(1, "a"), value(2, "b"))
	two := snapshot(ctx, t, p)
	c := two.Records(0)
	defer c.Close()
	if got := len(drain(ctx, t, c)); got != 2 {
		t.Fatalf("records: got %d, want 2", got)
	}
	var want []storage.Record
	for i := range 40 {
		want = append(want, value(int64(i), "value %d", i))
	}
	add(ctx, t, p, 200, want...)
	if empty.End() != 0 || two.End() != 2 || empty.Generation() != two.Generation() {
		t.Errorf("old snapshots: got ends %d and %d, want 0 and 2, of one generation", empty.End(), two.End())
	}
	if got := len(read(ctx, t, two, 0)); got != 2 {
		t.Errorf("the old snapshot shows %d records, want 2", got)
	}
	if got := len(read(ctx, t, empty, 0)); got != 0 {
		t.Errorf("the empty snapshot shows %d records", got)
	}
	if _, err := c.Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("the cursor before Advance: got %v, want EOF", err)
	}
	c.Advance(snapshot(ctx, t, p))
	compare(t, "after Advance", drain(ctx, t, c), numbered(2, want))
	if got := c.Offset(); got != 42 {
		t.Errorf("cursor: got offset %d, want 42", got)
	}
	c.Advance(snapshot(ctx, t, p))
	if _, err := c.Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("nothing new: got %v, want EOF", err)
	}
	e1 := empty.Records(0)
	defer e1.Close()
	e1.Advance(snapshot(ctx, t, p))
	if got := len(drain(ctx, t, e1)); got != 42 {
		t.Errorf("a cursor that began in an empty log: got %d records, want 42", got)
	}
}

func (t *test) next() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	if got, err := snapshot(ctx, t, p).Next(ctx, 0); err != nil || got != 0 {
		t.Errorf("empty log: got %d, %v, want 0", got, err)
	}
	for i := range 30 {
		add(ctx, t, p, 150, value(int64(i), "value %d", i), value(int64(i), "more"))
	}
	if err := p.SetStart(ctx, 10); err != nil {
		t.Fatal(err)
	}
	snap := snapshot(ctx, t, p)
	for o := snap.Start(); o <= snap.End(); o++ {
		if got, err := snap.Next(ctx, o); err != nil || got != o {
			t.Errorf("next of %d: got %d, %v", o, got, err)
		}
	}
	for _, o := range []storage.Offset{-1, 9, 61} {
		_, err := snap.Next(ctx, o)
		wantErr(t, "next outside", err, storage.ErrOutOfRange)
	}
}

func (t *test) findTime() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	if got, err := snapshot(ctx, t, p).FindTime(ctx, 0); err != nil || got != 0 {
		t.Errorf("empty log: got %d, %v, want 0", got, err)
	}
	times := []int64{10, 20, 15, 5, 30, 30, 25, storage.NoTimestamp, 40, 1, 50, 45, 60, 60, 60, 55, 70, 2, 3, 4}
	for i, ts := range times {
		add(ctx, t, p, 200, value(ts, "value %d", i), value(ts-1, "value %d, a little before", i))
	}
	var all []storage.Record
	check := func(start storage.Offset) {
		t.Helper()
		snap := snapshot(ctx, t, p)
		all = read(ctx, t, snap, start)
		for ts := int64(-2); ts < 75; ts++ {
			want := snap.End()
			for i := range all {
				if all[i].Timestamp >= ts {
					want = all[i].Offset
					break
				}
			}
			if got, err := snap.FindTime(ctx, ts); err != nil || got != want {
				t.Errorf("start %d, time %d: got %d, %v, want %d", start, ts, got, err, want)
			}
		}
	}
	check(0)
	for _, start := range []storage.Offset{1, 5, 17, 34, 39, 40} {
		if err := p.SetStart(ctx, start); err != nil {
			t.Fatal(err)
		}
		check(start)
	}
}

func (t *test) findLast() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	check := func(start, end storage.Offset) {
		t.Helper()
		snap := snapshot(ctx, t, p)
		for _, n := range []int64{0, 1, 2, 7, int64(end - start), int64(end-start) + 1, 1 << 62} {
			want := max(end-storage.Offset(n), start)
			if got, err := snap.FindLast(ctx, n); err != nil || got != want {
				t.Errorf("last %d of %d to %d: got %d, %v, want %d", n, start, end, got, err, want)
			}
		}
	}
	check(0, 0)
	for i := range 25 {
		add(ctx, t, p, 150, value(int64(i), "value %d", i), value(int64(i), "more"))
	}
	check(0, 50)
	if err := p.SetStart(ctx, 13); err != nil {
		t.Fatal(err)
	}
	check(13, 50)
}

func (t *test) setStart() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	var in []storage.Record
	for i := range 60 {
		in = append(in, value(int64(i), "value %d", i))
	}
	add(ctx, t, p, 200, in...)
	want := numbered(0, in)
	old := snapshot(ctx, t, p)
	early, late := old.Records(0), old.Records(50)
	defer early.Close()
	defer late.Close()
	if _, err := early.Next(ctx); err != nil { // it now stands in the first segment and keeps that
		t.Fatal(err)
	}
	wantErr(t, "start above the end", p.SetStart(ctx, 61), storage.ErrOutOfRange)
	if err := p.SetStart(ctx, 40); err != nil {
		t.Fatal(err)
	}
	for _, o := range []storage.Offset{-5, 0, 39, 40} {
		if err := p.SetStart(ctx, o); err != nil {
			t.Errorf("start back to %d: %v", o, err)
		}
	}
	snap := snapshot(ctx, t, p)
	if snap.Start() != 40 || snap.End() != 60 || old.Start() != 0 {
		t.Errorf("got %d to %d, the old snapshot from %d", snap.Start(), snap.End(), old.Start())
	}
	if snap.Generation() == old.Generation() {
		t.Error("the generation is as before")
	}
	compare(t, "after SetStart", read(ctx, t, snap, 40), want[40:])
	compare(t, "a cursor above the new start", drain(ctx, t, late), want[50:])
	goneOrRight(ctx, t, early, want)
	if err := p.SetStart(ctx, 60); err != nil {
		t.Fatal(err)
	}
	if snap = snapshot(ctx, t, p); snap.Start() != 60 || snap.End() != 60 || len(read(ctx, t, snap, 60)) != 0 {
		t.Errorf("all deleted: got %d to %d", snap.Start(), snap.End())
	}
	if a := add(ctx, t, p, 200, value(1, "again")); a.First != 60 {
		t.Errorf("append to an emptied log: got offset %d, want 60", a.First)
	}
	late.Advance(snapshot(ctx, t, p))
	if r, err := late.Next(ctx); err != nil || r.Offset != 60 || string(r.Value) != "again" {
		t.Errorf("a cursor that stood at the end: got %v, %v", r, err)
	}
}

// goneOrRight reads what a cursor below a new start still gives: each record is the right one, or all the rest is gone.
func goneOrRight(ctx context.Context, t tester, c storage.Cursor, want []storage.Record) {
	t.Helper()
	for {
		at := c.Offset()
		r, err := c.Next(ctx)
		switch {
		case errors.Is(err, storage.ErrOffsetGone), errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatalf("an old cursor at %d: %v", at, err)
		case !sameRecord(r, &want[at]):
			t.Fatalf("an old cursor at %d: got %s, want %s", at, show(r), show(&want[at]))
		}
	}
}
