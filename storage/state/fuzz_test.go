package state

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/logmount/logmount/storage"
)

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte("0\n2\na 0 5\nb 1 7\n"))
	f.Add([]byte("0\r\n3\r\na 0 x\r\nb y 7\r\na 0 9"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCheckpoint(b)
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again := c.Format()
		d, err := ParseCheckpoint(again)
		if err != nil || !slices.Equal(c.lines, d.lines) || !bytes.Equal(d.Format(), again) {
			t.Fatalf("got %+v, %v, want %+v", d, err, c)
		}
		n := 0
		for tp, o := range c.All() {
			n++
			if got, ok := d.Get(tp); got != o || !ok || o < 0 || tp.Partition < 0 {
				t.Fatalf("%v: got %d, %t, want %d", tp, got, ok, o)
			}
			d.Delete(tp)
		}
		if n != c.Len() || d.Len() != 0 {
			t.Fatalf("%d entries of %d, %d left", n, c.Len(), d.Len())
		}
	})
}

func FuzzEpochs(f *testing.F) {
	f.Add([]byte("0\n4\n0 0\n2 14\n4 19\n6 34\n"), int32(5), int64(20))
	f.Add([]byte("0\n0\n"), int32(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, epoch int32, offset int64) {
		e, err := ParseEpochs(b)
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		// Whatever is done to it can be read again.
		o := storage.Offset(offset)
		a, _ := e.Assign(epoch, o)
		from, _ := e.TruncateFrom(o)
		lists := []Epochs{e, a, from}
		if o >= 0 {
			before, _ := e.TruncateBefore(o)
			lists = append(lists, before)
			if epoch >= 0 {
				if last, ok := a.Last(); !ok || last.Epoch != epoch || last.Start > o {
					t.Fatalf("assigned %d at %d: got %v", epoch, o, a)
				}
			}
		}
		for _, x := range lists {
			if again, err := ParseEpochs(x.Format()); err != nil || !slices.Equal(again, x) {
				t.Fatalf("got %v, %v, want %v", again, err, x)
			}
		}
	})
}

func FuzzMetaProperties(f *testing.F) {
	f.Add([]byte("#\n#date\ncluster.id=abc\nnode.id=1\nversion=1\n"))
	f.Add([]byte(`a\ b\=\:c=\t\n\r\f\\\q\u00e9\uD83D` + "\\\n  x !\xe9"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseMetaProperties(b); err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Fatal(err)
		}
		if _, err := ParseProperties(b); err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	f.Add(EncodeSnapshot(nil))
	f.Add(EncodeSnapshot([]ProducerEntry{{0, 0, 1, 1, 0, 1740577906739, -1, -1}, {7, 1, -1, -1, 0, -1, 3, 12}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeSnapshot(b)
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again := EncodeSnapshot(e)
		if len(again) == len(b) && !bytes.Equal(again, b) || len(again) > len(b) {
			t.Fatalf("got %x, want %x", again, b)
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add("orders-0")
	f.Add("a.b-3.0123456789abcdef0123456789abcdef-stray")
	f.Add("00000000000000000042.timeindex.swap")
	f.Add("version: 0\ntopic_id: 4WdnnuLgQ7OG9Bd2zp8EWg")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDirName(s)
		if err != nil && !errors.Is(err, storage.ErrInvalidName) {
			t.Fatal(err)
		}
		if err == nil && (d.String() != s || ValidTopic(d.Topic) != nil) {
			t.Fatalf("%q: got %+v", s, d)
		}
		if ValidTopic(s) == nil {
			name := DeleteDirName(tp(s, 7), "0123456789abcdef0123456789abcdef")
			if d, err := ParseDirName(name); err != nil || d.Partition != 7 || d.Kind != DirDelete || len(name) > 255 {
				t.Fatalf("%q: got %+v, %v", name, d, err)
			}
		}
		if base, ext, suffix, ok := ParseFileName(s); ok && FileName(base, ext+suffix) != s {
			t.Fatalf("%q: got %d, %q, %q", s, base, ext, suffix)
		}
		ParseCleanMarker([]byte(s))
		if id, err := ParsePartitionMetadata([]byte(s)); err == nil {
			if again, err := ParsePartitionMetadata(FormatPartitionMetadata(id)); err != nil || again != id {
				t.Fatalf("%q: got %q, %v", s, again, err)
			}
		} else if !errors.Is(err, storage.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
