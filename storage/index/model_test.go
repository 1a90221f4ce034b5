package index

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
)

// batches draws a log.
func drawBatches(t *rapid.T, base storage.Offset) []batch {
	n := rapid.IntRange(0, 60).Draw(t, "batches")
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		n = 700 // indexes longer than what a lookup reads at once
	}
	next, pos := base, storage.Pos(0)
	out := make([]batch, n)
	for i := range out {
		gap := storage.Offset(rapid.IntRange(0, 2).Draw(t, "gap"))
		count := storage.Offset(rapid.IntRange(1, 5).Draw(t, "count"))
		size := int64(rapid.IntRange(61, 400).Draw(t, "size"))
		ts := int64(rapid.IntRange(-1, 3000).Draw(t, "timestamp"))
		out[i] = batch{next + gap, next + gap + count - 1, ts, pos, size}
		next = out[i].last + 1
		pos += storage.Pos(size)
	}
	return out
}

// naive applies the rule of the format to a log, in the format's own words.
func naive(base storage.Offset, interval, limit int64, log []batch) (offsets []OffsetEntry, times []TimeEntry, closing []TimeEntry) {
	counter, maxTs, maxOff := int64(0), int64(-1), base
	maybe := func() {
		last := int64(-1)
		if len(times) > 0 {
			last = times[len(times)-1].Timestamp
		}
		if maxTs > last {
			times = append(times, TimeEntry{maxTs, maxOff})
		}
	}
	for _, b := range log {
		if b.maxTs > maxTs {
			maxTs, maxOff = b.maxTs, b.last
		}
		full := int64(len(offsets)) >= limit/8 || int64(len(times)) >= limit/12-1
		if counter > interval && !full {
			offsets = append(offsets, OffsetEntry{b.last, b.pos})
			maybe()
			counter = 0
		}
		counter += b.size
	}
	kept := times
	if int64(len(times)) < limit/12 {
		maybe()
	}
	return offsets, kept, times
}

func TestModelBuilder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := storage.Offset(rapid.Int64Range(0, 1<<40).Draw(t, "base"))
		interval := int64(rapid.SampledFrom([]int{0, 1, 200, 1000, 4096}).Draw(t, "interval"))
		limit := int64(rapid.SampledFrom([]int{12, 24, 100, 1 << 20}).Draw(t, "limit"))
		log := drawBatches(t, base)
		wantO, wantT, wantClosed := naive(base, interval, limit, log)

		var gotO []OffsetEntry
		var gotT []TimeEntry
		b := NewBuilder(base, interval, limit)
		cut := rapid.IntRange(0, len(log)).Draw(t, "resume at")
		for i, x := range log {
			if i == cut {
				// Resuming from what is in the files and a scan of the log changes nothing.
				var lo OffsetEntry
				var lt TimeEntry
				since := int64(x.pos)
				if len(gotO) > 0 {
					lo = gotO[len(gotO)-1]
					since -= int64(lo.Pos)
				}
				if len(gotT) > 0 {
					lt = gotT[len(gotT)-1]
				}
				maxTs, maxOff := b.MaxTimestamp()
				r := ResumeBuilder(base, interval, limit, len(gotO), lo, len(gotT), lt, maxTs, maxOff, since)
				if r != b {
					t.Fatalf("resumed: got %+v, want %+v", r, b)
				}
				b = r
			}
			staged := b
			addO, oe, addT, te := staged.Add(x.last, x.maxTs, x.pos, x.size)
			if rapid.IntRange(0, 9).Draw(t, "refused") == 0 {
				staged = b // as a writer does whose write failed
				addO, oe, addT, te = staged.Add(x.last, x.maxTs, x.pos, x.size)
			}
			b = staged
			if addO {
				gotO = append(gotO, oe)
			}
			if addT {
				gotT = append(gotT, te)
			}
			if o, n := b.Counts(); o != len(gotO) || n != len(gotT) {
				t.Fatalf("counts: got %d, %d, want %d, %d", o, n, len(gotO), len(gotT))
			}
			if want := int64(len(gotO)) >= limit/8 || int64(len(gotT)) >= limit/12-1; b.Full() != want {
				t.Fatalf("full: got %t, want %t", b.Full(), want)
			}
		}
		equal(t, "offset entries", gotO, wantO)
		equal(t, "time entries", gotT, wantT)
		if te, ok := b.Close(); ok {
			gotT = append(gotT, te)
		}
		equal(t, "closed time entries", gotT, wantClosed)
	})
}

