package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAppendToStoppedBroker appends to a partition of a broker that is stopped. The broker goes on as if the records were its own.
func TestAppendToStoppedBroker(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			n := k.New(t, Options{User: "nobody"})
			n.Start(t)
			n.Topic(t, "orders", 2, 1)
			n.Topic(t, "rolling", 1, 1, "segment.bytes=1048576")
			k.Run(t, "Load", "load", n.Addr, "2", "orders", "rolling")
			n.Stop(t)

			marker := contents(t, filepath.Join(n.Data, ".kafka_cleanshutdown"))
			var want [][]row
			rounds := 2
			if k.Version != Versions()[0] {
				rounds = 1
			}
			for round := range rounds {
				mnt := mounted(t, n.Data, "--read-write")
				if round == 0 {
					n.Launch(t)
					n.Wait(t)
					if log := n.Log(t); !strings.Contains(log, "Failed to acquire lock on file .lock") {
						t.Errorf("the broker ended for another reason:\n%s", tail(serious(log), 10))
					}
				}
				before := []int{len(rows(t, filepath.Join(mnt, "orders/0/tail.json"))), len(rows(t, filepath.Join(mnt, "rolling/0/tail.json")))}
				sh(t, `
				echo "a line in round $round" >> "$mnt/orders/0/tail"
				echo '{"key":"k","value":"an object","headers":[{"key":"h","value":"v"}]}' >> "$mnt/orders/0/tail.json"
				seq -f 'one of many %g' 1 60000 >> "$mnt/rolling/0/tail"`, "mnt="+mnt, fmt.Sprintf("round=%d", round))
				want = [][]row{rows(t, filepath.Join(mnt, "orders/0/tail.json")), rows(t, filepath.Join(mnt, "rolling/0/tail.json"))}
				if got := len(want[0]) - before[0]; got != 2 {
					t.Errorf("orders: %d records more, want 2", got)
				}
				if got := len(want[1]) - before[1]; got != 60000 {
					t.Errorf("rolling: %d records more, want 60000", got)
				}
				unmount(t, mnt)
				if got := contents(t, filepath.Join(n.Data, ".kafka_cleanshutdown")); string(got) != string(marker) {
					t.Errorf("clean-shutdown marker: got %q, want %q", got, marker)
				}
				owned(t, n)

				n.Start(t)
				for _, line := range recovered(t, n) {
					t.Errorf("recovered: %s", line)
				}
				for i, topic := range []string{"orders", "rolling"} {
					got := consumed(t, n.Addr, topic, 0)
					for j := range got {
						if len(got) == len(want[i]) {
							got[j].Headers = want[i][j].Headers // kcat does not show them
						}
					}
					same(t, topic, got, want[i])
					Kcat(t, "goes on\n", "-P", "-b", n.Addr, "-t", topic, "-p", "0", "-X", "enable.idempotence=true")
					if last, end := lastOffset(consumed(t, n.Addr, topic, 0)), lastOffset(want[i])+1; last != end {
						t.Errorf("%s: the next record has offset %d, want %d", topic, last, end)
					}
				}
				k.Run(t, "Load", "load", n.Addr, "1", "orders", "rolling")
				if round == 0 {
					if out, err := logmount(t, "mount", n.Data, t.TempDir(), "--read-write").CombinedOutput(); err == nil {
						t.Errorf("mounted beside a running broker: %s", out)
					}
				}
				n.Stop(t)
				marker = contents(t, filepath.Join(n.Data, ".kafka_cleanshutdown"))
			}
			_, bad := judge(t, k, filepath.Join(n.Data, "orders-0"), filepath.Join(n.Data, "rolling-0"))
			calm(t, bad)
		})
	}
}

// owned checks that everything in the log directory belongs to who runs the broker.
func owned(t *testing.T, n *Node) {
	t.Helper()
	if out := sh(t, `find "$data" ! -uid "$uid"`, "data="+n.Data, "uid="+fmt.Sprint(n.cred.Uid)); out != "" {
		t.Errorf("not the broker's own: %s", out)
	}
}

// TestReplicatedIsRefused tries to append to one of two replicas, which the other would never learn of.
func TestReplicatedIsRefused(t *testing.T) {
	k := newest(t)
	first := k.New(t, Options{})
	first.Start(t)
	second := k.New(t, Options{Controller: first})
	second.Start(t)
	first.Assign(t, "pair", "1", "2")
	first.Assign(t, "alone", "2")
	Kcat(t, numbered("record", 10), "-P", "-b", first.Addr, "-t", "pair", "-p", "0", "-X", "acks=all")
	Kcat(t, numbered("record", 10), "-P", "-b", first.Addr, "-t", "alone", "-p", "0", "-X", "acks=all")
	second.Stop(t)

	mnt := mounted(t, second.Data, "--read-write")
	had := contents(t, filepath.Join(second.Data, "pair-0", "00000000000000000000.log"))
	err := appendTo(filepath.Join(mnt, "pair/0/tail"))
	if err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("append to one of two replicas: got %v, want EROFS", err)
	}
	if reasons := string(contents(t, filepath.Join(mnt, ".logmount/errors"))); !strings.Contains(reasons, "pair") {
		t.Errorf("errors do not tell why: %q", reasons)
	}
	if got := contents(t, filepath.Join(second.Data, "pair-0", "00000000000000000000.log")); string(got) != string(had) {
		t.Error("the replica's log has changed")
	}
	if err := appendTo(filepath.Join(mnt, "__cluster_metadata/0/tail")); err == nil {
		t.Error("a line was appended to the metadata log")
	}
	if err := appendTo(filepath.Join(mnt, "alone/0/tail")); err != nil {
		t.Errorf("append to a partition that has one replica: %v", err)
	}
	unmount(t, mnt)
	second.Start(t)
	if got := consumed(t, second.Addr, "alone", 0); len(got) != 11 || *got[10].Value != "appended" {
		t.Errorf("alone: got %d records, want 11", len(got))
	}
}

// appendTo appends a line.
func appendTo(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("appended\n"); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
