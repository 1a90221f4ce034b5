package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// blocks returns the shell blocks of a page.
func blocks(t *testing.T, page string) []string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?s)\n```sh\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		all = append(all, m[1])
	}
	return all
}

// recovered lists the partitions whose logs the broker had to recover at its last start, the metadata log aside: that one it always recovers.
func recovered(t *testing.T, n *Node) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(n.Log(t)) {
		if strings.Contains(line, "Recovering unflushed segment") && !strings.Contains(line, "__cluster_metadata-0") {
			all = append(all, line)
		}
	}
	return all
}

// TestTopicMovesIntoCluster does what docs/kafka.md says, with the commands of that page.
func TestTopicMovesIntoCluster(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			n := k.New(t, Options{User: "nobody"})
			n.Start(t)
			n.Topic(t, "other", 1, 1)
			Kcat(t, "before\n", "-P", "-b", n.Addr, "-t", "other", "-p", "0")

			own := filepath.Join(Dir(t), "own")
			does(t, "topics", "create", own, "orders", "--partitions", "2", "--config", "segment.bytes=65536", "--config", "index.interval.bytes=1024")
			mnt := mounted(t, own)
			for i := range 40 {
				var lines strings.Builder
				for j := range 100 {
					fmt.Fprintf(&lines, `{"timestamp":%d,"key":"k%d","value":"order %d of %d","headers":[{"key":"trace","value":"t%d"}]}`+"\n", 1_700_000_000_000+i*60_000, i, j, i, j)
				}
				if err := os.WriteFile(filepath.Join(mnt, "orders/0/tail.json"), []byte(lines.String()), 0); err != nil {
					t.Fatal(err)
				}
			}
			sh(t, `
			seq -f 'line %g' 1 30000 > "$mnt/orders/1/tail"
			echo 12345 > "$mnt/orders/1/start"
			printf 'last' > "$mnt/orders/1/tail"`, "mnt="+mnt)
			want := [][]row{rows(t, filepath.Join(mnt, "orders/0/tail.json")), rows(t, filepath.Join(mnt, "orders/1/tail.json"))}
			unmount(t, mnt)

			env := []string{
				"PATH=" + k.Bin(t) + ":" + filepath.Dir(program) + ":" + os.Getenv("PATH"),
				"OWN=" + own, "TOPIC=orders", "PARTITIONS=2", "LOGS=" + n.Data, "BROKER=" + n.Addr, fmt.Sprintf("BROKER_ID=%d", n.ID),
			}
			said := ""
			for i, block := range blocks(t, "../../docs/kafka.md") {
				switch {
				case i == 0: // the reader's names
					if !strings.HasPrefix(block, "OWN=") {
						t.Fatalf("the page does not begin with names: %s", block)
					}
				case block == "systemctl stop kafka\n":
					n.Stop(t)
				case block == "systemctl start kafka\n":
					n.Start(t)
				default:
					said = sh(t, block, env...)
				}
			}
			if want := "orders:0:4000\norders:1:30001\n"; !strings.HasSuffix(said, want) {
				t.Errorf("offsets: got %q, want %q", said, want)
			}
			for _, line := range recovered(t, n) {
				t.Errorf("recovered: %s", line)
			}
			adopted(t, k, n, want)

			// A producer goes on.
			Kcat(t, "goes on\n", "-P", "-b", n.Addr, "-t", "orders", "-p", "1", "-X", "enable.idempotence=true")
			got := consumed(t, n.Addr, "orders", 1)
			if last := got[len(got)-1]; last.Offset != 30001 || *last.Value != "goes on" {
				t.Errorf("the next record: got %s", last.text())
			}
			k.Run(t, "Load", "load", n.Addr, "2", "orders")

			// So does a replica that is added later.
			second := k.New(t, Options{Controller: n, User: "nobody"})
			second.Start(t)
			k.Run(t, "Load", "replicate", n.Addr, "orders", "1", "2")
			Kcat(t, "for both\n", "-P", "-b", n.Addr, "-t", "orders", "-p", "0", "-X", "acks=all")
			second.Stop(t)
			n.Stop(t)
			first, copied := mounted(t, n.Data), mounted(t, second.Data)
			for p := range want {
				name := fmt.Sprintf("orders/%d/tail.json", p)
				all := rows(t, filepath.Join(first, name))
				if len(all) <= len(want[p]) {
					t.Errorf("%s: the mount shows %d records, and %d were there before the producers", name, len(all), len(want[p]))
				} else {
					same(t, name+" in the cluster's directory", all[:len(want[p])], want[p])
				}
				same(t, name+" of the replica", rows(t, filepath.Join(copied, name)), all)
			}
			unmount(t, first)
			n.Start(t)
			for _, line := range recovered(t, n) {
				t.Errorf("recovered after a second stop: %s", line)
			}
		})
	}
}

// adopted reads what was moved, by offset and by time, with kcat and with Kafka's own consumer.
func adopted(t *testing.T, k *Kafka, n *Node, want [][]row) {
	t.Helper()
	for p, w := range want {
		got := consumed(t, n.Addr, "orders", p)
		for i := range got {
			if len(w) == len(got) {
				got[i].Headers = w[i].Headers // kcat is asked for them below
			}
		}
		same(t, fmt.Sprintf("orders-%d by kcat", p), got, w)
	}
	headers := Kcat(t, "", "-C", "-q", "-b", n.Addr, "-t", "orders", "-p", "0", "-o", "beginning", "-e", "-f", `%h\n`)
	if got, want := headers, sh(t, `for i in $(seq 40); do seq -f 'trace=t%g' 0 99; done`); got != want {
		t.Errorf("headers: got %.100q, want %.100q", got, want)
	}
	for _, at := range []int64{0, 1, 99, 2345, 3999} {
		got := parseConsumed(t, Kcat(t, "", "-C", "-q", "-b", n.Addr, "-t", "orders", "-p", "0", "-o", fmt.Sprint(at), "-c", "1", "-f", `%o\t%T\t%K\t%k\t%S\t%s\n`))
		if len(got) != 1 || got[0].Offset != at || !equal(got[0].Value, want[0][at].Value) {
			t.Errorf("offset %d: got %v", at, got)
		}
	}
	for _, minute := range []int64{0, 1, 2, 17, 39} {
		for _, off := range []int64{-1, 0} {
			ts := 1_700_000_000_000 + minute*60_000 + off
			first := int64(-1)
			for _, r := range want[0] {
				if r.Timestamp >= ts {
					first = r.Offset
					break
				}
			}
			got := parseConsumed(t, Kcat(t, "", "-C", "-q", "-b", n.Addr, "-t", "orders", "-p", "0", "-o", fmt.Sprintf("s@%d", ts), "-c", "1", "-f", `%o\t%T\t%K\t%k\t%S\t%s\n`))
			if len(got) != 1 || got[0].Offset != first {
				t.Errorf("time %d: got %v, want offset %d", ts, got, first)
			}
		}
	}
	out := k.Run(t, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", n.Addr, "--topic", "orders", "--partition", "1",
		"--offset", "20000", "--max-messages", "10001")
	var lines strings.Builder
	for _, r := range want[1] {
		if r.Offset >= 20000 {
			lines.WriteString(*r.Value + "\n")
		}
	}
	if out != lines.String() {
		t.Errorf("console consumer: got %d bytes, want %d", len(out), lines.Len())
	}
}
