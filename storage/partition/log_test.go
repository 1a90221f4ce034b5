package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/segment"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

var (
	lines = &storage.Measure{Name: "lines", PerRecord: 1, PerValueByte: 1}
	kv    = &storage.Measure{Name: "kv", PerRecord: 2, PerKeyByte: 1, PerValueByte: 1}
	odd   = &storage.Measure{Name: "odd", Size: func(r *storage.Record) int64 { return 3 + int64(len(r.Value))*2 + int64(r.Offset%7) }}
)

// checkSnapshot compares everything that a snapshot says with a plain list of the log's records.
func checkSnapshot(s storage.Snapshot, want []storage.Record) error {
	ctx := context.Background()
	var visible []storage.Record
	for _, r := range want {
		if r.Offset >= s.Start() {
			visible = append(visible, r)
		}
	}
	for _, m := range []*storage.Measure{lines, kv, odd} {
		for _, from := range []storage.Offset{s.Start(), (s.Start() + s.End()) / 2, s.End()} {
			var sum int64
			for i := range visible {
				if visible[i].Offset >= from {
					sum += m.Of(&visible[i])
				}
			}
			if got, err := s.Extent(ctx, m, from, s.End()); err != nil || got != sum {
				return errors.Join(err, fmt.Errorf("extent of %s from %d: %d, want %d", m.Name, from, got, sum))
			}
			if got, exact := s.ExtentNow(m, from, s.End()); !exact || got != sum {
				return fmt.Errorf("extent now of %s from %d: %d, %v, want %d", m.Name, from, got, exact, sum)
			}
		}
		if first := s.(*snapshot).at(0).Base; first > 0 {
			// What lay between is gone: any answer would name another record's bytes.
			for _, p := range []int64{0, 10, 1 << 40} {
				if o, k, err := s.Locate(ctx, m, first-1, p); !errors.Is(err, storage.ErrOffsetGone) {
					return fmt.Errorf("locate byte %d of %s from what is gone: %d+%d, %w", p, m.Name, o, k, err)
				}
			}
		}
		var at int64
		for i := range visible {
			r := &visible[i]
			if i%(1+len(visible)/20) != 0 {
				at += m.Of(r)
				continue
			}
			for _, skip := range []int64{0, m.Of(r) - 1} {
				o, k, err := s.Locate(ctx, m, s.Start(), at+skip)
				if err != nil || o != r.Offset || k != skip {
					return errors.Join(err, fmt.Errorf("locate byte %d of %s: %d+%d, want %d+%d", at+skip, m.Name, o, k, r.Offset, skip))
				}
			}
			at += m.Of(r)
		}
		if len(visible) > 0 {
			total := at
			mid := visible[len(visible)/2]
			before, err := s.Extent(ctx, m, s.Start(), mid.Offset)
			if err != nil {
				return err
			}
			for _, p := range []int64{0, total / 3, total - 1} {
				o, k, err := s.Locate(ctx, m, s.Start(), p)
				o2, k2, err2 := s.Locate(ctx, m, mid.Offset, p-before)
				if err != nil || err2 != nil || o != o2 || k != k2 {
					return errors.Join(err, err2, fmt.Errorf("locate of %s from two anchors: %d+%d, %d+%d", m.Name, o, k, o2, k2))
				}
			}
		}
	}
	for i := range visible {
		if i%(1+len(visible)/20) == 0 {
			if o, err := s.FindLast(ctx, int64(len(visible)-i)); err != nil || o != visible[i].Offset {
				return errors.Join(err, fmt.Errorf("last %d: %d, want %d", len(visible)-i, o, visible[i].Offset))
			}
			ts := visible[i].Timestamp
			first := s.End()
			for _, r := range visible {
				if r.Timestamp >= ts {
					first = r.Offset
					break
				}
			}
			if o, err := s.FindTime(ctx, ts); err != nil || o != first {
				return errors.Join(err, fmt.Errorf("time %d: %d, want %d", ts, o, first))
			}
		}
	}
	return nil
}

