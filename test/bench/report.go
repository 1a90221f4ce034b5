package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// report is what a run found.
type report struct {
	Time    time.Time `json:"time"`
	Kernel  string    `json:"kernel"`
	CPUs    int       `json:"cpus"`
	Scale   float64   `json:"scale"`
	Rounds  int       `json:"rounds"`
	Results []result  `json:"results"`
}

// result is what was found of a case. Times are in nanoseconds.
type result struct {
	Name    string        `json:"name"`
	What    string        `json:"what"`
	Skipped string        `json:"skipped,omitempty"`
	Product time.Duration `json:"product,omitempty"`
	Floor   time.Duration `json:"floor,omitempty"`
	Ratio   float64       `json:"ratio,omitempty"`
	CPU     float64       `json:"cpu_ratio,omitempty"` // of processor time: hardly disturbed by what else the machine does
	Limit   float64       `json:"limit,omitempty"`
	AtMost  time.Duration `json:"at_most,omitempty"` // limit of the product's time for one operation
	OK      bool          `json:"ok"`
	Bytes   int64         `json:"bytes,omitempty"`
	Count   int           `json:"count,omitempty"`
	Largest bool          `json:"floor_is_largest,omitempty"`
	PeakKiB int64         `json:"peak_kib,omitempty"` // the daemon's memory up to the end of the case
	Parts   []part        `json:"parts,omitempty"`
}

// part is the product, or one of the things that a floor is made of.
type part struct {
	Name    string          `json:"name"`
	Median  time.Duration   `json:"median"`
	Aside   bool            `json:"aside,omitempty"` // not part of the floor
	Samples []time.Duration `json:"samples"`
	CPU     []time.Duration `json:"cpu"` // of all processes of the run
}

func newReport(b *bench) *report {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return &report{Time: time.Now(), Kernel: unix.ByteSliceToString(u.Release[:]), CPUs: runtime.NumCPU(), Scale: b.o.scale, Rounds: b.o.rounds}
}

// sum makes the floor and the ratio of the parts, the first of which is the product.
func (r *result) sum() {
	r.Product = r.Parts[0].Median
	var cpu time.Duration
	for _, p := range r.Parts[1:] {
		used := median(p.CPU)
		switch {
		case p.Aside:
		case r.Largest:
			r.Floor, cpu = max(r.Floor, p.Median), max(cpu, used)
		default:
			r.Floor, cpu = r.Floor+p.Median, cpu+used
		}
	}
	r.OK = true
	if r.Floor > 0 {
		r.Ratio = float64(r.Product) / float64(r.Floor)
		r.CPU = float64(median(r.Parts[0].CPU)) / float64(max(cpu, 1))
		r.OK = r.Limit == 0 || r.Ratio <= r.Limit
	}
	if r.AtMost > 0 && r.each(r.Product) > r.AtMost {
		r.OK = false
	}
}

// each is the time of one operation.
func (r *result) each(d time.Duration) time.Duration { return d / time.Duration(max(r.Count, 1)) }

func (r *report) ok() bool {
	for i := range r.Results {
		if !r.Results[i].OK && r.Results[i].Skipped == "" {
			return false
		}
	}
	return true
}

func (r *report) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\n%s, Linux %s, %d CPUs, scale %g, medians of %d\n\n", r.Time.Format(time.DateOnly), r.Kernel, r.CPUs, r.Scale, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "what\tproduct\tfloor\tratio\tcpu ratio\tlimit\tok\tfloor is")
	for i := range r.Results {
		s := &r.Results[i]
		if s.Skipped != "" {
			_, _ = fmt.Fprintf(t, "%s\tSKIPPED: %s\n", s.What, s.Skipped)
			continue
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%.2f\t%s\t%s\t%s\n", s.What, s.show(s.Product), s.show(s.Floor), s.Ratio, s.CPU, s.limit(), s.verdict(), s.floorOf())
	}
	_ = t.Flush()
	_, _ = fmt.Fprintln(w, "\nlargest memory of the daemon (VmHWM), up to the end of each:")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range r.Results {
		if s := &r.Results[i]; s.PeakKiB > 0 && s.Skipped == "" {
			_, _ = fmt.Fprintf(t, "%s\t%.0f MiB\n", s.Name, float64(s.PeakKiB)/1024)
		}
	}
	_ = t.Flush()
}

// show writes a time, or what it comes to for each operation or in a second.
func (r *result) show(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case r.Bytes > 0:
		return fmt.Sprintf("%.2f s (%.0f MB/s)", d.Seconds(), float64(r.Bytes)/1e6/d.Seconds())
	}
	return fmt.Sprintf("%.1f us", float64(r.each(d).Nanoseconds())/1e3)
}

func (r *result) limit() string {
	switch {
	case r.AtMost > 0:
		return "< " + r.AtMost.String()
	case r.Limit > 0:
		return fmt.Sprintf("%.1f", r.Limit)
	}
	return "-"
}

func (r *result) verdict() string {
	switch {
	case r.Limit == 0 && r.AtMost == 0:
		return "-"
	case r.OK:
		return "yes"
	}
	return "NO"
}

func (r *result) floorOf() string {
	s := ""
	for _, p := range r.Parts[1:] {
		one := p.Name + " " + r.show(p.Median)
		switch {
		case p.Aside:
			s += "; aside: " + one
		case s == "":
			s = one
		case r.Largest:
			s += " | " + one
		default:
			s += " + " + one
		}
	}
	return s
}

// write puts all that was found, with all samples, into a file.
func (r *report) write(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
