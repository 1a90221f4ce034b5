package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// consumed reads a partition from its start to its end with kcat, aborted transactions included.
func consumed(t *testing.T, addr, topic string, partition int, args ...string) []row {
	t.Helper()
	out := Kcat(t, "", append([]string{
		"-C", "-q", "-b", addr, "-t", topic, "-p", strconv.Itoa(partition), "-o", "beginning", "-e",
		"-X", "isolation.level=read_uncommitted", "-f", `%o\t%T\t%K\t%k\t%S\t%s\n`,
	}, args...)...)
	return parseConsumed(t, out)
}

// parseConsumed reads lines of offset, timestamp, key and value; lengths of -1 mean null.
func parseConsumed(t *testing.T, out string) []row {
	t.Helper()
	var all []row
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 6)
		if len(f) != 6 {
			t.Fatalf("kcat printed %q", line)
		}
		var r row
		var err1, err2 error
		r.Offset, err1 = strconv.ParseInt(f[0], 10, 64)
		r.Timestamp, err2 = strconv.ParseInt(f[1], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("kcat printed %q", line)
		}
		if f[2] != "-1" {
			r.Key = &f[3]
		}
		if f[4] != "-1" {
			r.Value = &f[5]
		}
		all = append(all, r)
	}
	return all
}

// background starts a command that runs until the test ends or stop is called.
func background(t *testing.T, cmd func(ctx context.Context) *exec.Cmd) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := cmd(ctx)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Wait()
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// TestKilledBroker kills a broker in the middle of its writes, again and again: the mount of what it left shows what the broker itself shows after its
// recovery.
func TestKilledBroker(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			topics := []string{"busy", "rolling"}
			n := k.New(t, Options{Settings: []string{"log.flush.offset.checkpoint.interval.ms=1000"}})
			n.Start(t)
			n.Topic(t, "busy", 1, 1)
			n.Topic(t, "rolling", 1, 1, "segment.bytes=1048576", "index.interval.bytes=256")
			kills := 3
			if k.Version != Versions()[0] {
				kills = 2
			}
			for kill := range kills {
				had := size(t, n.Data)
				stop := background(t, func(ctx context.Context) *exec.Cmd {
					return k.Command(ctx, "256m", "Load", append([]string{"load", n.Addr, "60"}, topics...)...)
				})
				Until(t, "the producers produce", func() bool { return size(t, n.Data) > had+500_000 })
				time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
				n.Kill(t)
				stop()

				mnt := mounted(t, n.Data)
				shown := map[string][]row{}
				for _, topic := range topics {
					shown[topic] = rows(t, filepath.Join(mnt, topic, "0/tail.json"))
				}
				unmount(t, mnt)
				does(t, "verify", n.Data) // what a kill leaves is no damage

				n.Start(t)
				for _, topic := range topics {
					want := consumed(t, n.Addr, topic, 0)
					same(t, fmt.Sprintf("%s after kill %d", topic, kill+1), shown[topic], want)
					t.Logf("%s after kill %d: %d records", topic, kill+1, len(want))
				}
			}
			n.Stop(t)
		})
	}
}

// size adds up the logs of a log directory.
func size(t *testing.T, data string) int64 {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(data, "*-0", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, f := range logs {
		if st, err := os.Stat(f); err == nil {
			n += st.Size()
		}
	}
	return n
}
