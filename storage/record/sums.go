package record

import "fmt"

// Sums is what the records of a batch add up to.
type Sums struct {
	Records    int64
	KeyBytes   int64
	ValueBytes int64
}

// Sums adds up all records of the batch, whatever Next has returned already, and does not move the Reader. It finds the errors that Next would.
func (r *Reader) Sums() (Sums, error) {
	if r.err != nil {
		return Sums{}, r.err
	}
	if r.old.on {
		return r.sumsLegacy()
	}
	var s Sums
	var f fields
	i, prev := 0, int32(-1)
	for n := range r.h.Count {
		next, why := parse(r.b, i, &f)
		if why == nil && f.headers > maxHeaders {
			why = errHeaders
		}
		if why != nil {
			return Sums{}, fmt.Errorf("record %d of %d at byte %d: %w", n, r.h.Count, i, why)
		}
		if f.delta <= prev || f.delta > r.h.LastOffsetDelta {
			return Sums{}, fmt.Errorf("%w: record %d of %d: offset delta %d after %d, last %d", ErrMalformed, n, r.h.Count, f.delta, prev, r.h.LastOffsetDelta)
		}
		i, prev = next, f.delta
		s.KeyBytes += int64(max(f.keyLen, 0))
		s.ValueBytes += int64(max(f.valueLen, 0))
	}
	if i != len(r.b) {
		return Sums{}, r.trailing(i)
	}
	s.Records = int64(r.h.Count)
	return s, nil
}

// Validate checks everything that can be wrong with a batch that somebody else made: frame and header, exact size, checksum, compression, the form of
// every record, and that offsets ascend within the batch. The Reader stands at its first record afterwards. It is for version 2 alone, the only one that
// is appended: others are storage.ErrUnsupported.
func (r *Reader) Validate(batch []byte) (Header, Sums, error) {
	h, err := ParseHeader(batch)
	if err == nil && h.Size() == int64(len(batch)) {
		err = CheckCRC(batch)
	}
	if err != nil {
		return h, Sums{}, err
	}
	if err := r.Reset(batch); err != nil {
		return h, Sums{}, err
	}
	s, err := r.Sums()
	return h, s, err
}
