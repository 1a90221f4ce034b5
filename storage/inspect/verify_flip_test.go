package inspect

import (
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// harmless are files of which a changed bit may mean something just as good.
var harmless = []string{".kafka_cleanshutdown", ".logmount-topics.json", "meta.properties", "-checkpoint", "partition.metadata"}

// usable are notices that an index or what is derived is still of use.
var usable = []What{IndexInexact, TimeIndexInexact, SizeIndexStale}

// Whatever bit of a log directory is changed, something is found.
func TestVerifyFindsEveryFlippedBit(t *testing.T) {
	seed := int64(1)
	for name, base := range map[string]tree{"own": ownTree(), "broker": brokerTree(t, "transactions-0", "codec-lz4-0", "segments-0")} {
		r := rand.New(rand.NewSource(seed))
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(base)), func(n string) bool {
			return len(base[n]) == 0 || slices.ContainsFunc(harmless, func(h string) bool { return strings.HasSuffix(n, h) })
		})
		for range 150 {
			file := names[r.Intn(len(names))]
			at, bit := r.Intn(len(base[file])), r.Intn(8)
			if strings.HasSuffix(file, ".log") && r.Intn(2) == 0 { // half of them into a header
				list := batchesOf(t, base[file])
				at = int(list[r.Intn(len(list))].Pos) + r.Intn(61)
			}
			d := cloneTree(base)
			d.Edit(file, func(b []byte) []byte { b[at] ^= 1 << bit; return b })
			found, sum := verify(t, d.Disk(t), VerifyOptions{})
			switch {
			case len(found) == 0:
				t.Errorf("%s, seed %d: bit %d of byte %d of %s: nothing found", name, seed, bit, at, file)
			case sum.Damage == 0 && !slices.ContainsFunc(found, func(f Finding) bool { return slices.Contains(usable, f.What) }):
				t.Errorf("%s, seed %d: bit %d of byte %d of %s: %v", name, seed, bit, at, file, kinds(found))
			}
		}
	}
}
