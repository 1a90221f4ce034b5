package storagetest

import (
	"context"
	"encoding/binary"

	"github.com/logmount/logmount/storage"
)

// measures are the shapes that views use: lines, keys and values, values alone (null takes nothing), a size function, whole batches.
func measures() []*storage.Measure {
	return []*storage.Measure{
		{Name: "lines", PerRecord: 1, PerValueByte: 1},
		{Name: "kv", PerRecord: 2, PerKeyByte: 1, PerValueByte: 1},
		{Name: "values", PerValueByte: 1},
		{Name: "sized", Size: func(r *storage.Record) int64 {
			return 20 + int64(len(r.Value))*2 + r.Timestamp%7 + int64(len(r.Headers))
		}},
		{Name: "batches", Batches: true},
	}
}

// bit is a record, or a batch, and its size.
type bit struct {
	first, last storage.Offset
	size        int64
}

// bits reads a snapshot from its start into what a measure counts.
func bits(ctx context.Context, t tester, snap storage.Snapshot, m *storage.Measure) []bit {
	t.Helper()
	var out []bit
	if m.Batches {
		for _, b := range readBatches(ctx, t, snap, snap.Start()) {
			base := storage.Offset(binary.BigEndian.Uint64(b))
			out = append(out, bit{base, base + storage.Offset(binary.BigEndian.Uint32(b[23:])), int64(len(b))})
		}
		return out
	}
	for _, r := range read(ctx, t, snap, snap.Start()) {
		out = append(out, bit{r.Offset, r.Offset, m.Of(&r)})
	}
	return out
}

func sum(bits []bit, from, to storage.Offset) int64 {
	var n int64
	for _, b := range bits {
		if b.last >= from && b.first < to {
			n += b.size
		}
	}
	return n
}

// fill appends records of many sizes in batches of several records, over several segments.
func fill(ctx context.Context, t tester, p storage.Partition) {
	t.Helper()
	for i := range 8 {
		long := value(int64(i), "value %0*d", i*6, i)
		short := storage.Record{Timestamp: int64(3 * i), Key: []byte("only a key")}
		add(ctx, t, p, 180, long, short, storage.Record{Timestamp: 7}, value(int64(i), ""))
	}
}

func (t *test) extent() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	check := func() {
		t.Helper()
		snap := snapshot(ctx, t, p)
		for _, m := range measures() {
			all := bits(ctx, t, snap, m)
			for from := snap.Start(); from <= snap.End(); from++ {
				for to := from; to <= snap.End(); to++ {
					want := sum(all, from, to)
					if from == to {
						want = 0
					}
					got, err := snap.Extent(ctx, m, from, to)
					if err != nil || got != want {
						t.Fatalf("%s from %d to %d: got %d, %v, want %d", m.Name, from, to, got, err, want)
					}
					if got, exact := snap.ExtentNow(m, from, to); got > want || exact && got != want {
						t.Fatalf("%s from %d to %d, known: got %d (exact %t), want %d", m.Name, from, to, got, exact, want)
					}
				}
			}
		}
	}
	check()
	fill(ctx, t, p)
	check()
	if err := p.SetStart(ctx, 13); err != nil {
		t.Fatal(err)
	}
	check()
}

func (t *test) locate() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", smallSegments)
	if o, skip, err := snapshot(ctx, t, p).Locate(ctx, measures()[0], 0, 0); err != nil || o != 0 || skip != 0 {
		t.Errorf("empty log: got %d, %d, %v", o, skip, err)
	}
	fill(ctx, t, p)
	snap := snapshot(ctx, t, p)
	for _, m := range measures() {
		all := bits(ctx, t, snap, m)
		total := sum(all, snap.Start(), snap.End())
		for _, anchor := range []storage.Offset{0, 1, 13, 20, 31, 32} {
			before := int64(0) // bytes that lie before the anchor's record or batch
			for _, b := range all {
				if b.last < anchor {
					before += b.size
				}
			}
			at := -before
			for _, b := range all {
				for skip := range b.size {
					o, got, err := snap.Locate(ctx, m, anchor, at+skip)
					if err != nil || o < b.first || o > b.last || got != skip {
						t.Fatalf("%s: byte %d from %d: got %d, %d, %v, want %d, %d", m.Name, at+skip, anchor, o, got, err, b.first, skip)
					}
				}
				at += b.size
			}
			for _, p := range []int64{total - before, total - before + 1, 1 << 60} {
				if o, skip, err := snap.Locate(ctx, m, anchor, p); err != nil || o != snap.End() || skip != 0 {
					t.Errorf("%s: byte %d from %d: got %d, %d, %v, want the end", m.Name, p, anchor, o, skip, err)
				}
			}
			_, _, err := snap.Locate(ctx, m, anchor, -before-1)
			wantErr(t, m.Name+" before the log", err, storage.ErrOffsetGone)
		}
	}
}
