package broker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// output is what a command has written to a file so far.
type output string

func (o output) read(t *testing.T) []byte {
	t.Helper()
	b := contents(t, string(o))
	// The last line may be on its way.
	return b[:bytes.LastIndexByte(b, '\n')+1]
}

// streams runs a command in the background with its output in a file.
func streams(t *testing.T, name string, args ...string) output {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = f, os.Stderr
		return cmd
	})
	t.Cleanup(func() { _ = f.Close() })
	return output(f.Name())
}

// consumes runs a consumer that goes on.
func consumes(t *testing.T, n *Node, topic string) output {
	t.Helper()
	return streams(t, "kcat", "-C", "-u", "-q", "-b", n.Addr, "-t", topic, "-p", "0", "-o", "beginning",
		"-X", "isolation.level=read_uncommitted", "-f", `%o\t%T\t%K\t%k\t%S\t%s\n`)
}

// seconds is how long brokers are loaded while they are followed.
func seconds() string {
	if s := os.Getenv("LOGMOUNT_FOLLOW_SECONDS"); s != "" {
		return s
	}
	return "20"
}

// TestFollowBroker follows a broker that is busy with everything at once: what a reader of the mount gets is what a consumer gets.
func TestFollowBroker(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			n := k.New(t, Options{Settings: []string{"log.retention.check.interval.ms=1000", "log.cleaner.backoff.ms=500", "log.segment.delete.delay.ms=500"}})
			n.Start(t)
			n.Topic(t, "steady", 1, 1, "segment.bytes=1048576", "segment.ms=3000")
			n.Topic(t, "kept", 1, 1, "segment.ms=1000", "retention.bytes=200000", "file.delete.delay.ms=500")
			n.Topic(t, "compacted", 1, 1, "segment.ms=1000", "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01", "file.delete.delay.ms=500")
			n.Topic(t, "growing", 1, 1)
			mnt := mounted(t, n.Data)
			at := func(name string) string { return filepath.Join(mnt, name) }

			tailed := streams(t, "tail", "-s", "0.1", "-n", "+1", "-f", at("steady/0/tail"))
			steady := streams(t, "cat", at("steady/0/follow"))
			kept := streams(t, "cat", at("kept/0/follow.json"))
			compacted := streams(t, "cat", at("compacted/0/follow.json"))
			keptTruth, compactedTruth := consumes(t, n, "kept"), consumes(t, n, "compacted")

			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			load := k.Command(ctx, "256m", "Load", "load", n.Addr, seconds(), "steady", "kept", "compacted", "growing")
			var said bytes.Buffer
			load.Stdout, load.Stderr = &said, &said
			if err := load.Start(); err != nil {
				t.Fatal(err)
			}
			watchChurn(t, k.Command(ctx, "256m", "Load", "churn", n.Addr, seconds(), "growing"), mnt)
			if err := load.Wait(); err != nil {
				t.Fatalf("load: %v\n%s", err, tail(said.String(), 20))
			}

			truth := consumed(t, n.Addr, "steady", 0)
			var values strings.Builder
			for _, r := range truth {
				values.WriteString(*r.Value + "\n")
			}
			t.Logf("steady: %d records, %d bytes, segments %v", len(truth), values.Len(), segments(t, filepath.Join(n.Data, "steady-0")))
			for name, got := range map[string]output{"tail -f": tailed, "cat follow": steady} {
				Until(t, name+" has read everything", func() bool { return len(got.read(t)) >= values.Len() })
				differ(t, name, got.read(t), values.String())
			}
			same(t, "steady", rows(t, at("steady/0/tail.json")), truth)

			end := consumedLast(t, n, "kept", keptTruth)
			t.Logf("kept: the consumer is at offset %d, the follower at %d; segments %v", end, lastOffset(parseRows(t, kept.read(t))), segments(t, filepath.Join(n.Data, "kept-0")))
			Until(t, "the follower of kept has read everything", func() bool { return lastOffset(parseRows(t, kept.read(t))) >= end })
			same(t, "kept", parseRows(t, kept.read(t)), parseConsumed(t, string(keptTruth.read(t))))
			if s := segments(t, filepath.Join(n.Data, "kept-0")); s[0] == fmt.Sprintf("%020d", 0) {
				t.Error("nothing was deleted in kept")
			}

			end = consumedLast(t, n, "compacted", compactedTruth)
			Until(t, "the follower of compacted has read everything", func() bool { return lastOffset(parseRows(t, compacted.read(t))) >= end })
			// Both read while records went away, not in the same moments. Nobody may miss what is still there.
			left := consumed(t, n.Addr, "compacted", 0)
			superset(t, "compacted", parseRows(t, compacted.read(t)), left, parseConsumed(t, string(compactedTruth.read(t))))
			same(t, "compacted", rows(t, at("compacted/0/tail.json")), left)

			// The broker goes and comes back; whoever follows stays.
			n.Stop(t)
			n.Start(t)
			Kcat(t, "after the restart\n", "-P", "-b", n.Addr, "-t", "steady", "-p", "0")
			for _, got := range []output{tailed, steady} {
				Until(t, "the record after the restart", func() bool { return strings.HasSuffix(string(got.read(t)), "\nafter the restart\n") })
				if n := len(got.read(t)) - values.Len() - len("after the restart\n"); n != 0 {
					t.Errorf("%d bytes more than were written", n)
				}
			}
		})
	}
}

