package fs

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	testNow  = time.Date(2026, 8, 30, 12, 34, 56, 789_654_321, time.UTC)
	testZone = time.FixedZone("here", 2*3600)
)

func TestParseTimeSpec(t *testing.T) {
	now := testNow.UnixMilli()
	ms := func(s string) int64 {
		d, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return d.UnixMilli()
	}
	tests := []struct {
		name     string
		from, to int64
	}{
		{"0", 0, -1},
		{"1788026072512", 1788026072512, -1},
		{"2026", 2026, -1},
		{"9223372036854775807", 9223372036854775807, -1},
		{"@1788026072", 1788026072000, -1},
		{"@1788026072.5", 1788026072500, -1},
		{"@1588000000.001", 1588000000001, -1},
		{"@0.000999999", 0, -1},
		{"@0.0123456789012", 12, -1},
		{"now", now, -1},
		{"-90s", now - 90_000, -1},
		{"-15m", now - 15*60_000, -1},
		{"-1h", now - 3600_000, -1},
		{"-7d", now - 7*86400_000, -1},
		{"-1h30m", now - 90*60_000, -1},
		{"-0s", now, -1},
		{"2026-08-30", ms("2026-08-30T00:00:00+02:00"), -1},
		{"2024-02-29", ms("2024-02-29T00:00:00+02:00"), -1},
		{"2026-08-30T11", ms("2026-08-30T11:00:00+02:00"), -1},
		{"2026-08-30T11Z", ms("2026-08-30T11:00:00Z"), -1},
		{"2026-08-30T00:00Z", ms("2026-08-30T00:00:00Z"), -1},
		{"2026-08-30t00:00z", ms("2026-08-30T00:00:00Z"), -1},
		{"2026-08-30T01:02", ms("2026-08-30T01:02:00+02:00"), -1},
		{"2026-08-30T01:02:03", ms("2026-08-30T01:02:03+02:00"), -1},
		{"2026-08-30T01:02:03.9999", ms("2026-08-30T01:02:03.999+02:00"), -1},
		{"2026-08-30T01:02:03.5-03:30", ms("2026-08-30T04:32:03.5Z"), -1},
		{"2026-08-30T01:02:03+05:45", ms("2026-08-30T01:02:03+05:45"), -1},
		{"0001-01-01T00:00:00Z", ms("0001-01-01T00:00:00Z"), -1},
		{"9999-12-31T23:59:59.999Z", ms("9999-12-31T23:59:59.999Z"), -1},
		{"5..7", 5, 7},
		{"5..5", 5, 5},
		{"@1.5..@2.25", 1500, 2250},
		{"-1h..now", now - 3600_000, now},
		{"2026-08-30T00:00:00.5Z..-1h", ms("2026-08-30T00:00:00.5Z"), now - 3600_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, to, hasTo, ok := parseTimeSpec(tt.name, testNow, testZone)
			if !ok {
				t.Fatal("not taken")
			}
			if from != tt.from || hasTo != (tt.to >= 0) || hasTo && to != tt.to {
				t.Errorf("got %d, %d, %v, want %d, %d", from, to, hasTo, tt.from, tt.to)
			}
		})
	}
	for _, s := range []string{"", "yesterday-ish", "12:00", "2026-13-01", "@", "-5x", "1h", "-", "-5", "--5s", "-h", "-1h30", "-1w", "-1.5h", "+1h", "NOW", "now ", "@.5", "@1.", "@-1",
		"@1.x", "@1e3", "1.5", "-1.5s", "2026-00-01", "2026-01-00", "2026-02-29", "2026-04-31", "2026-8-30", "2026-08", "2026-08-30T", "2026-08-30Z", "2026-08-30T24:00", "2026-08-30T23:60",
		"2026-08-30T23:59:60", "2026-08-30T1:00", "2026-08-30T01:02:", "2026-08-30T01:02:03.", "2026-08-30T01:02:03.Z", "2026-08-30T01:02:03+2", "2026-08-30T01:02:03+0200", "2026-08-30T01:02:03+02:60",
		"2026-08-30T01:02:03+24:00", "2026-08-30T01:02:03Zx", "2026-08-30 01:02", "2026/08/30", "5..", "..5", "..", "7..5", "5..6..7", "5...6", "now..-1h", "99999999999999999999", "9223372036854775808",
		"@9223372036854775807", "@99999999999999999999", "-99999999999999999999d", "-9223372036854775807d", "-9223372036854775807s", "-106751991167d106751991167d", "-1h-1h", "-1é", "２０２６-08-30"} {
		if from, to, _, ok := parseTimeSpec(s, testNow, testZone); ok {
			t.Errorf("%q: got %d, %d, want none", s, from, to)
		}
	}
	if got, ok := parseTime("1970-01-01", testNow, nil); !ok || got != 0 {
		t.Errorf("without a location: got %d, %v, want 0", got, ok)
	}
}

// TestParseTimeOracle compares with the standard library wherever it reads the same spelling.
func TestParseTimeOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", rapid.IntRange(-23*60, 23*60).Draw(t, "zone")*60)
		want := time.UnixMilli(rapid.Int64Range(-62135596800000+86400000, 253402300799999-86400000).Draw(t, "ms")).In(zone)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z07:00"} {
			if got, ok := parseTime(want.Format(layout), testNow, testZone); !ok || got != want.UnixMilli() {
				t.Errorf("%s: got %d, %v, want %d", want.Format(layout), got, ok, want.UnixMilli())
			}
		}
		if got, ok := parseTime(want.Format("2006-01-02T15:04:05.000"), testNow, zone); !ok || got != want.UnixMilli() {
			t.Errorf("local: got %d, %v, want %d", got, ok, want.UnixMilli())
		}
	})
}

// FuzzTimeSpec checks that anything is read without a panic, that ranges are in order and that results do not wrap around.
func FuzzTimeSpec(f *testing.F) {
	for _, s := range []string{"1788026072512", "@1788026072.5", "2026-08-30T01:02:03.5-03:30", "now", "-1h30m", "5..7", "-7d..now", "-9223372036854775807s", "2026-02-29", "@9223372036854775"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		from, to, hasTo, ok := parseTimeSpec(s, testNow, testZone)
		if !ok {
			return
		}
		if hasTo && to < from {
			t.Errorf("%q: ends at %d before it starts at %d", s, to, from)
		}
		if s[0] == '-' && from > testNow.UnixMilli() {
			t.Errorf("%q lies in the future: %d", s, from)
		}
		if s[0] == '@' && from < 0 {
			t.Errorf("%q wraps to %d", s, from)
		}
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n != from {
			t.Errorf("%q: got %d", s, from)
		}
	})
}
