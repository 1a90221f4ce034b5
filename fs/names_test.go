package fs

import (
	"strconv"
	"testing"

	"github.com/logmount/logmount/fs/format"
)

func TestSplitFormat(t *testing.T) {
	tests := []struct {
		name, base string
		format     format.Format
	}{
		{"tail", "tail", format.Lines},
		{"tail.json", "tail", format.JSON},
		{"tail.whole", "tail", format.Whole},
		{"42..50.json", "42..50", format.JSON},
		{"42..50", "42..50", format.Lines},
		{"42.", "42.", format.Lines},
		{"42..", "42..", format.Lines},
		{"42..json", "42.", format.JSON},
		{"42.json.kv", "42.json", format.KV},
		{"42.JSON", "42.JSON", format.Lines},
		{"2026-08-30T00:00:00.5Z.json", "2026-08-30T00:00:00.5Z", format.JSON},
		{"2026-08-30T00:00:00.5Z", "2026-08-30T00:00:00.5Z", format.Lines},
		{"@12.5", "@12.5", format.Lines},
		{"@12.json", "@12", format.JSON},
		{"@12.5..@13.5.nul", "@12.5..@13.5", format.NUL},
		{".batch", "", format.Batch},
		{"", "", format.Lines},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if base, f := splitFormat(tt.name); base != tt.base || f != tt.format {
				t.Errorf("got %q, %v, want %q, %v", base, f, tt.base, tt.format)
			}
		})
	}
}

func TestParseOffsetSpec(t *testing.T) {
	good := map[string]offsetSpec{
		"0":                   {},
		"42":                  {from: 42},
		"9223372036854775807": {from: 9223372036854775807},
		"42..50":              {from: 42, to: 50, hasTo: true},
		"42..42":              {from: 42, to: 42, hasTo: true},
		"0..0":                {hasTo: true},
		"-1":                  {from: 1, fromEnd: true},
		"-100":                {from: 100, fromEnd: true},
	}
	for s, want := range good {
		if got, ok := parseOffsetSpec(s); !ok || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "-", "-0", "--1", "+1", "x", "1.5", "1.", ".1", "1..", "..1", "..", "1..x", "1...2", "1..2..3", "2..1", "-5..9", "0..-1", "007", "-07",
		"1..02", "00", "99999999999999999999", "9223372036854775808", "1e3", "0x1", " 1", "1 ", "1_000", "١"} {
		if got, ok := parseOffsetSpec(s); ok {
			t.Errorf("%q: got %+v, want none", s, got)
		}
	}
}

func TestParsePartition(t *testing.T) {
	for s, want := range map[string]int32{"0": 0, "7": 7, "2147483647": 2147483647} {
		if got, ok := parsePartition(s); !ok || got != want {
			t.Errorf("%q: got %d, %v, want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "-1", "01", "2147483648", "4294967296", "x"} {
		if got, ok := parsePartition(s); ok {
			t.Errorf("%q: got %d, want none", s, got)
		}
	}
}

// FuzzOffsetSpec checks that what is taken is the only spelling of what it means.
func FuzzOffsetSpec(f *testing.F) {
	for _, s := range []string{"0", "42", "42..50", "-10", "-0", "9223372036854775807", "9223372036854775808", "1..", "007"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, ok := parseOffsetSpec(s)
		if !ok {
			return
		}
		spelled := strconv.FormatInt(spec.from, 10)
		if spec.fromEnd {
			spelled = "-" + spelled
		}
		if spec.hasTo {
			spelled += ".." + strconv.FormatInt(spec.to, 10)
		}
		if s != spelled {
			t.Errorf("%q was taken as %+v, which is %q", s, spec, spelled)
		}
		if spec.from < 0 || spec.hasTo && (spec.fromEnd || spec.to < spec.from) || spec.fromEnd && spec.from == 0 {
			t.Errorf("%q: %+v", s, spec)
		}
		if base, _ := splitFormat(s + ".json"); base != s {
			t.Errorf("%q.json has base %q", s, base)
		}
	})
}