// watchChurn looks in the mount for what was made and deleted.
func watchChurn(t *testing.T, cmd *exec.Cmd, mnt string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	longest := map[string]time.Duration{}
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(mnt, name)); return err == nil }
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		start := time.Now()
		f := strings.Fields(sc.Text())
		switch f[0] {
		case "created":
			Until(t, f[1]+" appears", func() bool { return exists(f[1] + "/1/tail") })
		case "deleted":
			Until(t, f[1]+" disappears", func() bool { return !exists(f[1]) })
		case "partitions":
			Until(t, "a partition appears", func() bool {
				list, err := os.ReadDir(filepath.Join(mnt, "growing"))
				n := 0
				for _, e := range list {
					if e.IsDir() {
						n++
					}
				}
				return err == nil && fmt.Sprint(n) == f[1]
			})
		}
		longest[f[0]] = max(longest[f[0]], time.Since(start).Round(time.Millisecond))
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("churn: %v\n%s", err, tail(said.String(), 20))
	}
	t.Logf("the mount knew of a change this long after the client at the latest: %v", longest)
}

// consumedLast waits until a consumer has everything, and returns the last offset.
func consumedLast(t *testing.T, n *Node, topic string, got output) int64 {
	t.Helper()
	end := lastOffset(consumed(t, n.Addr, topic, 0))
	Until(t, "the consumer of "+topic+" has read everything", func() bool { return lastOffset(parseConsumed(t, string(got.read(t)))) >= end })
	return end
}

func lastOffset(r []row) int64 {
	if len(r) == 0 {
		return -1
	}
	return r[len(r)-1].Offset
}

// differ shows where text departs from what it should be.
func differ(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if string(got) == want {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s: got %d bytes, want %d; from byte %d on got %.200q, want %.200q", what, len(got), len(want), i, got[i:], want[i:])
}

// superset checks that got is in order, has all of must, and nothing that differs from may.
func superset(t *testing.T, what string, got, must, may []row) {
	t.Helper()
	known := map[int64]row{}
	for _, r := range may {
		known[r.Offset] = r
	}
	read := map[int64]bool{}
	last, bad := int64(-1), 0
	for _, r := range got {
		if r.Offset <= last {
			t.Fatalf("%s: offset %d after %d", what, r.Offset, last)
		}
		last = r.Offset
		read[r.Offset] = true
		if !strings.HasSuffix(*r.Value, ".") {
			t.Errorf("%s: half a record: %s", what, r.text())
		}
		if w, ok := known[r.Offset]; ok && (w.Timestamp != r.Timestamp || !equal(w.Key, r.Key) || !equal(w.Value, r.Value)) && bad < 3 {
			bad++
			t.Errorf("%s: got %s, want %s", what, r.text(), w.text())
		}
	}
	for _, r := range must {
		if !read[r.Offset] && bad < 3 {
			bad++
			t.Errorf("%s: %s was not delivered", what, r.text())
		}
	}
	t.Logf("%s: %d records followed, %d consumed, %d left", what, len(got), len(may), len(must))
}
