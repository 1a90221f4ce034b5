package inspect

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// FuzzVerify takes arbitrary bytes for the files of one partition. Whatever they are, Verify ends without an error, tells stretches that lie inside the
// log and do not overlap, finds the same again, and leaves nothing open.
func FuzzVerify(f *testing.F) {
	own := ownTree()
	segs := segmentsOf(own, dir0)
	last := segs[len(segs)-1]
	f.Add(own[first+".log"], own[first+".index"], own[first+".timeindex"], []byte{}, own[first+".sizeindex"], []byte{}, own[dir0+state.EpochsFile], []byte(nil), true)
	f.Add(own[first+".log"][:5000], own[first+".index"], make([]byte, 120), []byte{}, own[last+".sizeindex"], state.EncodeSnapshot(nil), []byte("0\n"), []byte("0\n1\np 0 3\n"), false)
	broker := brokerTree(f, "transactions-0")
	f.Add(broker[txnDir+"00000000000000000000.log"], broker[txnDir+"00000000000000000000.index"], broker[txnDir+"00000000000000000000.timeindex"], broker[txnIdx], []byte{},
		broker[txnDir+"00000000000000000065.snapshot"], broker[txnDir+state.EpochsFile], []byte{}, true)
	f.Fuzz(func(t *testing.T, log, idx, tidx, txns, sizes, snapshot, epochs, points []byte, clean bool) {
		const base = "p-0/00000000000000000000"
		d := tree{
			base + ".log": log, base + ".index": idx, base + ".timeindex": tidx, base + ".txnindex": txns, base + ".sizeindex": sizes,
			"p-0/00000000000000000003.snapshot": snapshot, "p-0/" + state.EpochsFile: epochs, "p-0/" + state.MetadataFile: snapshot,
			state.LogStartFile: points, state.MetaPropertiesFile: epochs, state.TopicsFile: txns,
		}
		if clean {
			d[state.CleanMarkerFile] = nil
		}
		m := d.Disk(t)
		run := func() (out []string) {
			end := storage.Pos(0)
			_, err := Verify(context.Background(), m, "/data", VerifyOptions{Adopt: !clean, Jobs: 2}, func(f Finding) {
				out = append(out, string(f.What)+f.Path+f.Detail)
				if f.End == 0 {
					return
				}
				if f.Pos < end || f.End <= f.Pos || int64(f.End) > int64(len(log)) {
					t.Errorf("stretch %d to %d behind %d of %d", f.Pos, f.End, end, len(log))
				}
				end = f.End
			})
			if err != nil && !errors.Is(err, storage.ErrNotLogDirectory) {
				t.Fatal(err)
			}
			return out
		}
		a, b := run(), run()
		if strings.Join(a, "\n") != strings.Join(b, "\n") {
			t.Errorf("first %q\nthen %q", a, b)
		}
		if open := m.OpenFiles(); len(open) > 0 {
			t.Errorf("open: %v", open)
		}
	})
}
