package partition

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

func putFile(tb testing.TB, fsys vfs.FS, name string, b []byte) {
	tb.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	if len(b) > 0 {
		if _, err := f.WriteAt(b, 0); err != nil {
			tb.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

// FuzzDirectory opens a directory with arbitrary bytes in its files, to read and to write. Whatever they are: nothing panics or runs on for ever, sizes
// agree with what is read, and a log that was recovered takes records and shows them again.
func FuzzDirectory(f *testing.F) {
	d := newDisk(f, memfs.New())
	l := d.open(f)
	for i := range 12 {
		mustAppend(f, l, storage.Record{Timestamp: int64(i), Key: []byte("k"), Value: make([]byte, 10*i)}, storage.Record{Value: nil, Timestamp: 5})
	}
	if err := l.Close(context.Background()); err != nil {
		f.Fatal(err)
	}
	read := func(ext string) []byte {
		b, err := vfs.ReadFile(d.fs, l.path(state.FileName(0, ext)), 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	log, idx, tidx, sizes := read(state.ExtLog), read(state.ExtIndex), read(state.ExtTimeIndex), read(state.ExtSizeIndex)
	f.Add(log, idx, tidx, sizes, []byte("0\n1\n0 0\n"), uint16(3))
	f.Add(log[:len(log)-5], idx, []byte{}, []byte{}, []byte{}, uint16(0))
	f.Add(append(append([]byte{}, log...), make([]byte, 300)...), make([]byte, 4096), make([]byte, 4092), sizes, []byte("0\n"), uint16(9))
	f.Add([]byte{}, idx, tidx, sizes, []byte("x"), uint16(200))
	f.Add(log, tidx, idx, log, idx, uint16(24))
	f.Fuzz(func(t *testing.T, log, idx, tidx, sizes, epochs []byte, at uint16) {
		if len(log) > 1<<16 {
			t.Skip("more of the same")
		}
		d := newDisk(t, memfs.New())
		for ext, b := range map[string][]byte{state.ExtLog: log, state.ExtIndex: idx, state.ExtTimeIndex: tidx, state.ExtSizeIndex: sizes} {
			putFile(t, d.fs, "/data/t-0/"+state.FileName(0, ext), b)
		}
		putFile(t, d.fs, "/data/t-0/"+state.EpochsFile, epochs)
		d.o.Writable, d.o.Final, d.o.Reason = false, true, "not ours"
		l, err := Open(context.Background(), d.env, d.o)
		if err != nil {
			t.Fatalf("read-only: %v", err)
		}
		n := walkAll(t, l, storage.Offset(at))
		if got, err := vfs.ReadFile(d.fs, l.path(state.FileName(0, state.ExtLog)), 1<<20); err != nil || string(got) != string(log) {
			t.Fatalf("a read-only log was changed: %v", err)
		}
		d.o.Writable, d.o.Final = true, false
		d.attach()
		if l, err = Open(context.Background(), d.env, d.o); err != nil {
			if errors.Is(err, storage.ErrOutOfRange) {
				return // the last offset is the largest there is
			}
			t.Fatalf("writable: %v", err)
		}
		walkAll(t, l, storage.Offset(at))
		end := snap(t, l).End()
		if a, err := l.Append(context.Background(), []storage.Record{{Value: []byte("more"), Timestamp: 1}}, 500); err == nil {
			if got := readFrom(t, snap(t, l), a.First); a.First != end || len(got) != 1 || string(got[0].Value) != "more" {
				t.Fatalf("appended at %d, end was %d, read %v", a.First, end, got)
			}
		}
		_ = n
		checkFiles(t, d, l, false)
	})
}

// walkAll reads everything in every way and checks that the ways agree.
func walkAll(t *testing.T, l *Log, at storage.Offset) int {
	t.Helper()
	ctx := context.Background()
	s := snap(t, l)
	recs, _ := readThrough(t, s, s.Start())
	for i := 1; i < len(recs); i++ {
		if recs[i].Offset <= recs[i-1].Offset {
			t.Fatalf("offset %d after %d", recs[i].Offset, recs[i-1].Offset)
		}
	}
	for _, m := range []*storage.Measure{lines, kv, odd} {
		var sum int64
		for i := range recs {
			sum += m.Of(&recs[i])
		}
		if n, err := s.Extent(ctx, m, s.Start(), s.End()); err != nil || n != sum {
			t.Fatalf("%s: %d bytes, %v, want %d", m.Name, n, err, sum)
		}
		for _, p := range []int64{0, sum / 2, sum - 1} {
			if p >= 0 && p < sum {
				if o, _, err := s.Locate(ctx, m, s.Start(), p); err == nil && (o < s.Start() || o >= s.End()) {
					t.Fatalf("byte %d is in record %d", p, o)
				}
			}
		}
	}
	c := s.Records(s.Start())
	defer c.Close()
	for range 10000 {
		if _, err := c.NextBatch(ctx); errors.Is(err, io.EOF) {
			break
		}
	}
	if o := s.Start() + at; o <= s.End() {
		if _, err := s.Next(ctx, o); err != nil {
			t.Fatalf("next of %d: %v", o, err)
		}
		readThrough(t, s, o)
	}
	if _, err := s.FindTime(ctx, int64(at)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindLast(ctx, int64(at%30)); err != nil {
		t.Fatal(err)
	}
	return len(recs)
}
