package storagetest

import (
	"context"
	"errors"
	"math/rand"
	"strconv"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

// model runs random operations on an engine and on slices, and compares all that can be asked.
func (t *test) model() {
	rapid.Check(t.T, func(rt *rapid.T) {
		e := t.open(t.T)
		m := &modelRun{test: t, ctx: t.Context(), e: e}
		defer func() {
			if err := m.e.Close(); err != nil && !errors.Is(err, storage.ErrClosed) {
				rt.Errorf("close: %v", err)
			}
		}()
		config := map[string]string{
			"segment.bytes":        strconv.Itoa(rapid.IntRange(14, 2000).Draw(rt, "segment.bytes")),
			"index.interval.bytes": strconv.Itoa(rapid.IntRange(0, 300).Draw(rt, "index.interval.bytes")),
			"segment.ms":           rapid.SampledFrom([]string{"1", "50", "604800000"}).Draw(rt, "segment.ms"),
			"segment.index.bytes":  rapid.SampledFrom([]string{"40", "1000", "10485760"}).Draw(rt, "segment.index.bytes"),
		}
		m.p = create(m.ctx, rt, e, "t", config)
		rt.Repeat(map[string]func(*rapid.T){
			"append":   m.append,
			"append2":  m.append, // twice as likely
			"sync":     m.sync,
			"read":     m.read,
			"batches":  m.batches,
			"find":     m.find,
			"measure":  m.measure,
			"setstart": m.setStart,
			"reopen":   m.reopen,
			"crash":    m.crash,
			"":         m.bounds,
		})
	})
}

type modelRun struct {
	*test
	ctx context.Context //nolint:containedctx // the context of one test, which the model belongs to
	e   storage.Engine
	p   storage.Partition

	all    []storage.Record // from offset 0 on, deleted ones too
	start  storage.Offset
	synced int
}

func drawBytes(rt *rapid.T, most int, name string) []byte {
	switch rapid.IntRange(0, 5).Draw(rt, name+" kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return make([]byte, rapid.IntRange(0, 3*most).Draw(rt, name+" length"))
	}
	return rapid.SliceOfN(rapid.Byte(), 1, most).Draw(rt, name)
}

func drawRecord(rt *rapid.T) storage.Record {
	r := storage.Record{Timestamp: rapid.Int64Range(-1, 200).Draw(rt, "timestamp"), Key: drawBytes(rt, 20, "key"), Value: drawBytes(rt, 200, "value")}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(rt, "headers") {
		h := storage.Header{Key: rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "header"), Value: drawBytes(rt, 10, "header value")}
		r.Headers = append(r.Headers, h)
	}
	return r
}

func (m *modelRun) append(rt *rapid.T) {
	records := rapid.SliceOfN(rapid.Custom(drawRecord), 1, 12).Draw(rt, "records")
	a := add(m.ctx, rt, m.p, rapid.IntRange(1, 1000).Draw(rt, "batch bytes"), records...)
	if got, want := a.First, storage.Offset(len(m.all)); got != want {
		rt.Fatalf("append: got offset %d, want %d", got, want)
	}
	m.all = append(m.all, numbered(a.First, records)...)
}

func (m *modelRun) sync(rt *rapid.T) {
	if err := m.p.Sync(m.ctx); err != nil {
		rt.Fatalf("sync: %v", err)
	}
	m.synced = len(m.all)
}

func (m *modelRun) end() storage.Offset { return storage.Offset(len(m.all)) }

func (m *modelRun) draw(rt *rapid.T, name string) storage.Offset {
	return storage.Offset(rapid.Int64Range(int64(m.start), int64(m.end())).Draw(rt, name))
}

func (m *modelRun) bounds(rt *rapid.T) {
	snap := snapshot(m.ctx, rt, m.p)
	if snap.Start() != m.start || snap.End() != m.end() {
		rt.Fatalf("got %d to %d, want %d to %d", snap.Start(), snap.End(), m.start, m.end())
	}
}

func (m *modelRun) read(rt *rapid.T) {
	o := m.draw(rt, "from")
	compare(rt, "read", read(m.ctx, rt, snapshot(m.ctx, rt, m.p), o), m.all[o:])
}

// batches: whole batches lie back to back over all offsets.
func (m *modelRun) batches(rt *rapid.T) {
	o := m.draw(rt, "from")
	snap := snapshot(m.ctx, rt, m.p)
	batches := measures()[4]
	all := bits(m.ctx, rt, snap, batches)
	var got int64
	for _, b := range readBatches(m.ctx, rt, snap, o) {
		got += int64(len(b))
	}
	want, err := snap.Extent(m.ctx, batches, o, m.end())
	if o == m.end() {
		return
	}
	if err != nil || got != want || got != sum(all, o, m.end()) {
		rt.Fatalf("batches from %d: got %d bytes, the extent is %d, %v", o, got, want, err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].first != all[i-1].last+1 {
			rt.Fatalf("batch %d begins at %d, the one before ends at %d", i, all[i].first, all[i-1].last)
		}
	}
}

