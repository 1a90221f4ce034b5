package fs

import (
	"math"
	"strings"

	"github.com/logmount/logmount/fs/format"
)

// splitFormat cuts the format's suffix off a name: "42..50.json" is "42..50" in JSON. Only a known suffix behind the last dot counts, as times have dots
// of their own.
func splitFormat(name string) (string, format.Format) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && i+1 < len(name) {
		if f, ok := format.Parse(name[i+1:]); ok {
			return name[:i], f
		}
	}
	return name, format.Lines
}

// offsetSpec is what a name under offset/ asks for.
type offsetSpec struct {
	from    int64
	fromEnd bool // from is a number of records before the end, at least 1
	to      int64
	hasTo   bool // to bounds the range; it is not below from
}

// parseOffsetSpec reads N, N..M or -N. A number has one spelling: no sign, no leading zeros.
func parseOffsetSpec(s string) (offsetSpec, bool) {
	var spec offsetSpec
	var ok bool
	if back, isBack := strings.CutPrefix(s, "-"); isBack {
		spec.fromEnd = true
		spec.from, ok = parseNumber(back)
		return spec, ok && spec.from > 0
	}
	from, to, hasTo := strings.Cut(s, "..")
	if spec.from, ok = parseNumber(from); !ok || !hasTo {
		return spec, ok
	}
	spec.hasTo = true
	spec.to, ok = parseNumber(to)
	return spec, ok && spec.to >= spec.from
}

// parsePartition reads the name of a partition's directory.
func parsePartition(s string) (int32, bool) {
	n, ok := parseNumber(s)
	if !ok || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}

// parseNumber reads a decimal number in its only spelling. There must not be two names for one thing, or a walker would see it twice.
func parseNumber(s string) (int64, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	return parseDigits(s)
}

// parseDigits reads a decimal number that fits into an int64.
func parseDigits(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		d := s[i] - '0' // wraps for anything below
		if d > 9 || n > (math.MaxInt64-int64(d))/10 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}