// checkFiles demands that the index files are what a rebuild of the log gives.
func checkFiles(tb testing.TB, d *disk, l *Log, closed bool) {
	tb.Helper()
	s := l.snap.Load()
	for i := range s.len() {
		v := s.at(i)
		seg := segment.New(l.seg, l.o.Dir, v.Base, segment.Settings{IndexInterval: l.o.Config.IndexIntervalBytes, MaxIndexBytes: l.o.Config.SegmentIndexBytes})
		r, err := seg.Scan(context.Background(), v.Size, 1<<62)
		if err != nil {
			tb.Fatal(err)
		}
		if closed || i < s.len()-1 {
			b, err := r.Closing()
			if err != nil {
				tb.Fatal(err)
			}
			r.Times = append(r.Times, b...)
		}
		for ext, want := range map[string][]byte{state.ExtIndex: r.Offsets, state.ExtTimeIndex: r.Times} {
			got, err := vfs.ReadFile(d.fs, l.path(state.FileName(v.Base, ext)), 1<<20)
			if err != nil || !bytes.Equal(got, want) {
				tb.Fatalf("segment %d: %s has %d bytes, a rebuild gives %d (%v)", v.Base, ext, len(got), len(want), err)
			}
		}
	}
}

// A log is appended to, rolled, cut at the front, synced, sealed, closed, crashed and opened again; after each step it is what a list in memory says.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		r := rand.New(rand.NewSource(int64(seed)))
		d := newDisk(t, memfs.New())
		l := d.open(t)
		var want []storage.Record
		synced := 0
		steps := rapid.IntRange(1, 30).Draw(rt, "steps")
		for range steps {
			switch op := rapid.IntRange(0, 11).Draw(rt, "op"); op {
			case 0, 1, 2, 3, 4, 5:
				recs := randomRecords(r, 1+r.Intn(40))
				a := mustAppend(t, l, recs...)
				for i := range recs {
					recs[i].Offset = a.First + storage.Offset(i)
				}
				want = append(want, recs...)
			case 6:
				if err := l.Sync(context.Background()); err != nil {
					rt.Fatal(err)
				}
				synced = len(want)
			case 7:
				if err := l.Maintain(context.Background()); err != nil {
					rt.Fatal(err)
				}
			case 8:
				l = d.reopen(t, l)
				synced = len(want)
				checkFiles(t, d, l, false)
			case 9:
				s := snap(t, l)
				o := s.Start() + storage.Offset(r.Int63n(int64(s.End()-s.Start())+1))
				if err := l.SetStart(context.Background(), o); err != nil {
					rt.Fatal(err)
				}
				synced = max(synced, int(o))
			default:
				l = d.crash(t, l, r, []float64{0, 1, 0.5}[r.Intn(3)])
				n := int(l.snap.Load().end)
				if n < synced || n > len(want) {
					rt.Fatalf("after a crash the log ends at %d; %d were synced, %d written", n, synced, len(want))
				}
				want, synced = want[:n], n
				checkFiles(t, d, l, false)
			}
			s := snap(t, l)
			if got := int(s.End()); got != len(want) {
				rt.Fatalf("end %d, want %d", got, len(want))
			}
			if err := sameRecords(readFrom(t, s, s.Start()), want[s.Start():]); err != nil {
				rt.Fatal(err)
			}
			if err := checkSnapshot(s, want); err != nil {
				rt.Fatal(err)
			}
		}
		d.reopen(t, l)
	})
}

// An append that is cut short by a full disk leaves nothing behind, and the next one works when there is room again.
func TestFullDisk(t *testing.T) {
	m := memfs.New()
	d := newDisk(t, m)
	l := d.open(t)
	r := rand.New(rand.NewSource(int64(1)))
	mustAppend(t, l, randomRecords(r, 20)...)
	want := readFrom(t, snap(t, l), 0)
	for room := int64(0); room < 30_000; room += 977 {
		m.SetCapacity(m.Used() + room)
		_, err := l.Append(context.Background(), randomRecords(r, 200), 500)
		m.SetCapacity(1 << 40)
		if err == nil {
			t.Fatalf("200 records went into %d bytes", room)
		}
		if err := sameRecords(readFrom(t, snap(t, l), 0), want); err != nil {
			t.Fatalf("with %d bytes left: %v", room, err)
		}
	}
	mustAppend(t, l, storage.Record{Value: []byte("more")})
	l = d.reopen(t, l)
	if got := snap(t, l).End(); got != 21 {
		t.Fatalf("end %d, want 21", got)
	}
	checkFiles(t, d, l, false)
}