func equal[E comparable](t *rapid.T, what string, got, want []E) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: entry %d: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestModelLookups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := storage.Offset(rapid.Int64Range(0, 1<<40).Draw(t, "base"))
		log := drawBatches(t, base)
		var rawO, rawT []byte
		var os []OffsetEntry
		var ts []TimeEntry
		sb := SizeBuilder{Interval: int64(rapid.SampledFrom([]int{0, 500}).Draw(t, "interval"))}
		b := NewBuilder(base, 0, 0)
		var end storage.Pos
		next := base
		for _, x := range log {
			addO, oe, addT, te := b.Add(x.last, x.maxTs, x.pos, x.size)
			if addO {
				os = append(os, oe)
				rawO, _ = AppendOffsetEntry(rawO, base, oe)
			}
			if addT {
				ts = append(ts, te)
				rawT, _ = AppendTimeEntry(rawT, base, te)
			}
			n := rapid.Int64Range(0, 3).Draw(t, "records")
			sb.Add(x.first, x.pos, Sums{n, n * 2, n * x.size})
			end, next = x.pos+storage.Pos(x.size), x.last+1
		}
		pad := rapid.SampledFrom([]int{0, 1, 7, 24, 8192}).Draw(t, "padding")
		if pad < 12 && (len(os) == 0 || len(ts) == 0) {
			pad = 0 // a partial entry only
		}
		fileO, fileT := append(rawO, make([]byte, pad)...), append(rawT, make([]byte, pad)...)
		if n, err := CountOffsets(bytes.NewReader(fileO), int64(len(fileO))); err != nil || n != len(os) {
			t.Fatalf("offset entries: got %d, %v, want %d", n, err, len(os))
		}
		if n, err := CountTimes(bytes.NewReader(fileT), int64(len(fileT))); err != nil || n != len(ts) {
			t.Fatalf("time entries: got %d, %v, want %d", n, err, len(ts))
		}
		xo := Offsets{bytes.NewReader(fileO), len(os), base}
		xt := Times{bytes.NewReader(fileT), len(ts), base}
		if err := CheckOffsets(xo.R, xo.N, base, int64(end)); err != nil {
			t.Fatal(err)
		}
		if err := checkTimes(xt.R, xt.N, base, next); err != nil {
			t.Fatal(err)
		}
		whole := EncodeSizes(SizeHeader{Base: base, NextOffset: next, LogSize: int64(end), LastPos: end, Total: sb.Total(), MaxTimestamp: -1}, sb.Entries())
		h, entries, err := DecodeSizes(whole, base)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "size entries", entries, sb.Entries())
		tables := map[string]SizeTable{"file": Sizes{bytes.NewReader(whole), h}, "memory": entries}

		for range 5 {
			o := base + storage.Offset(rapid.Int64Range(-2, int64(next-base)+2).Draw(t, "offset"))
			p := storage.Pos(rapid.Int64Range(-2, int64(end)+2).Draw(t, "pos"))
			when := rapid.Int64Range(-2, 3002).Draw(t, "time")
			e, i, err := xo.Floor(o)
			same(t, "offset", e, i, err, os, OffsetEntry{Offset: base}, func(e OffsetEntry) bool { return e.Offset <= o })
			e, i, err = xo.FloorPos(p)
			same(t, "position", e, i, err, os, OffsetEntry{Offset: base}, func(e OffsetEntry) bool { return e.Pos <= p })
			te, i, err := xt.Floor(when)
			same(t, "time", te, i, err, ts, TimeEntry{-1, base}, func(e TimeEntry) bool { return e.Timestamp <= when })
			te, i, err = xt.FloorOffset(o)
			same(t, "time by offset", te, i, err, ts, TimeEntry{-1, base}, func(e TimeEntry) bool { return e.Offset <= o })
			f := func(s Sums) int64 { return s.ValueBytes + s.Records }
			at := rapid.Int64Range(-1, f(sb.Total())+1).Draw(t, "byte")
			for name, x := range tables {
				none := SizeEntry{Offset: base}
				if len(entries) > 0 && name == "memory" {
					none.Offset = entries[0].Offset
				}
				e, i, err := x.FloorOffset(o)
				same(t, name+" offset", e, i, err, entries, none, func(e SizeEntry) bool { return e.Offset <= o })
				e, i, err = x.FloorMeasure(f, at)
				same(t, name+" measure", e, i, err, entries, none, func(e SizeEntry) bool { return f(e.Before) <= at })
			}
		}
	})
}

// same compares a lookup with a linear scan.
func same[E comparable](t *rapid.T, what string, e E, i int, err error, all []E, none E, le func(E) bool) {
	t.Helper()
	want, wantI := none, -1
	for j, x := range all {
		if le(x) {
			want, wantI = x, j
		}
	}
	if err != nil || i != wantI || (e != want && (wantI >= 0 || len(all) > 0)) {
		t.Fatalf("lookup by %s: got %v, %d, %v, want %v, %d", what, e, i, err, want, wantI)
	}
}
