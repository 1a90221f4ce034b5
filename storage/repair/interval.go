package repair

import (
	"bytes"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
)

// bounds are the values of index.interval.bytes under which a log gives a certain offset index: lo <= interval < hi.
type bounds struct{ lo, hi int64 }

// anyInterval is what a log without an index tells.
var anyInterval = bounds{0, 1 << 31}

func (b bounds) ok() bool { return b.lo < b.hi }

func (b bounds) and(o bounds) bounds { return bounds{max(b.lo, o.lo), min(b.hi, o.hi)} }

func (b bounds) has(n int64) bool { return b.lo <= n && n < b.hi }

// pick returns the interval that somebody most likely configured: the default, else the roundest number.
func (b bounds) pick(usual int64) int64 {
	if b.has(usual) {
		return usual
	}
	for unit := int64(1_000_000_000); unit >= 1; unit /= 10 {
		if n := max((b.lo+unit-1)/unit, 1) * unit; b.has(n) {
			return n
		}
	}
	return b.lo
}

// bounds says with which intervals rule B gives the entries of an offset index file for this log; a result that is not ok if with none.
func (r *logScan) bounds(file []byte, base storage.Offset) bounds {
	n, err := index.CountOffsets(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return bounds{}
	}
	x := index.Offsets{R: bytes.NewReader(file), N: n, Base: base}
	out, since, i := anyInterval, int64(0), 0
	for j := range r.batches {
		b := &r.batches[j]
		if i < n {
			e, err := x.Entry(i)
			if err != nil {
				return bounds{}
			}
			if e.Pos == b.pos && e.Offset == b.last() {
				out.hi = min(out.hi, since)
				since = int64(b.size)
				i++
				continue
			}
		}
		out.lo = max(out.lo, since)
		since += int64(b.size)
	}
	if i < n {
		return bounds{}
	}
	return out
}