func TestTooLargeChangesNothing(t *testing.T) {
	d := newDisk(t, memfs.New())
	l := d.open(t)
	big := storage.Record{Value: make([]byte, 1048588)}
	for range 2 {
		_, err := l.Append(context.Background(), []storage.Record{{Value: []byte("small")}, big}, 500)
		if !errors.Is(err, storage.ErrTooLarge) {
			t.Fatalf("got %v", err)
		}
		if err := l.CheckAppend(context.Background(), &big); !errors.Is(err, storage.ErrTooLarge) {
			t.Fatalf("check: got %v", err)
		}
		if got := snap(t, l).End(); got != 0 {
			t.Fatalf("end %d", got)
		}
	}
}

// A damaged batch is one error at its place; every other record stays readable, by sequence and by offset.
func TestDamageStaysLocal(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   int64 // from the start of the damaged batch
	}{{"offset", 6}, {"length", 9}, {"magic", 16}, {"crc", 18}, {"attributes", 22}, {"delta", 26}, {"count", 60}, {"payload", 80}} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDisk(t, memfs.New())
			l := d.open(t)
			var want []storage.Record
			for i := range 60 {
				mustAppend(t, l, storage.Record{Timestamp: int64(i), Value: []byte(strings.Repeat("x", 40) + fmt.Sprint(i))})
			}
			want = readFrom(t, snap(t, l), 0)
			l = d.reopen(t, l)
			b, err := vfs.ReadFile(d.fs, l.path("00000000000000000000.log"), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			size := 12 + int64(b[11]) + int64(b[10])<<8
			at := 10*size + tc.at // batches are of one size up to record 10
			f, err := d.fs.OpenFile(l.path("00000000000000000000.log"), 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{b[at] ^ 0x41}, at); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
			got, errs := readThrough(t, snap(t, l), 0)
			if len(errs) == 0 {
				t.Fatal("nobody was told")
			}
			for _, err := range errs {
				if !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("got %v", err)
				}
			}
			have := map[string]storage.Offset{}
			for _, r := range got {
				have[string(r.Value)] = r.Offset
			}
			for i, r := range want {
				if o, ok := have[string(r.Value)]; i != 10 && (!ok || o != r.Offset) {
					t.Errorf("record %d is gone or moved (%d)", i, o)
				}
			}
			if recs, _ := readThrough(t, snap(t, l), 30); len(recs) != len(want)-30 {
				t.Errorf("from 30 on: %d records", len(recs))
			}
		})
	}
}

// After a failed sync the log refuses appends, is read on, and does not close clean.
func TestFailedSyncPoisons(t *testing.T) {
	d, ff := newFaultyDisk(t)
	l := d.open(t)
	mustAppend(t, l, storage.Record{Value: []byte("a")})
	failSyncs(ff, errors.New("lost"))
	if err := l.Sync(context.Background()); err == nil {
		t.Fatal("sync succeeded")
	}
	failSyncs(ff, nil)
	if err := l.Sync(context.Background()); !errors.Is(err, storage.ErrPoisoned) {
		t.Fatalf("second sync: %v", err)
	}
	if _, err := l.Append(context.Background(), []storage.Record{{Value: []byte("b")}}, 500); !errors.Is(err, storage.ErrPoisoned) {
		t.Fatalf("append: %v", err)
	}
	if got := readFrom(t, snap(t, l), 0); len(got) != 1 {
		t.Fatalf("%d records", len(got))
	}
	if got := l.RecoveryPoint(); got != 0 {
		t.Fatalf("recovery point %d", got)
	}
	if err := l.Close(context.Background()); !errors.Is(err, storage.ErrPoisoned) {
		t.Fatalf("close: %v", err)
	}
}

