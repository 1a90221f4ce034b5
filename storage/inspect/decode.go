package inspect

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// fieldReader takes fields from the front of the bytes of a record. The first thing that is wrong stays in err, and what is read after it is zero.
type fieldReader struct {
	b   []byte
	err error
}

func (r *fieldReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", record.ErrMalformed, what)
	}
	r.b = nil
}

// take returns the next n bytes.
func (r *fieldReader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.b)) {
		r.fail("a field is longer than the record")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// integer returns the next n bytes as a signed number.
func (r *fieldReader) integer(n int64) int64 {
	b := r.take(n)
	if b == nil {
		return 0
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}

func (r *fieldReader) uvarint() int64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > math.MaxInt32 {
		r.fail("a number of variable length")
		return 0
	}
	r.b = r.b[n:]
	return int64(v)
}

// length returns the length of a string, bytes or array; -1 is null. Short ones have 2 bytes for it where they are not compact.
func (r *fieldReader) length(compact, short bool) int64 {
	switch {
	case compact:
		return r.uvarint() - 1
	case short:
		return r.integer(2)
	}
	return r.integer(4)
}

// str returns the next string or bytes; nil is null.
func (r *fieldReader) str(compact, short bool) []byte {
	n := r.length(compact, short)
	if n == -1 {
		return nil
	}
	return r.take(n)
}

// decodeFields appends the fields of a version as a JSON object.
func decodeFields(dst []byte, r *fieldReader, fields []field, version int16, flexible bool) []byte {
	dst = append(dst, '{')
	n := 0
	name := func(s string) {
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, s), ':')
	}
	for i := range fields {
		f := &fields[i]
		if r.err != nil || version < f.lo || version > f.hi || f.tag >= 0 && flexible {
			continue
		}
		name(f.name)
		dst = f.decode(dst, r, version, flexible)
	}
	if flexible {
		for tags := r.uvarint(); tags > 0 && r.err == nil; tags-- {
			tag := r.uvarint()
			inner := fieldReader{b: r.take(r.uvarint())}
			f := tagged(fields, tag, version)
			if f == nil {
				name("tag" + strconv.FormatInt(tag, 10))
				dst = appendBase64(dst, inner.b)
				continue
			}
			name(f.name)
			dst = f.decode(dst, &inner, version, flexible)
			if len(inner.b) > 0 {
				inner.fail("bytes behind a tagged field")
			}
			if r.err == nil {
				r.err = inner.err
			}
		}
	}
	return append(dst, '}')
}

func tagged(fields []field, tag int64, version int16) *field {
	for i := range fields {
		if f := &fields[i]; int64(f.tag) == tag && version >= f.lo && version <= f.hi {
			return f
		}
	}
	return nil
}

// decode appends the value of a field.
func (f *field) decode(dst []byte, r *fieldReader, version int16, flexible bool) []byte {
	if !f.array {
		return f.decodeOne(dst, r, version, flexible)
	}
	n := r.length(flexible, false)
	if n == -1 {
		return append(dst, "null"...)
	}
	if n < 0 || n > int64(len(r.b)) { // every element has a byte at least
		r.fail("an array is longer than the record")
	}
	dst = append(dst, '[')
	for i := int64(0); i < n && r.err == nil; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.decodeOne(dst, r, version, flexible)
	}
	return append(dst, ']')
}

func (f *field) decodeOne(dst []byte, r *fieldReader, version int16, flexible bool) []byte {
	switch f.typ {
	case "":
		if f.nullable {
			// The byte before it is -1 where it is null, and 0 behind a tag.
			if there := r.integer(1); there < 0 || there == 0 && f.tag >= 0 {
				return append(dst, "null"...)
			}
		}
		return decodeFields(dst, r, f.fields, version, flexible)
	case "bool":
		return strconv.AppendBool(dst, r.integer(1) != 0)
	case "int8":
		return strconv.AppendInt(dst, r.integer(1), 10)
	case "int16":
		return strconv.AppendInt(dst, r.integer(2), 10)
	case "uint16":
		return strconv.AppendInt(dst, r.integer(2)&math.MaxUint16, 10)
	case "int32":
		return strconv.AppendInt(dst, r.integer(4), 10)
	case "int64":
		return strconv.AppendInt(dst, r.integer(8), 10)
	case "float64":
		v := math.Float64frombits(uint64(r.integer(8)))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return appendJSONString(dst, strconv.FormatFloat(v, 'g', -1, 64))
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	case "uuid":
		return appendJSONString(dst, base64.RawURLEncoding.EncodeToString(r.take(16)))
	}
	b := r.str(flexible, f.typ == "string")
	switch {
	case b == nil:
		return append(dst, "null"...)
	case f.typ == "string":
		return appendJSONString(dst, b)
	case f.typ == typeSubscription:
		return decodeConsumer(dst, b, 0)
	case f.typ == typeAssignment:
		return decodeConsumer(dst, b, 1)
	}
	return appendBase64(dst, b)
}

