package broker

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// complaints are what kafka-dump-log says of files that are wrong; its exit status says nothing. Of a log that does not start at 0 some versions say that -1
// is followed by its first offset, which is no complaint.
var complaints = regexp.MustCompile(`(?m)^(Mismatches in.*|Found .*|Index offset:.*|\s*\d+ is followed by .*|Timestamp mismatch.*|Indexed offset:.*|.*isvalid: false.*|.*(?i:exception|corrupt).*)$`)

// judge lets kafka-dump-log look at every file of the partitions' directories. It returns the records that it printed, by directory, and what it complained of.
func judge(t *testing.T, k *Kafka, dirs ...string) (read map[string][]row, bad []string) {
	t.Helper()
	var logs, indexes []string
	for _, dir := range dirs {
		l, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil || len(l) == 0 {
			t.Fatalf("no logs in %s: %v", dir, err)
		}
		for _, log := range l {
			for _, suffix := range []string{".index", ".timeindex"} {
				f := strings.TrimSuffix(log, ".log") + suffix
				st, err := os.Stat(f)
				if err != nil {
					t.Fatal(err)
				}
				// An index without entries is fine, and dump-log does not get past it.
				if st.Size() > 0 {
					indexes = append(indexes, f)
				}
			}
		}
		logs = append(logs, l...)
	}
	complain := func(out string) { bad = append(bad, complaints.FindAllString(out, -1)...) }
	if list := strings.Join(indexes, ","); list != "" {
		complain(dump(t, k, "--files", list, "--index-sanity-check"))
		complain(dump(t, k, "--files", list, "--verify-index-only"))
	}
	out := dump(t, k, "--files", strings.Join(logs, ","), "--deep-iteration", "--print-data-log")
	complain(out)
	read = map[string][]row{}
	for part := range strings.SplitSeq("\n"+out, "\nDumping ") {
		name, lines, _ := strings.Cut(part, "\n")
		dir := filepath.Dir(strings.TrimSpace(name))
		read[dir] = append(read[dir], dumped(t, lines)...)
	}
	return read, bad
}

// dump runs kafka-dump-log and returns what it prints on both its outputs: the mismatches are on stderr.
func dump(t *testing.T, k *Kafka, args ...string) string {
	t.Helper()
	out, err := k.Command(t.Context(), "512m", k.Dump(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kafka-dump-log: %v\n%s", err, tail(string(out), 20))
	}
	return string(out)
}

// calm fails the test where the judge complained. No value of these tests looks like a complaint.
func calm(t *testing.T, bad []string) {
	t.Helper()
	for i, c := range bad {
		if i == 10 {
			break
		}
		t.Errorf("kafka-dump-log: %s", c[:min(len(c), 300)])
	}
}

// dumped reads the lines of records.
func dumped(t *testing.T, out string) []row {
	t.Helper()
	var all []row
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		rest, ok := strings.CutPrefix(line, "| offset: ")
		if !ok || strings.Contains(line, " endTxnMarker: ") {
			continue
		}
		var r row
		meta, value, hasValue := strings.Cut(rest, " payload: ")
		meta, key, hasKey := strings.Cut(meta, " key: ")
		if hasValue {
			r.Value = &value
		}
		if hasKey {
			r.Key = &key
		}
		f := strings.Fields(meta) // OFFSET CreateTime: TIMESTAMP keySize: N valueSize: N sequence: N headerKeys: [a,b]
		var err1, err2 error
		r.Offset, err1 = strconv.ParseInt(f[0], 10, 64)
		r.Timestamp, err2 = strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("not understood: %s", line[:min(len(line), 200)])
		}
		_, names, _ := strings.Cut(meta, "headerKeys: [")
		for name := range strings.SplitSeq(strings.TrimSuffix(names, "]"), ",") {
			if name != "" {
				r.Headers = append(r.Headers, struct {
					Key string `json:"key"`
				}{name})
			}
		}
		all = append(all, r)
	}
	return all
}
