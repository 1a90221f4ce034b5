package fs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// TestReadAhead reads in order and in large pieces, so that bytes are prepared, with other reads, appends and a damaged batch in between.
func TestReadAhead(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	rng := rand.New(rand.NewPCG(3, 4))
	var want []byte
	add := func(n int) {
		recs := make([]storage.Record, n)
		for i := range recs {
			recs[i].Value = bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(4000))
			want = format.Lines.Append(want, &recs[i])
		}
		k.append(orders, recs...)
	}
	add(400)
	d := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	pos := 0
	for round := 0; pos < len(want); round++ {
		n := aheadLeast + rng.IntN(aheadLeast)
		got, errno := d.pread(n, int64(pos))
		if exp := want[pos:min(pos+n, len(want))]; errno != 0 || !bytes.Equal(got, exp) {
			t.Fatalf("read of %d at %d of %d: %d bytes, %v", n, pos, len(want), len(got), errno)
		}
		pos += len(got)
		switch rng.IntN(4) {
		case 0:
			at := rng.IntN(len(want))
			if got, errno := d.pread(500, int64(at)); errno != 0 || !bytes.Equal(got, want[at:min(at+500, len(want))]) {
				t.Fatalf("read at %d: %d bytes, %v", at, len(got), errno)
			}
		case 1:
			if len(want) < 3<<20 {
				add(10)
			}
		case 2:
			if st := d.mustStat(); st.Size != uint64(len(want)) {
				t.Fatalf("size %d, want %d", st.Size, len(want))
			}
		}
	}
	add(5)
	if got, errno := d.pread(1<<20, int64(pos)); errno != 0 || !bytes.Equal(got, want[pos:]) {
		t.Errorf("what came at the end: %d bytes, %v", len(got), errno)
	}
	d.close()
}

// TestSignalInAReadThatHasBegun: a read that has bytes already goes on to its end, or half of a file's readers would lose their place.
func TestSignalInAReadThatHasBegun(t *testing.T) {
	synctest.Test(t, signalInARead)
}

func signalInARead(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	k.write("orders/0/tail", "one\n")
	k.write("orders/0/tail", "two\n")
	d := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	defer d.close()
	if b, errno := d.pread(2, 0); errno != 0 || string(b) != "on" {
		t.Fatalf("%q, %v", b, errno)
	}
	release := k.engine.Hold("next")
	signal := make(chan struct{})
	type result struct {
		b     []byte
		errno syscall.Errno
	}
	done := make(chan result)
	go func() {
		b, errno := d.preadCancel(signal, 100, 2)
		done <- result{b, errno}
	}()
	synctest.Wait()
	close(signal)
	synctest.Wait()
	release()
	if r := <-done; r.errno != 0 || string(r.b) != "e\ntwo\n" {
		t.Errorf("got %q, %v, want the rest", r.b, r.errno)
	}
}

func TestReadAheadOfDamage(t *testing.T) {
	k := newKernel(t, nil)
	k.mustMkdir("orders")
	line := bytes.Repeat([]byte("x"), 999)
	for range 400 {
		k.append(orders, storage.Record{Value: line})
	}
	k.engine.Corrupt(orders, 300)
	d := k.mustOpen("orders/0/tail", syscall.O_RDONLY)
	defer d.close()
	pos := int64(0)
	for {
		b, errno := d.pread(aheadLeast, pos)
		if errno != 0 {
			if errno != syscall.EIO || pos != 300*1000 {
				t.Errorf("%v at %d", errno, pos)
			}
			break
		}
		pos += int64(len(b))
		if len(b) == 0 {
			t.Fatalf("end of file at %d", pos)
		}
	}
	if _, errno := d.pread(aheadLeast, pos); errno != syscall.EIO {
		t.Errorf("again: %v, want EIO", errno)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"tail", "tail.json", "tail.kv"} {
		b.Run(name, func(b *testing.B) {
			k := newKernel(b, nil)
			k.mustMkdir("orders")
			for i := range 500 {
				k.append(orders, storage.Record{Key: []byte("key"), Value: fmt.Appendf(nil, "%d %0100d", i, i)})
			}
			size := int64(len(k.read("orders/0/" + name)))
			d := k.mustOpen("orders/0/"+name, syscall.O_RDONLY)
			defer d.close()
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				for pos := int64(0); pos < size; {
					got, errno := d.pread(32<<10, pos)
					if errno != 0 || len(got) == 0 {
						b.Fatal(errno, len(got))
					}
					pos += int64(len(got))
				}
			}
		})
	}
}
