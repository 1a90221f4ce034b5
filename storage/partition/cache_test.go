package partition

import (
	"context"
	"testing"

	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// A size index that is taken away, as who tidies up a cache does, or cut short, is made anew.
func TestSizeIndexTakenAway(t *testing.T) {
	for _, damage := range []string{"removed", "cut short"} {
		t.Run(damage, func(t *testing.T) {
			b, d := newBroker(t)
			d.env.CacheDir = "/cache"
			for range 300 {
				b.append(5)
			}
			b.roll()
			b.append(2)
			d.now += 10000
			l := d.open(t)
			if err := l.BuildSizes(context.Background()); err != nil {
				t.Fatal(err)
			}
			name := "/cache/t-0/" + state.FileName(0, state.ExtSizeIndex)
			whole, err := vfs.ReadFile(b.fs, name, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.fs.Remove(name); err != nil {
				t.Fatal(err)
			}
			if damage == "cut short" {
				putFile(t, b.fs, name, whole[:len(whole)-40])
			}
			s := snap(t, l)
			if err := checkSnapshot(s, b.recs); err != nil {
				t.Error(err)
			}
		})
	}
}