// decodeConsumer appends a consumer's subscription or assignment, or the bytes in base64 where they are none. Later versions only add fields.
func decodeConsumer(dst, b []byte, number int32) []byte {
	s := schemas().consumer[number]
	r := fieldReader{b: b}
	version := r.integer(2)
	if s != nil && version >= 0 && len(b) > 2 {
		if with := decodeFields(dst, &r, s.value, int16(min(version, int64(s.newest))), false); r.err == nil {
			return with
		}
	}
	return appendBase64(dst, b)
}

// decodeValue returns {"type":…,"version":…,"data":{…}} of what is left in r; of a version that is not known, or bytes that do not fit, null data and the
// bytes in base64.
func (s *schema) decodeValue(r *fieldReader, version int64) []byte {
	dst := append(appendJSONString([]byte(`{"type":`), s.name), `,"version":`...)
	dst = append(strconv.AppendInt(dst, version, 10), `,"data":`...)
	if version >= 0 && version <= int64(s.newest) && r.err == nil {
		inner := *r
		v := int16(version)
		if data := decodeFields(dst, &inner, s.value, v, s.flex >= 0 && v >= s.flex); inner.err == nil && len(inner.b) == 0 {
			return append(data, '}')
		}
	}
	dst = appendBase64(append(dst, `null,"base64":`...), r.b)
	return append(dst, '}')
}

// decoder turns the key and the value of a record into JSON. A null key or value is nil. ok is false where the record is not one of its kind.
type decoder func(r *storage.Record) (key, value []byte, ok bool)

// keyed is the decoder of topics whose keys begin with the number of a type and whose values begin with a version.
func keyed(table map[int32]*schema) decoder {
	return func(rec *storage.Record) (key, value []byte, ok bool) {
		if len(rec.Key) < 2 {
			return nil, nil, false
		}
		r := fieldReader{b: rec.Key}
		number := r.integer(2)
		s := table[int32(number)]
		if s == nil {
			return nil, nil, false
		}
		key = append(appendJSONString([]byte(`{"type":`), s.name), `,"version":`...)
		key = append(strconv.AppendInt(key, number, 10), `,"data":`...)
		key = decodeFields(key, &r, s.key, 0, false)
		if r.err != nil || len(r.b) > 0 {
			return nil, nil, false
		}
		if rec.Value != nil {
			v := fieldReader{b: rec.Value}
			value = s.decodeValue(&v, v.integer(2))
		}
		return append(key, '}'), value, true
	}
}

// unkeyed is the decoder of topics whose values begin with a number and a version, both of variable length, and before them, where framed, the version of
// that form, which is 1.
func unkeyed(table map[int32]*schema, framed bool) decoder {
	return func(rec *storage.Record) (key, value []byte, ok bool) {
		r := fieldReader{b: rec.Value}
		if framed && r.uvarint() != 1 {
			return nil, nil, false
		}
		number, version := r.uvarint(), r.uvarint()
		s := table[int32(number)]
		if s == nil || r.err != nil || rec.Key != nil && framed {
			return nil, nil, false
		}
		return nil, s.decodeValue(&r, version), true
	}
}

// decodeControl decodes the value of a control record of a metadata log, which begins with its version.
func decodeControl(t record.ControlType, value []byte) ([]byte, error) {
	s := schemas().control[int32(t)]
	if s == nil {
		return nil, fmt.Errorf("%v: %w", t, storage.ErrUnsupported)
	}
	r := fieldReader{b: value}
	version := (&fieldReader{b: value}).integer(2)
	if version < 0 || version > int64(s.newest) {
		return nil, fmt.Errorf("%v version %d: %w", t, version, storage.ErrUnsupported)
	}
	dst := decodeFields(nil, &r, s.value, int16(version), int16(version) >= s.flex)
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes behind the message")
	}
	return dst, r.err
}