func (m *modelRun) find(rt *rapid.T) {
	snap := snapshot(m.ctx, rt, m.p)
	ts := rapid.Int64Range(-2, 210).Draw(rt, "time")
	want := m.end()
	for o := m.start; o < m.end(); o++ {
		if m.all[o].Timestamp >= ts {
			want = o
			break
		}
	}
	if got, err := snap.FindTime(m.ctx, ts); err != nil || got != want {
		rt.Fatalf("time %d: got %d, %v, want %d", ts, got, err, want)
	}
	n := rapid.Int64Range(0, int64(len(m.all))+2).Draw(rt, "last")
	want = max(m.start, m.end()-storage.Offset(n))
	if got, err := snap.FindLast(m.ctx, n); err != nil || got != want {
		rt.Fatalf("last %d: got %d, %v, want %d", n, got, err, want)
	}
	o := m.draw(rt, "next")
	if got, err := snap.Next(m.ctx, o); err != nil || got != o {
		rt.Fatalf("next of %d: got %d, %v", o, got, err)
	}
}

func (m *modelRun) measure(rt *rapid.T) {
	snap := snapshot(m.ctx, rt, m.p)
	me := measures()[rapid.IntRange(0, 3).Draw(rt, "measure")]
	from, to := m.draw(rt, "from"), m.draw(rt, "to")
	from, to = min(from, to), max(from, to)
	var want int64
	for _, r := range m.all[from:to] {
		want += me.Of(&r)
	}
	if got, err := snap.Extent(m.ctx, me, from, to); err != nil || got != want {
		rt.Fatalf("%s from %d to %d: got %d, %v, want %d", me.Name, from, to, got, err, want)
	}
	if want == 0 {
		return
	}
	// The byte p after from is the byte want - p before to.
	p := rapid.Int64Range(0, want-1).Draw(rt, "byte")
	o, skip, err := snap.Locate(m.ctx, me, from, p)
	if err != nil {
		rt.Fatalf("%s: byte %d after %d: %v", me.Name, p, from, err)
	}
	o2, skip2, err := snap.Locate(m.ctx, me, to, p-want)
	if err != nil || o != o2 || skip != skip2 {
		rt.Fatalf("%s: byte %d after %d is %d, %d; byte %d before %d is %d, %d, %v", me.Name, p, from, o, skip, want-p, to, o2, skip2, err)
	}
	at := skip
	for _, r := range m.all[from:min(o, m.end())] {
		at += me.Of(&r)
	}
	if at != p || o < from || o >= to || skip < 0 || skip >= me.Of(&m.all[o]) {
		rt.Fatalf("%s: byte %d after %d: got record %d, byte %d of it, which is byte %d", me.Name, p, from, o, skip, at)
	}
}

func (m *modelRun) setStart(rt *rapid.T) {
	old := snapshot(m.ctx, rt, m.p)
	c := old.Records(m.draw(rt, "old reader"))
	defer c.Close()
	o := m.draw(rt, "start")
	if err := m.p.SetStart(m.ctx, o); err != nil {
		rt.Fatalf("start %d: %v", o, err)
	}
	m.start = o
	m.synced = max(m.synced, int(o))
	goneOrRight(m.ctx, rt, c, m.all)
}

func (m *modelRun) reopen(rt *rapid.T) {
	if m.o.Reopen == nil {
		rt.Skip("the engine keeps nothing")
	}
	m.e = m.o.Reopen(m.T, m.e)
	m.p = partition(m.ctx, rt, m.e, "t", 0)
	m.synced = len(m.all)
	m.read(rt)
}

func (m *modelRun) crash(rt *rapid.T) {
	if m.o.Crash == nil {
		rt.Skip("the engine keeps nothing")
	}
	next := m.o.Crash(m.T, m.e, rand.New(rand.NewSource(rapid.Int64().Draw(rt, "crash"))))
	_ = m.e.Close()
	m.e = next
	m.p = partition(m.ctx, rt, m.e, "t", 0)
	snap := snapshot(m.ctx, rt, m.p)
	if snap.End() < storage.Offset(m.synced) || snap.End() > m.end() {
		rt.Fatalf("after a crash: got end %d, want %d to %d", snap.End(), m.synced, m.end())
	}
	m.all = m.all[:snap.End()]
	m.synced = len(m.all)
	m.bounds(rt)
	compare(rt, "after a crash", read(m.ctx, rt, snap, m.start), m.all[m.start:])
}
