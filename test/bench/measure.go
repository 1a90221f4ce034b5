package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// work is one thing that is timed. prepare is not part of the time.
type work struct {
	name    string
	prepare func(round int) error
	do      func(round int) (time.Duration, error)
	aside   bool // it only informs
}

// testCase is a thing that the product does, and what its floor is made of.
type testCase struct {
	name    string
	what    string
	product work
	parts   []work
	largest bool    // the floor is the largest of the parts, else their sum
	limit   float64 // of the ratio to the floor; 0 where the case only informs
	atMost  time.Duration
	bytes   int64 // moved by each; 0 where time says more
	count   int   // operations of each; 0 where there is one
	before  func() error
	skip    string // why it cannot be measured here
}

// measure runs a case: all its parts take turns, round by round, each time in another order.
func (b *bench) measure(c *testCase) (result, error) {
	r := result{Name: c.name, What: c.what, Limit: c.limit, AtMost: c.atMost, Bytes: c.bytes, Count: c.count, Largest: c.largest, Skipped: c.skip}
	if c.skip != "" {
		return r, nil
	}
	if c.before != nil {
		if err := c.before(); err != nil {
			return r, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	all := append([]work{c.product}, c.parts...)
	samples, cpu := make([][]time.Duration, len(all)), make([][]time.Duration, len(all))
	for round := range b.o.rounds {
		for i := range all {
			j := (i + round) % len(all)
			w := &all[j]
			if w.prepare != nil {
				if err := w.prepare(round); err != nil {
					return r, fmt.Errorf("%s: %s: %w", c.name, w.name, err)
				}
			}
			before := b.cpu()
			took, err := w.do(round)
			if err != nil {
				return r, fmt.Errorf("%s: %s: %w", c.name, w.name, err)
			}
			samples[j] = append(samples[j], took)
			cpu[j] = append(cpu[j], b.cpu()-before)
		}
	}
	for i, w := range all {
		r.Parts = append(r.Parts, part{Name: w.name, Median: median(samples[i]), Aside: w.aside, Samples: samples[i], CPU: cpu[i]})
	}
	r.sum()
	return r, nil
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// measureAll runs all cases, in an order in which each finds what it needs.
func (b *bench) measureAll() (*report, error) {
	rep := newReport(b)
	if err := b.makeInput(); err != nil {
		return nil, err
	}
	for _, c := range b.cases() {
		if !strings.Contains(c.name, b.o.only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "== %s: %s\n", c.name, c.what)
		r, err := b.measure(&c)
		if err != nil {
			return nil, err
		}
		if r.Skipped != "" {
			fmt.Fprintf(os.Stderr, "== SKIPPED: %s\n", r.Skipped)
		}
		r.PeakKiB = b.memory()
		rep.Results = append(rep.Results, r)
	}
	return rep, nil
}
