package broker

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestSegmentsAreTheBrokers copies a log batch by batch: it rolls where the broker's rolled, and its indexes are the broker's, byte for byte.
func TestSegmentsAreTheBrokers(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			n := k.New(t, Options{})
			n.Start(t)
			n.Topic(t, "perf", 1, 1, "segment.bytes=1048576")
			k.Run(t, "org.apache.kafka.tools.ProducerPerformance", "--topic", "perf", "--num-records", "50000", "--record-size", "200", "--throughput", "-1",
				"--producer-props", "bootstrap.servers="+n.Addr, "linger.ms=5000", "batch.size=16384")
			n.Stop(t)

			own := filepath.Join(Dir(t), "own")
			does(t, "topics", "create", own, "perf", "--config", "segment.bytes=1048576")
			src, mnt := mounted(t, n.Data), mounted(t, own)
			sh(t, `cat "$src/perf/0/tail.batch" > "$mnt/perf/0/tail.batch"`, "src="+src, "mnt="+mnt)
			want := rows(t, filepath.Join(src, "perf/0/tail.json"))
			unmount(t, mnt)
			if len(want) != 50000 {
				t.Fatalf("got %d records of the broker's, want 50000", len(want))
			}

			theirs, ours := filepath.Join(n.Data, "perf-0"), filepath.Join(own, "perf-0")
			names := segments(t, theirs)
			if got := segments(t, ours); !slices.Equal(got, names) {
				t.Errorf("segments: got %v, want %v", got, names)
			}
			for i, name := range names {
				for _, suffix := range []string{".index", ".timeindex"} {
					got, want := contents(t, filepath.Join(ours, name+suffix)), contents(t, filepath.Join(theirs, name+suffix))
					if i == len(names)-1 {
						continue // the active one: a broker that stops leaves entries in it that a rebuild would not make
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%s%s: got %d bytes %.40x, want %d bytes %.40x", name, suffix, len(got), got, len(want), want)
					}
				}
				got, want := contents(t, filepath.Join(ours, name+".log")), contents(t, filepath.Join(theirs, name+".log"))
				if len(got) != len(want) {
					t.Errorf("%s.log: got %d bytes, want %d", name, len(got), len(want))
				}
			}
			read, bad := judge(t, k, ours)
			calm(t, bad)
			same(t, "kafka-dump-log", read[ours], want)

			index := dump(t, k, "--files", filepath.Join(ours, names[0]+".index"))
			for _, name := range names {
				file := filepath.Join(ours, name+".index")
				got, want := entries(does(t, "dump", file)), entries(dump(t, k, "--files", file))
				if len(want) == 0 || !slices.Equal(got, want) {
					t.Errorf("%s: logmount dump has the entries %q, kafka-dump-log %q", file, got, want)
				}
				if name == names[1] {
					break // each is a JVM
				}
			}
			t.Logf("%v\n%.200s", names, index)
			// The producer fills its batches unless the machine stalls: 78 records each in 16377 bytes and a few more for late ones; the 64th batch of a segment is
			// its last.
			if names[1] == fmt.Sprintf("%020d", 4992) {
				for _, line := range []string{"offset: 155 position: 163", "offset: 233 position: 327"} {
					if !bytes.Contains([]byte(index), []byte(line)) {
						t.Errorf("no %q in the first index:\n%s", line, index)
					}
				}
				if st := contents(t, filepath.Join(ours, names[0]+".index")); len(st) != 63*8 {
					t.Errorf("the first index: got %d bytes, want %d", len(st), 63*8)
				}
			}
		})
	}
}

// entries are the lines of an offset index.
func entries(out string) []string {
	return regexp.MustCompile(`(?m)^offset: \d+ position: \d+$`).FindAllString(out, -1)
}

// segments lists the base names of a partition's logs.
func segments(t *testing.T, dir string) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs of %s: %v, %v", dir, logs, err)
	}
	for i, l := range logs {
		logs[i] = filepath.Base(l[:len(l)-len(".log")])
	}
	return logs
}

func contents(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
