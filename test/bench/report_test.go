package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestRatio(t *testing.T) {
	of := func(name string, aside bool, d ...time.Duration) part {
		return part{Name: name, Median: median(d), Aside: aside, Samples: d, CPU: d}
	}
	for _, tc := range []struct {
		name string
		r    result
		want float64
		ok   bool
	}{
		{"sum", result{Limit: 1.5, Parts: []part{of("p", false, 30, 90, 20), of("a", false, 10, 10, 99), of("b", false, 10)}}, 1.5, true},
		{"missed", result{Limit: 1.4, Parts: []part{of("p", false, 30), of("a", false, 20)}}, 1.5, false},
		{"largest", result{Limit: 2, Largest: true, Parts: []part{of("p", false, 30), of("a", false, 20), of("b", false, 10)}}, 1.5, true},
		{"aside", result{Limit: 2, Parts: []part{of("p", false, 30), of("a", false, 20), of("b", true, 1)}}, 1.5, true},
		{"no limit", result{Parts: []part{of("p", false, 40, 20), of("a", false, 20)}}, 1.5, true},
		{"too slow", result{AtMost: 2, Count: 10, Parts: []part{of("p", false, 30), of("a", false, 20)}}, 1.5, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.r.sum()
			if tc.r.Ratio != tc.want || tc.r.OK != tc.ok {
				t.Errorf("got %v, %v, want %v, %v", tc.r.Ratio, tc.r.OK, tc.want, tc.ok)
			}
			rep := report{Results: []result{tc.r, {Name: "s", Skipped: "reason"}}}
			if rep.ok() != tc.ok {
				t.Errorf("report ok: %v", rep.ok())
			}
			var out bytes.Buffer
			rep.print(&out)
			if !strings.Contains(out.String(), "1.50") || !strings.Contains(out.String(), "SKIPPED: reason") {
				t.Error(out.String())
			}
		})
	}
}
