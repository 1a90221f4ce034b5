package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
)

// clock returns a clock that is a second further each time it is asked.
func clock() func() time.Time {
	now := time.Date(2026, 8, 30, 0, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func TestReportsKeepTheLatest(t *testing.T) {
	r := NewReports(nil, clock())
	for i := range reportsKept + 5 {
		r.Add(storage.Report{Path: fmt.Sprint("p", i), Reason: "r"})
		r.Add(storage.Report{Path: "often", Reason: "r"}) // keeps its place although it came first
	}
	lines := strings.Split(strings.TrimSuffix(string(r.JSON()), "\n"), "\n")
	if got, want := len(lines), reportsKept; got != want {
		t.Fatalf("got %d lines, want %d", got, want)
	}
	var first, last struct {
		Path  string
		Count int
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if got, want := first.Path, "p6"; got != want {
		t.Errorf("oldest: got %s, want %s", got, want)
	}
	if last.Path != "often" || last.Count != reportsKept+5 {
		t.Errorf("latest: got %+v", last)
	}
	if got, want := r.Total(), int64(2*(reportsKept+5)); got != want {
		t.Errorf("total: got %d, want %d", got, want)
	}
}

func TestReportsLogEachThingOnce(t *testing.T) {
	var out bytes.Buffer
	r := NewReports(slog.New(slog.NewTextHandler(&out, nil)), clock())
	for range 3 {
		r.Add(storage.Report{Path: "orders-0", Reason: "cut 17 bytes"})
	}
	if got := strings.Count(out.String(), "level=WARN"); got != 1 {
		t.Errorf("got %d warnings, want 1:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), `path=orders-0 reason="cut 17 bytes"`) {
		t.Errorf("got %s", out.String())
	}
}

func TestReportsOfOddTimesAndBytes(t *testing.T) {
	r := NewReports(nil, nil)
	r.Add(storage.Report{Path: "a\n<b>", Reason: "x\xff"})
	r.Add(storage.Report{Path: "far", Time: time.Unix(1<<40, 0)})
	lines := strings.Split(strings.TrimSuffix(string(r.JSON()), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d lines, want 2: %q", len(lines), lines)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %q", line)
		}
	}
	if !strings.Contains(lines[0], `a\n<b>`) {
		t.Errorf("got %q", lines[0])
	}
}

func TestReportsConcurrently(t *testing.T) {
	r := NewReports(nil, func() time.Time { return time.Unix(0, 0) })
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 500 {
				r.Add(storage.Report{Path: fmt.Sprint(i, j%150)})
				if j%100 == 0 {
					r.JSON()
				}
			}
		})
	}
	wg.Wait()
	if got, want := r.Total(), int64(2000); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	var none *Reports
	none.Add(storage.Report{})
	if none.Total() != 0 || none.JSON() != nil {
		t.Error("a nil list remembers something")
	}
}

// TestDamageIsOnePlace: storage tells of a bad batch when it meets it, and a read tells where the log goes on behind it. It is one thing to a person.
func TestDamageIsOnePlace(t *testing.T) {
	r := NewReports(nil, time.Now)
	bad := &storage.CorruptError{Path: "/d/t-0/0.log", Pos: 7, Offset: 3, Reason: "unreadable batch"}
	for _, err := range []error{bad, &damageError{bad, 9}, bad} {
		report, more := reportOf("/t/0/tail", err)
		r.add(report, more, true)
	}
	got := r.list()
	if len(got) != 1 || got[0].Count != 3 || got[0].Reason != "position 7, offset 3: unreadable batch; the log goes on at offset 9" {
		t.Errorf("got %+v, want one entry that says where the log goes on, counted 3 times", got)
	}
}
