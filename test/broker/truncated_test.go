package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// numbered are n lines that begin with a word.
func numbered(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s %d\n", word, i)
	}
	return b.String()
}

// TestFollowerTruncates mounts the directory of a leader that has records which no other replica has, comes back as a follower, and drops them.
func TestFollowerTruncates(t *testing.T) {
	k := newest(t)
	first := k.New(t, Options{Settings: []string{"broker.session.timeout.ms=5000", "unclean.leader.election.enable=true", "unclean.leader.election.interval.ms=1000"}})
	first.Start(t)
	second := k.New(t, Options{Controller: first})
	second.Start(t)
	first.Assign(t, "pair", "2", "1")
	// It follows from early on: of a log that was there before it, it knows no more than the end.
	mnt := mounted(t, second.Data)
	name := filepath.Join(mnt, "pair/0/tail")
	Kcat(t, numbered("both have", 1000), "-P", "-b", second.Addr, "-t", "pair", "-p", "0", "-X", "acks=all")
	if got, err := os.ReadFile(name); err != nil || string(got) != numbered("both have", 1000) {
		t.Fatalf("at first: got %d bytes and %v", len(got), err)
	}
	Until(t, "both are in sync", func() bool { _, n := replicas(t, second, "pair"); return n == 2 })
	// Nobody can take the first out of the in-sync replicas: the controller is gone with it.
	first.Kill(t)
	Kcat(t, numbered("only the second has", 500), "-P", "-b", second.Addr, "-t", "pair", "-p", "0", "-X", "acks=1")

	old, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	both := numbered("both have", 1000)
	if got, want := string(before), both+numbered("only the second has", 500); got != want {
		t.Fatalf("before: got %d bytes, want %d", len(got), len(want))
	}

	second.Kill(t)
	first.Start(t)
	Until(t, "the first leads", func() bool { leader, _ := replicas(t, first, "pair"); return leader == first.ID })
	Kcat(t, numbered("new", 300), "-P", "-b", first.Addr, "-t", "pair", "-p", "0", "-X", "acks=1")
	second.Start(t)
	truth := both + numbered("new", 300)
	Until(t, "the mount of the follower shows what the leader has", func() bool {
		b, err := os.ReadFile(name)
		return err == nil && string(b) == truth
	})

	b := make([]byte, 4096)
	if _, err := old.ReadAt(b, 0); err != nil || !strings.HasPrefix(both, string(b)) {
		t.Errorf("an old reader below the cut: %v, %.40q", err, b)
	}
	if n, err := old.ReadAt(b[:64], int64(len(both))+100); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("an old reader above the cut: got %d bytes and %v, want ESTALE", n, err)
	}
}

// replicas asks a node who leads partition 0 of a topic, and how many replicas are in sync.
func replicas(t *testing.T, n *Node, topic string) (leader, insync int) {
	t.Helper()
	var all struct {
		Topics []struct {
			Partitions []struct {
				Leader int        `json:"leader"`
				ISRs   []struct{} `json:"isrs"`
			} `json:"partitions"`
		} `json:"topics"`
	}
	out := Kcat(t, "", "-L", "-J", "-b", n.Addr, "-t", topic)
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Topics) != 1 || len(all.Topics[0].Partitions) == 0 {
		t.Fatalf("%s: %v", out, err)
	}
	p := all.Topics[0].Partitions[0]
	return p.Leader, len(p.ISRs)
}
