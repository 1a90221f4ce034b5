package fs

import (
	"math"
	"strings"
	"time"
)

// parseTimeSpec reads T or T..U, both in any spelling that parseTime takes, as milliseconds since the Unix epoch. A range must not end before it starts.
func parseTimeSpec(s string, now time.Time, loc *time.Location) (fromMs, toMs int64, hasTo, ok bool) {
	from, to, hasTo := strings.Cut(s, "..")
	if fromMs, ok = parseTime(from, now, loc); !ok || !hasTo {
		return fromMs, 0, hasTo, ok
	}
	toMs, ok = parseTime(to, now, loc)
	return fromMs, toMs, hasTo, ok && toMs >= fromMs
}

// parseTime reads one point in time:
//
//	1788026072512         milliseconds since the Unix epoch
//	@1788026072.25        seconds
//	2026-08-30T00:00:00Z  RFC 3339, down to a date; without a zone it is in loc
//	now
//	-1h30m                before now, in s, m, h, d
//
// Fractions of a millisecond are cut off, as they were when the records got their timestamps: a record made after T is never left out.
func parseTime(s string, now time.Time, loc *time.Location) (int64, bool) {
	switch {
	case s == "":
		return 0, false
	case s == "now":
		return now.UnixMilli(), true
	case s[0] == '@':
		return parseSeconds(s[1:])
	case s[0] == '-':
		ago, ok := parseDuration(s[1:])
		return now.UnixMilli() - ago, ok
	case len(s) > 4 && s[4] == '-':
		return parseRFC3339(s, loc)
	}
	return parseDigits(s)
}

// parseSeconds reads seconds with an optional fraction.
func parseSeconds(s string) (int64, bool) {
	whole, fraction, hasFraction := strings.Cut(s, ".")
	sec, ok := parseDigits(whole)
	if !ok || sec > math.MaxInt64/1000-1 {
		return 0, false
	}
	ms := int64(0)
	if hasFraction {
		ms, ok = parseFraction(fraction)
	}
	return sec*1000 + ms, ok
}

// parseFraction reads the digits behind a decimal point as milliseconds.
func parseFraction(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	ms, unit := int64(0), int64(100)
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		ms += int64(d) * unit
		unit /= 10
	}
	return ms, true
}

// parseDuration reads 90s, 1h30m and the like as milliseconds.
func parseDuration(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	var sum int64
	for s != "" {
		i := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' })
		if i < 0 {
			return 0, false
		}
		n, ok := parseDigits(s[:i])
		if !ok {
			return 0, false
		}
		var unit int64
		switch s[i] {
		case 's':
			unit = 1000
		case 'm':
			unit = 60 * 1000
		case 'h':
			unit = 3600 * 1000
		case 'd':
			unit = 24 * 3600 * 1000
		default:
			return 0, false
		}
		// Half of the range keeps the difference to any clock in it as well.
		if n > (math.MaxInt64/2-sum)/unit {
			return 0, false
		}
		sum += n * unit
		s = s[i+1:]
	}
	return sum, true
}

// parseRFC3339 reads a date, or a date and a time of any precision with or without a zone. time.Parse would need a layout for each of them.
func parseRFC3339(s string, loc *time.Location) (int64, bool) {
	if loc == nil {
		loc = time.UTC
	}
	r := timeReader{s: s, ok: true}
	year := r.digits(4)
	r.want('-')
	month := r.number(1, 12)
	r.want('-')
	day := r.number(1, 31)
	var hour, minute, sec, ms int
	if r.ok && (r.skip('T') || r.skip('t')) {
		hour = r.number(0, 23)
		if r.skip(':') {
			minute = r.number(0, 59)
			if r.skip(':') {
				sec = r.number(0, 59)
				if r.skip('.') {
					ms = r.fraction()
				}
			}
		}
		loc = r.zone(loc)
	}
	if !r.ok || r.s != "" {
		return 0, false
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day { // the month is shorter
		return 0, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, sec, ms*int(time.Millisecond), loc).UnixMilli(), true
}

// timeReader takes bytes off s. Once something was wrong, ok is false and what it returns means nothing.
type timeReader struct {
	s  string
	ok bool
}

func (r *timeReader) skip(c byte) bool {
	if r.s == "" || r.s[0] != c {
		return false
	}
	r.s = r.s[1:]
	return true
}

func (r *timeReader) want(c byte) {
	if !r.skip(c) {
		r.ok = false
	}
}

// digits reads a number of exactly n digits.
func (r *timeReader) digits(n int) int {
	if len(r.s) < n {
		r.ok = false
		return 0
	}
	v, ok := parseDigits(r.s[:n])
	r.s = r.s[n:]
	r.ok = r.ok && ok
	return int(v)
}

// number reads two digits that must lie between least and most.
func (r *timeReader) number(least, most int) int {
	v := r.digits(2)
	r.ok = r.ok && v >= least && v <= most
	return v
}

func (r *timeReader) fraction() int {
	n := 0
	for n < len(r.s) && r.s[n] >= '0' && r.s[n] <= '9' {
		n++
	}
	ms, ok := parseFraction(r.s[:n])
	r.s = r.s[n:]
	r.ok = r.ok && ok
	return int(ms)
}

// zone reads Z or ±hh:mm; nothing means loc.
func (r *timeReader) zone(loc *time.Location) *time.Location {
	sign := 1
	switch {
	case r.s == "":
		return loc
	case r.skip('Z'), r.skip('z'):
		return time.UTC
	case r.skip('-'):
		sign = -1
	default:
		r.want('+')
	}
	hours := r.number(0, 23)
	r.want(':')
	return time.FixedZone("", sign*(hours*3600+r.number(0, 59)*60))
}
