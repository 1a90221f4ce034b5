package fs

import (
	"bytes"
	"container/list"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/logmount/logmount/storage"
)

// reportsKept is how many different reports are remembered.
const reportsKept = 100

// Reports remembers what went wrong or was put right lately, for people to read in .logmount/errors, and logs each thing when it first happens.
// A repetition, the same reason for the same path, is counted and moves its entry to the end. A nil *Reports drops everything. All methods may be called concurrently.
type Reports struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex // guards what follows; a leaf
	byAge *list.List // of *reportEntry, oldest last occurrence first
	byKey map[reportKey]*list.Element
	total int64
	last  time.Time // when a report came in, by now
}

// reportKey is what makes two reports the same.
type reportKey struct{ path, reason string }

// reportEntry is one line of .logmount/errors. Time is that of the latest occurrence.
type reportEntry struct {
	storage.Report
	more  string    // what the reason ends with, once it is known
	First time.Time `json:"first,omitzero"`
	Count int64     `json:"count,omitempty"`
}

// NewReports returns an empty list. log may be nil; now is asked for the time of reports that come without one.
func NewReports(log *slog.Logger, now func() time.Time) *Reports {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Reports{log: log, now: now, byAge: list.New(), byKey: make(map[reportKey]*list.Element)}
}

// Add remembers a report. It is what an engine is given to tell its troubles to.
func (r *Reports) Add(report storage.Report) {
	r.add(report, "", true)
}

// Total returns how many reports came in, repetitions and forgotten ones included.
func (r *Reports) Total() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// JSON returns the remembered reports, one JSON object per line, oldest first.
func (r *Reports) JSON() []byte {
	if r == nil {
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, e := range r.list() {
		if err := enc.Encode(&e); err != nil { // a time outside the years that RFC 3339 knows
			e.Time, e.First = time.Time{}, time.Time{}
			_ = enc.Encode(&e)
		}
	}
	return buf.Bytes()
}

// list copies the entries.
func (r *Reports) list() []reportEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := make([]reportEntry, 0, r.byAge.Len())
	for el := r.byAge.Front(); el != nil; el = el.Next() {
		e := *el.Value.(*reportEntry)
		e.Reason += e.more
		entries = append(entries, e)
	}
	return entries
}

// Last returns when the latest report came in; zero if none has.
func (r *Reports) Last() time.Time {
	if r == nil {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// add remembers a report, whose reason ends with more, and, if logged is set and it is new, logs it.
func (r *Reports) add(report storage.Report, more string, logged bool) {
	if r == nil {
		return
	}
	at := report.Time
	if r.now != nil {
		at = r.now()
	}
	if report.Time.IsZero() {
		report.Time = at
	}
	if r.remember(report, more, at) && logged {
		r.log.Warn("report", "path", report.Path, "reason", report.Reason+more)
	}
}

// remember returns whether the report was new.
func (r *Reports) remember(report storage.Report, more string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	r.last = at
	key := reportKey{report.Path, report.Reason}
	if el, ok := r.byKey[key]; ok {
		e := el.Value.(*reportEntry)
		if e.Count == 0 {
			e.Count, e.First = 1, e.Time
		}
		e.Count++
		if e.Report = report; more != "" {
			e.more = more
		}
		r.byAge.MoveToBack(el)
		return false
	}
	r.byKey[key] = r.byAge.PushBack(&reportEntry{Report: report, more: more})
	if r.byAge.Len() > reportsKept {
		oldest := r.byAge.Front()
		e := oldest.Value.(*reportEntry)
		delete(r.byKey, reportKey{e.Path, e.Reason})
		r.byAge.Remove(oldest)
	}
	return true
}
