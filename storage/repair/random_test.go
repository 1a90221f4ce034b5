package repair

import (
	"fmt"
	"maps"
	"math/rand"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/test/logtree"
)

// randomDamage does one thing to a tree.
func randomDamage(r *rand.Rand, t tree) string {
	var names []string
	for name := range t {
		if name != state.TopicsFile && name != ".kafka_cleanshutdown" && name != "meta.properties" && !strings.HasSuffix(name, ".metadata") && name != "bootstrap.checkpoint" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var logs []string
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, name)
		}
	}
	name := names[r.Intn(len(names))]
	if r.Intn(3) > 0 && len(logs) > 0 {
		name = logs[r.Intn(len(logs))]
	}
	b := slices.Clone(t[name])
	n := len(b)
	at := func() int { return r.Intn(n + 1) }
	switch k := r.Intn(10); {
	case n == 0 || k == 0:
		delete(t, name)
		return "remove " + name
	case k == 1:
		i := r.Intn(n)
		b[i] ^= 1 << r.Intn(8)
		t[name] = b
		return fmt.Sprintf("flip %s at %d", name, i)
	case k == 2:
		i := at()
		t[name] = b[:i]
		return fmt.Sprintf("cut %s at %d", name, i)
	case k == 3:
		i, j := at(), at()
		i, j = min(i, j), max(i, j)
		clear(b[i:j])
		t[name] = b
		return fmt.Sprintf("zero %s %d to %d", name, i, j)
	case k == 4:
		i, j := at(), at()
		i, j = min(i, j), max(i, j)
		t[name] = slices.Delete(b, i, j)
		return fmt.Sprintf("delete from %s %d to %d", name, i, j)
	case k == 5:
		i, j, to := at(), at(), at()
		i, j = min(i, j), max(i, j)
		part := slices.Clone(b[i:j])
		t[name] = slices.Insert(b, to, part...)
		return fmt.Sprintf("insert into %s at %d its bytes %d to %d", name, to, i, j)
	case k == 6:
		i := at()
		junk := make([]byte, r.Intn(200))
		_, _ = r.Read(junk)
		t[name] = slices.Insert(b, i, junk...)
		return fmt.Sprintf("insert %d bytes into %s at %d", len(junk), name, i)
	case k == 7:
		other := names[r.Intn(len(names))]
		if path.Ext(other) != path.Ext(name) {
			other = name
		}
		t[name], t[other] = t[other], t[name]
		return fmt.Sprintf("swap %s and %s", name, other)
	case k == 8:
		to := fmt.Sprintf("%s/%020d%s", path.Dir(name), r.Intn(120), path.Ext(name))
		if !strings.Contains(name, "/0000") {
			return "nothing"
		}
		t[to] = b
		return fmt.Sprintf("copy %s to %s", name, to)
	default:
		to := fmt.Sprintf("%s/%020d%s", path.Dir(name), r.Intn(120), path.Ext(name))
		if !strings.Contains(name, "/0000") {
			return "nothing"
		}
		delete(t, name)
		t[to] = b
		return fmt.Sprintf("rename %s to %s", name, to)
	}
}

func TestRandomDamage(t *testing.T) {
	good := smallTree()
	n := 150
	if sampled() {
		n = 30
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(int64(seed)))
			repairs(t, good, change{name: "random", do: func(d tree) {
				for range 1 + r.Intn(4) {
					t.Log(randomDamage(r, d))
				}
			}, left: []inspect.What{}})
		})
	}
}

func TestRandomDamageOfBrokers(t *testing.T) {
	good := logtree.Broker(t, "clean-4.4.0", "clean", "transactions-0", "compacted-0")
	n := 100
	if sampled() {
		n = 20
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewSource(int64(seed)))
			repairs(t, maps.Clone(good), change{name: "random", do: func(d tree) {
				for range 1 + r.Intn(4) {
					t.Log(randomDamage(r, d))
				}
			}})
		})
	}
}
