package storagetest

import (
	"bytes"
	"encoding/binary"

	"github.com/logmount/logmount/storage"
)

// varied are records of every shape: null and empty keys and values, headers, timestamps that go back and forth.
func varied() []storage.Record {
	return []storage.Record{
		{Timestamp: 1000, Key: []byte("k"), Value: []byte("v")},
		{Timestamp: 999, Value: []byte("no key")},
		{Timestamp: 5000, Key: []byte("no value")},
		{Timestamp: storage.NoTimestamp},
		{Timestamp: 0, Key: []byte{}, Value: []byte{}},
		{Timestamp: 1 << 45, Value: []byte("headers"), Headers: []storage.Header{
			{Key: []byte("h"), Value: []byte("1")}, {Key: []byte("h"), Value: nil}, {Key: []byte{}, Value: []byte{}},
		}},
		{Timestamp: 1001, Key: []byte{0, 0xff, '\n'}, Value: bytes.Repeat([]byte("x\x00\n"), 3000)},
	}
}

func (t *test) appendAndRead() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", nil)
	in := varied()
	if a := add(ctx, t, p, 1<<14, in...); a.First != 0 {
		t.Fatalf("first offset: got %d, want 0", a.First)
	}
	want := numbered(0, in)
	for i := range in[0].Value { // the engine has its own copy
		in[0].Value[i] = '!'
	}
	compare(t, "one append", read(ctx, t, snapshot(ctx, t, p), 0), want)
	for i := range 20 {
		r := value(int64(i), "value %d", i)
		a := add(ctx, t, p, 1<<14, r)
		want = append(want, numbered(a.First, []storage.Record{r})...)
		if got, wantEnd := snapshot(ctx, t, p).End(), storage.Offset(len(want)); got != wantEnd {
			t.Fatalf("end after append: got %d, want %d", got, wantEnd)
		}
	}
	snap := snapshot(ctx, t, p)
	for o := range want {
		compare(t, "from the middle", read(ctx, t, snap, storage.Offset(o)), want[o:])
	}
	if got := read(ctx, t, snap, snap.End()); len(got) != 0 {
		t.Errorf("at the end: got %d records", len(got))
	}
	if err := p.Sync(ctx); err != nil {
		t.Errorf("sync: %v", err)
	}
}

func (t *test) appendIsAtomic() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", map[string]string{"max.message.bytes": "200"})
	large := storage.Record{Timestamp: 1, Value: make([]byte, 201)}
	_, err := p.Append(ctx, []storage.Record{value(1, "small"), large, value(1, "small")}, 1<<14)
	wantErr(t, "a record too large among small ones", err, storage.ErrTooLarge)
	wantErr(t, "check of it", p.CheckAppend(ctx, &large), storage.ErrTooLarge)
	if got := snapshot(ctx, t, p).End(); got != 0 {
		t.Errorf("end after a refused append: got %d, want 0", got)
	}
	fits := storage.Record{Timestamp: 1}
	for aloneSize(&fits) < 200 {
		fits.Value = append(fits.Value, 'x')
	}
	if aloneSize(&fits) != 200 {
		t.Fatal("the test does not hit the limit")
	}
	add(ctx, t, p, 1<<14, fits, fits, fits)
	fits.Value = append(fits.Value, 'x')
	_, err = p.Append(ctx, []storage.Record{fits}, 1<<14)
	wantErr(t, "a byte more than the limit", err, storage.ErrTooLarge)
	if got := snapshot(ctx, t, p).End(); got != 3 {
		t.Errorf("end: got %d, want 3", got)
	}
}

func (t *test) batchBytes() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", nil)
	var in []storage.Record
	for i := range 30 {
		in = append(in, value(int64(i), "value %d", i))
	}
	in[7].Value = make([]byte, 5000)
	const limit = 400
	add(ctx, t, p, limit, in...)
	next, big := storage.Offset(0), 0
	for _, b := range readBatches(ctx, t, snapshot(ctx, t, p), 0) {
		base, n := storage.Offset(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[57:])
		if base != next {
			t.Fatalf("base offset: got %d, want %d", base, next)
		}
		next += storage.Offset(n)
		if len(b) > limit {
			big++
			if n != 1 || base != 7 {
				t.Errorf("a batch of %d bytes with %d records at %d", len(b), n, base)
			}
		}
	}
	if next != 30 || big != 1 {
		t.Errorf("got %d records and %d large batches, want 30 and 1", next, big)
	}
	compare(t, "cut into batches", read(ctx, t, snapshot(ctx, t, p), 0), numbered(0, in))
}

