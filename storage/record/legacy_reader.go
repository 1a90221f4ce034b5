package record

import (
	"fmt"
	"math"

	"github.com/logmount/logmount/storage"
)

// legacyState is what a Reader knows of an entry of version 0 or 1.
type legacyState struct {
	on      bool           // the entry is of one of these versions
	wrapper bool           // the records are in entries of their own, inside
	base    storage.Offset // to be added to the offsets of the entries inside; 0 in version 0
}

// resetLegacy begins with a whole entry. All entries inside a wrapper are looked at once, save for their checksums: only the last tells the offset of the
// first.
func (r *Reader) resetLegacy(entry []byte) error {
	var f legacyFields
	err := parseLegacy(entry, &f)
	r.h = f.h
	if err != nil {
		return err
	}
	if f.h.Size() < int64(len(entry)) {
		return fmt.Errorf("%w: entry of %d bytes, %d are there", ErrMalformed, f.h.Size(), len(entry))
	}
	r.old.on = true
	codec := f.h.Attributes.Codec()
	if codec == None {
		r.b, r.left = entry, 1
		return nil
	}
	r.old.wrapper = true
	r.scratch, err = decompressAs(f.h.Magic, codec, r.scratch[:0], f.value, r.limit(len(f.value)))
	r.used = len(r.scratch)
	if err != nil {
		return err
	}
	n, first, last, err := surveyLegacy(r.scratch, f.h.Magic)
	if err != nil {
		return err
	}
	// The wrapper has the last offset, save that producers may leave it at 0.
	end := r.h.BaseOffset
	if f.h.Magic == 1 {
		if end == 0 {
			end = last
		}
		r.old.base = end - last
		first += r.old.base
		last = end
	}
	if last > end || r.old.base < 0 || end-first > math.MaxInt32 {
		return fmt.Errorf("%w: offsets %d to %d in a wrapper with offset %d", ErrMalformed, first, last, r.h.BaseOffset)
	}
	r.h.BaseOffset, r.h.LastOffsetDelta, r.h.Count = first, int32(end-first), int32(n)
	r.b, r.left = r.scratch, int32(n)
	return nil
}

// surveyLegacy checks the form of the entries inside a wrapper, and that their offsets ascend, and returns their number and the first and last offset as
// they stand there.
func surveyLegacy(b []byte, version int8) (n int, first, last storage.Offset, err error) {
	var f legacyFields
	for i := 0; i < len(b); n++ {
		err := parseLegacy(b[i:], &f)
		switch {
		case err != nil:
		case f.h.Magic != version:
			err = fmt.Errorf("%w: version %d in a wrapper of version %d", ErrMalformed, f.h.Magic, version)
		case f.h.Attributes.Codec() != None:
			err = fmt.Errorf("%w: compressed again, %v", ErrMalformed, f.h.Attributes.Codec())
		case n == 0:
			first = f.h.BaseOffset
		case f.h.BaseOffset <= last:
			err = fmt.Errorf("%w: offset %d after %d", ErrMalformed, f.h.BaseOffset, last)
		}
		if err != nil {
			return 0, 0, 0, fmt.Errorf("record %d at byte %d: %w", n, i, err)
		}
		last = f.h.BaseOffset
		i += int(f.h.Size())
	}
	if n == 0 {
		return 0, 0, 0, fmt.Errorf("%w: nothing in a wrapper", ErrMalformed)
	}
	return n, first, last, nil
}

// entry parses the entry of the n-th record, which starts at r.b[i:], compares its checksum if it is one inside a wrapper and returns the position behind
// it. The checksum of an entry that stands alone is for CheckCRC.
func (r *Reader) entry(n int32, i int, f *legacyFields) (int, error) {
	err := parseLegacy(r.b[i:], f)
	if err == nil && r.old.wrapper {
		err = checkLegacyCRC(r.b[i : i+int(f.h.Size())])
	}
	if err != nil {
		return 0, fmt.Errorf("record %d of %d at byte %d: %w", n, r.h.Count, i, err)
	}
	return i + int(f.h.Size()), nil
}

// nextLegacy is Next while there are records left.
func (r *Reader) nextLegacy(rec *storage.Record) (bool, error) {
	var f legacyFields
	next, err := r.entry(r.h.Count-r.left, r.i, &f)
	if err != nil {
		r.err, r.left = err, 0
		return false, err
	}
	r.i = next
	r.left--
	*rec = storage.Record{Offset: r.old.base + f.h.BaseOffset, Timestamp: f.h.MaxTimestamp, Key: f.key, Value: f.value}
	if r.h.Attributes.LogAppendTime() {
		rec.Timestamp = r.h.MaxTimestamp
	}
	return true, nil
}

// sumsLegacy is Sums.
func (r *Reader) sumsLegacy() (Sums, error) {
	var s Sums
	var f legacyFields
	for i, n := 0, int32(0); n < r.h.Count; n++ {
		next, err := r.entry(n, i, &f)
		if err != nil {
			return Sums{}, err
		}
		i = next
		s.Records++
		s.KeyBytes += int64(len(f.key))
		s.ValueBytes += int64(len(f.value))
	}
	return s, nil
}
