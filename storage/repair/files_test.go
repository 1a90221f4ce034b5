package repair

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/test/logtree"
)

// fileChanges is what can happen to the files beside a log, to their names, and to the checkpoints.
func fileChanges(t tree, dir, topic string, own bool) []change {
	logs := segmentsOf(t, dir)
	logs = slices.DeleteFunc(logs, func(name string) bool { return len(t[name]) == 0 })
	first, last := strings.TrimSuffix(logs[0], ".log"), strings.TrimSuffix(logs[len(logs)-1], ".log")
	var out []change
	add := func(name string, do func(t tree), left ...inspect.What) { out = append(out, change{name, do, left}) }
	for _, base := range []string{first, last} {
		for _, ext := range []string{".index", ".timeindex", ".txnindex", ".sizeindex", ".snapshot"} {
			name := base + ext
			b, ok := t[name]
			if !ok {
				continue
			}
			add(name+" removed", func(t tree) { delete(t, name) })
			add(name+" padded", func(t tree) { t[name] = append(slices.Clone(t[name]), make([]byte, 4080)...) })
			add(name+" with garbage behind", func(t tree) { t[name] = append(slices.Clone(t[name]), "garbage"...) })
			if len(b) == 0 {
				continue
			}
			add(name+" emptied", func(t tree) { t[name] = []byte{} })
			add(name+" cut", func(t tree) { t[name] = t[name][:len(b)-1] })
			for _, at := range []int{0, len(b) / 2, len(b) - 1} {
				add(fmt.Sprintf("%s flipped at %d", name, at), func(t tree) { t.Flip(name, at) })
			}
		}
		log := base + ".log"
		add(log+" removed", func(t tree) { delete(t, log) })
	}
	base := func(o int) string { return fmt.Sprintf("%s/%020d.log", dir, o) }
	add("a log twice, in the middle", func(t tree) { t[base(50)] = t[first+".log"] })
	add("a log twice, behind", func(t tree) { t[base(1_000_000)] = t[first+".log"] })
	add("an empty log in the way", func(t tree) { t[base(5)] = []byte{} })
	add("garbage in the way", func(t tree) {
		t[base(5)] = []byte("certainly no batch of records, but long enough to be looked at for a while")
	})
	add("garbage behind", func(t tree) { t[base(1_000_000)] = []byte("certainly no batch of records") })
	add("a log under a lower name", func(t tree) { rename(t, last, fmt.Sprintf("%s/%020d", dir, 3)) })
	add("a log under a higher name", func(t tree) { rename(t, first, fmt.Sprintf("%s/%020d", dir, 20)) })
	add("the last log under a much higher name", func(t tree) { rename(t, last, fmt.Sprintf("%s/%020d", dir, 900_000)) })
	if first != last {
		add("two logs swapped", func(t tree) { t[first+".log"], t[last+".log"] = t[last+".log"], t[first+".log"] })
		add("two segments swapped", func(t tree) {
			for _, ext := range []string{".log", ".index", ".timeindex"} {
				t[first+ext], t[last+ext] = t[last+ext], t[first+ext]
			}
		})
		add("two indexes swapped", func(t tree) { t[first+".index"], t[last+".index"] = t[last+".index"], t[first+".index"] })
		add("one log over another", func(t tree) { t[last+".log"] = t[first+".log"] })
	}
	add("indexes without a log", func(t tree) { t[dir+"/00000000000000777777.index"] = []byte{0, 0, 0, 1, 0, 0, 0, 2} })
	add("a name that no broker takes", func(t tree) { t[dir+"/notes.log"] = []byte("notes") }, inspect.FileName)
	add("all logs removed", func(t tree) {
		for _, l := range segmentsOf(t, dir) {
			delete(t, l)
		}
	})
	epochs, meta := dir+"/"+state.EpochsFile, dir+"/"+state.MetadataFile
	add("no epochs", func(t tree) { delete(t, epochs) })
	add("epochs that cannot be read", func(t tree) { t[epochs] = []byte("0\n2\n0 0\nx y\n") })
	add("epochs of nowhere", func(t tree) { t[epochs] = []byte("0\n1\n7 0\n") })
	add("epochs ahead", func(t tree) { t[epochs] = []byte("0\n2\n0 0\n9 9000000\n") })
	var left []inspect.What
	if !own {
		left = []inspect.What{inspect.MetadataSyntax}
	}
	add("no metadata", func(t tree) { delete(t, meta) })
	add("metadata that cannot be read", func(t tree) { t[meta] = []byte("version: 0\ntopic_id: ") }, left...)
	if own {
		add("another topic id", func(t tree) { t[meta] = []byte("version: 0\ntopic_id: 4WdnnuLgQ7OG9Bd2zp8EWg") })
	}
	for _, name := range checkpointFiles {
		line := func(s string) func(t tree) { return func(t tree) { t[name] = []byte(s) } }
		add(name+" ahead", line("0\n1\n"+topic+" 0 9000000\n"))
		add(name+" garbled", line("0\n2\n"+topic+" 0 0\nelse\n"))
		add(name+" cut", line("0\n2\n"+topic+" 0 0\n"))
		add(name+" of zeros", line("\x00\x00\x00\x00"))
		add(name+" removed", func(t tree) { delete(t, name) })
	}
	return out
}

