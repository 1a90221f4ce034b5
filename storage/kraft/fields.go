package kraft

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/logmount/logmount/storage"
)

// ID is the id of a topic.
type ID [16]byte

// fields takes fields from the front of a message. What is wrong first stays in err, and whatever is read after it is zero.
type fields struct {
	b   []byte
	err error
}

func (f *fields) fail(what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: %s", storage.ErrCorrupt, what)
	}
	f.b = nil
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.b) {
		f.fail("a field is longer than its record")
		return nil
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) int32() int32 {
	b := f.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (f *fields) id() (id ID) {
	copy(id[:], f.take(len(id)))
	return id
}

func (f *fields) uvarint() int {
	v, n := binary.Uvarint(f.b)
	if n <= 0 || v > math.MaxInt32 {
		f.fail("a number of variable length")
		return 0
	}
	f.b = f.b[n:]
	return int(v)
}

// str reads a compact string.
func (f *fields) str() string { return string(f.take(f.uvarint() - 1)) }

// ints reads a compact array of int32; nil is null.
func (f *fields) ints() []int32 {
	n := f.uvarint() - 1
	if n < 0 || f.err != nil {
		return nil
	}
	b := f.take(4 * n)
	if b == nil {
		return nil
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(binary.BigEndian.Uint32(b[4*i:]))
	}
	return list
}

// skipIDs passes over a compact array of ids.
func (f *fields) skipIDs() { f.take(16 * max(f.uvarint()-1, 0)) }

// tags reads the tagged fields at the end of a message: known returns what reads a tag, or nil where it is of no interest.
func (f *fields) tags(known func(tag int) func(*fields)) {
	for n := f.uvarint(); n > 0 && f.err == nil; n-- {
		tag := f.uvarint()
		inner := fields{b: f.take(f.uvarint())}
		read := known(tag)
		if read == nil || f.err != nil {
			continue
		}
		read(&inner)
		inner.end()
		if inner.err != nil {
			f.err, f.b = inner.err, nil
		}
	}
}

// end checks that nothing is left.
func (f *fields) end() {
	if f.err == nil && len(f.b) > 0 {
		f.fail(fmt.Sprintf("%d bytes behind a record", len(f.b)))
	}
}