func (t *test) appendBatches() {
	if !t.o.Batches {
		t.Skip("the engine takes no batches")
	}
	ctx, e := t.Context(), t.start()
	from, to := create(ctx, t, e, "from", nil), create(ctx, t, e, "to", nil)
	add(ctx, t, from, 300, varied()...)
	add(ctx, t, to, 300, value(1, "first"))
	batches := readBatches(ctx, t, snapshot(ctx, t, from), 0)
	a, _, err := to.AppendBatches(ctx, batches, false)
	if err != nil || a.First != 1 || a.Next != 1+storage.Offset(len(varied())) {
		t.Fatalf("append of batches: got %v, %v", a, err)
	}
	compare(t, "appended batches", read(ctx, t, snapshot(ctx, t, to), 1), numbered(1, varied()))
	for at := 16; at < len(batches[0]); at++ {
		bad := bytes.Clone(batches[0])
		bad[at] ^= 0x80
		_, _, err := to.AppendBatches(ctx, [][]byte{batches[1], bad}, false)
		wantErr(t, "a flipped bit", err, storage.ErrInvalidRecord)
	}
	for _, bad := range [][]byte{{}, batches[0][:60], batches[0][:len(batches[0])-1], append(bytes.Clone(batches[0]), 0)} {
		_, _, err := to.AppendBatches(ctx, [][]byte{bad}, false)
		wantErr(t, "not exactly a batch", err, storage.ErrInvalidRecord)
	}
	if got := snapshot(ctx, t, to).End(); got != a.Next {
		t.Errorf("end after refused batches: got %d, want %d", got, a.Next)
	}
	if b, _, err := to.AppendBatches(ctx, nil, true); err != nil || b.First != b.Next {
		t.Errorf("no batches: got %v, %v", b, err)
	}
}

func (t *test) checkAppend() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", nil)
	r := value(1, "v")
	if err := p.CheckAppend(ctx, &r); err != nil {
		t.Errorf("check: %v", err)
	}
	if got := snapshot(ctx, t, p).End(); got != 0 {
		t.Errorf("end after a check: got %d, want 0", got)
	}
}

func (t *test) files() {
	ctx, e := t.Context(), t.start()
	p := create(ctx, t, e, "t", map[string]string{"segment.bytes": "300"})
	for i := range 20 {
		add(ctx, t, p, 1<<14, value(int64(i), "value %d", i))
	}
	list, err := p.Files(ctx)
	if !t.o.Files {
		wantErr(t, "files", err, storage.ErrUnsupported)
		_, err := p.OpenFile(ctx, "x")
		wantErr(t, "open a file", err, storage.ErrUnsupported)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	logs := 0
	for _, info := range list {
		if one, err := p.File(ctx, info.Name); err != nil || one != info {
			t.Errorf("file %s: got %+v, %v, want %+v", info.Name, one, err, info)
		}
		f, err := p.OpenFile(ctx, info.Name)
		if err != nil {
			t.Fatalf("open %s: %v", info.Name, err)
		}
		if st, err := f.Stat(); err != nil || st.Size != info.Size || st.Name != info.Name {
			t.Errorf("stat of %s: got %+v, %v, want size %d", info.Name, st, err, info.Size)
		}
		b := make([]byte, info.Size)
		if n, err := f.ReadAt(b, 0); n != len(b) {
			t.Errorf("read %s: got %d of %d bytes, %v", info.Name, n, len(b), err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("close %s: %v", info.Name, err)
		}
		if len(info.Name) == 24 && info.Name[20:] == ".log" {
			logs++
			got = append(got, b...)
		}
	}
	if want := bytes.Join(readBatches(ctx, t, snapshot(ctx, t, p), 0), nil); !bytes.Equal(got, want) {
		t.Errorf("log files: got %d bytes, want the %d of all batches", len(got), len(want))
	}
	if logs < 4 {
		t.Errorf("got %d log files, want several with segment.bytes=300", logs)
	}
	for _, name := range []string{"no-such-file", "../t-0/partition.metadata", ".", ""} {
		if _, err := p.File(ctx, name); err == nil {
			t.Errorf("file %q: no error", name)
		}
		if f, err := p.OpenFile(ctx, name); err == nil {
			t.Errorf("open %q: no error", name)
			_ = f.Close()
		}
	}
}