// The data of a transaction waits, with what follows it, until the batches at hand tell how it ended; aborted data is left out wherever the requests were cut.
func TestBatchesOfTransactions(t *testing.T) {
	producer := func(h record.Header, id int64, attributes record.Attributes) record.Header {
		h.ProducerID, h.Attributes = id, attributes
		return h
	}
	data := func(id int64, value string) []byte {
		recs := []storage.Record{{Timestamp: 1, Value: []byte(value)}}
		attributes := record.AttrTransactional
		if id < 0 {
			attributes = 0
		}
		b, err := record.Encode(nil, producer(record.NewHeader(recs, 0), id, attributes), recs, record.None)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	end := func(id int64, kind byte) []byte {
		recs := []storage.Record{{Timestamp: 1, Key: []byte{0, 0, 0, kind}, Value: make([]byte, 6)}}
		b, err := record.Encode(nil, producer(record.NewHeader(recs, 0), id, record.AttrTransactional|record.AttrControl), recs, record.None)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	all := [][]byte{
		data(-1, "plain"), data(1, "a1"), data(2, "c1"), data(-1, "plain2"), data(1, "a2"), end(2, 1), end(1, 0), data(1, "c2"), data(2, "o1"), end(1, 1), data(-1, "plain3"),
	}
	const want = "plain c1 plain2 c2 o1 plain3" // what was never ended was not aborted
	for cut := range len(all) + 1 {
		d := newDisk(t, memfs.New())
		l := d.open(t)
		a, taken, err := l.AppendBatches(context.Background(), all[:cut], true)
		if err != nil || taken > cut {
			t.Fatalf("cut %d: took %d, %v", cut, taken, err)
		}
		if _, n, err := l.AppendBatches(context.Background(), all[taken:], false); err != nil || n != len(all)-taken {
			t.Fatalf("cut %d: took %d of the other %d, %v", cut, n, len(all)-taken, err)
		}
		var got []string
		for _, r := range readFrom(t, snap(t, l), a.First) {
			got = append(got, string(r.Value))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("cut %d: got %q, want %q", cut, s, want)
		}
	}
}

// A change of the start that is under way when the log is closed ends first: afterwards nobody removes files.
func TestCloseWaitsForStart(t *testing.T) {
	d := newDisk(t, memfs.New())
	l := d.open(t)
	for range 100 {
		mustAppend(t, l, storage.Record{Value: make([]byte, 100)})
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	l.OnStart(func(storage.Offset) error {
		close(inside)
		<-leave
		return nil
	})
	started, closed := make(chan error, 1), make(chan error, 1)
	go func() { started <- l.SetStart(context.Background(), 90) }()
	<-inside
	go func() { closed <- l.Close(context.Background()) }()
	close(leave)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	d.o.RecoveryPoint, d.o.Clean = l.RecoveryPoint(), true
	d.o.LogStart, _ = l.LogStart()
	d.attach()
	if s := snap(t, d.open(t)); s.Start() != 90 || s.End() != 100 {
		t.Errorf("%d to %d", s.Start(), s.End())
	}
	if err := l.SetStart(context.Background(), 95); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("a start behind the close: %v", err)
	}
}

// leader-epoch-checkpoint is rebuilt from the batches where it is missing, however the log was left.
func TestEpochsAreRebuilt(t *testing.T) {
	for _, clean := range []bool{true, false} {
		d := newDisk(t, memfs.New())
		l := d.open(t)
		for range 100 {
			mustAppend(t, l, storage.Record{Value: make([]byte, 100)})
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		want, err := vfs.ReadFile(d.fs, l.path(state.EpochsFile), 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.fs.Remove(l.path(state.EpochsFile)); err != nil {
			t.Fatal(err)
		}
		d.o.RecoveryPoint, d.o.Clean = l.RecoveryPoint(), clean
		d.attach()
		d.open(t)
		got, err := vfs.ReadFile(d.fs, l.path(state.EpochsFile), 1<<10)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("clean %v: %q, %v, want %q", clean, got, err, want)
		}
	}
}

// A start at the end frees all the room that the records took, and the log goes on.
func TestStartAtTheEndFreesAll(t *testing.T) {
	m := memfs.New()
	d := newDisk(t, m)
	l := d.open(t)
	for range 3 {
		for range 50 {
			mustAppend(t, l, storage.Record{Value: make([]byte, 50)})
		}
		end := snap(t, l).End()
		if err := l.SetStart(context.Background(), end); err != nil {
			t.Fatal(err)
		}
		st := l.Status()
		if st.Bytes != 0 || st.Start != end || st.End != end || st.Segments != 1 {
			t.Errorf("%+v", st)
		}
		if a := mustAppend(t, l, storage.Record{Value: []byte("x")}); a.First != end {
			t.Errorf("next offset %d, want %d", a.First, end)
		}
		l = d.reopen(t, l)
		if s := snap(t, l); s.Start() != end || s.End() != end+1 || len(readFrom(t, s, s.Start())) != 1 {
			t.Errorf("%d to %d", s.Start(), s.End())
		}
		checkFiles(t, d, l, false)
	}
}