// rename gives all files of a segment another base offset.
func rename(t tree, from, to string) {
	for name, b := range t {
		if rest, ok := strings.CutPrefix(name, from+"."); ok {
			delete(t, name)
			t[to+"."+rest] = b
		}
	}
}

func TestRepairFilesOfOurs(t *testing.T) {
	good := ownTree()
	for _, c := range some(fileChanges(good, "orders-0", "orders", true)) {
		t.Run(c.name, func(t *testing.T) { repairs(t, good, c) })
	}
}

func TestRepairFilesOfBrokers(t *testing.T) {
	for _, topic := range []string{"transactions", "compacted", "times-unordered", "start-moved"} {
		good := logtree.Broker(t, "clean-4.4.0", "clean", topic+"-0")
		t.Run(topic, func(t *testing.T) {
			for _, c := range some(fileChanges(good, topic+"-0", topic, false)) {
				t.Run(c.name, func(t *testing.T) { repairs(t, good, c) })
			}
		})
	}
}

func TestRepairEndsACompaction(t *testing.T) {
	good := logtree.Broker(t, "clean-4.4.0", "clean", "compacted-0")
	logs := segmentsOf(good, "compacted-0")
	base := func(i int) string { return strings.TrimSuffix(logs[i], ".log") }
	for _, c := range []change{
		{name: "while it was written", do: func(t tree) {
			for _, ext := range []string{".log", ".index", ".timeindex"} {
				t[base(0)+ext+".cleaned"] = t[base(0)+ext][:len(t[base(0)+ext])/2]
			}
		}},
		{name: "before it was moved", do: func(t tree) {
			for _, ext := range []string{".log", ".index", ".timeindex"} {
				t[base(0)+ext+".swap"] = t[base(0)+ext]
			}
			t[base(0)+".log"] = append(slices.Clone(t[base(0)+".log"]), "old"...)
		}},
		{name: "after the old one was removed", do: func(t tree) {
			rename(t, base(0), base(0))
			t[base(0)+".log.swap"] = t[base(0)+".log"]
			delete(t, base(0)+".log")
		}},
		{name: "one of two written", do: func(t tree) {
			t[base(1)+".log.cleaned"] = t[base(1)+".log"][:100]
			t[base(1)+".log.swap"] = t[base(1)+".log"][:200]
			t[base(0)+".log.swap"] = t[base(0)+".log"]
		}},
	} {
		t.Run(c.name, func(t *testing.T) { repairs(t, good, c) })
	}
}
