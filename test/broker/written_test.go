package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// codecs are those of a producer.
var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// TestDumpLogFindsNothingWrong lets Kafka's own tool look at what logmount wrote: lines, JSON, and batches of each codec as a producer compressed them.
func TestDumpLogFindsNothingWrong(t *testing.T) {
	for _, version := range each(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := Find(t, version)
			n := k.New(t, Options{})
			n.Start(t)
			k.Run(t, "Load", "fill", n.Addr, "700")
			n.Stop(t)
			src := mounted(t, n.Data)

			own := filepath.Join(Dir(t), "own")
			does(t, "topics", "create", own, "copies", "--partitions", fmt.Sprint(len(codecs)), "--config", "segment.bytes=262144")
			does(t, "topics", "create", own, "lines", "--config", "segment.bytes=65536", "--config", "index.interval.bytes=512")
			does(t, "topics", "create", own, "objects", "--config", "segment.bytes=65536")
			mnt := mounted(t, own)
			for p, c := range codecs {
				sh(t, `cat "$src" > "$mnt/copies/$p/tail.batch"; cat "$src" > "$mnt/copies/$p/tail.batch"`,
					"src="+filepath.Join(src, "fill-"+c, "0/tail.batch"), "mnt="+mnt, fmt.Sprintf("p=%d", p))
			}
			sh(t, `
			seq -f 'line %g of many' 1 20000 > "$mnt/lines/0/tail"
			for i in 1 2 3 4 5; do echo "alone $i" >> "$mnt/lines/0/tail"; done
			printf '\n\n' > "$mnt/lines/0/tail"
			cat "$src/fill-none/0/tail.json" > "$mnt/objects/0/tail.json"`, "src="+src, "mnt="+mnt)
			check := func(mnt string) {
				t.Helper()
				want := map[string][]row{}
				for p := range codecs {
					want[fmt.Sprintf("copies-%d", p)] = rows(t, filepath.Join(mnt, "copies", fmt.Sprint(p), "tail.json"))
				}
				want["lines-0"] = rows(t, filepath.Join(mnt, "lines/0/tail.json"))
				want["objects-0"] = rows(t, filepath.Join(mnt, "objects/0/tail.json"))
				unmount(t, mnt)
				var dirs []string
				for dir := range want {
					dirs = append(dirs, filepath.Join(own, dir))
				}
				got, bad := judge(t, k, dirs...)
				calm(t, bad)
				for dir, w := range want {
					if len(w) < 700 {
						t.Errorf("%s: only %d records", dir, len(w))
					}
					same(t, dir, got[filepath.Join(own, dir)], w)
				}
			}
			check(mnt)

			// A log that is opened again goes on in the segment, and in the index, that it has.
			mnt = mounted(t, own)
			sh(t, `
			seq -f 'more %g of many' 1 3000 > "$mnt/lines/0/tail"
			cat "$src/fill-zstd/0/tail.json" > "$mnt/objects/0/tail.json"
			cat "$src/fill-lz4/0/tail.batch" > "$mnt/copies/1/tail.batch"`, "src="+src, "mnt="+mnt)
			check(mnt)
		})
	}
}

// TestDumpLogFindsDamage makes sure that the judge above speaks up.
func TestDumpLogFindsDamage(t *testing.T) {
	k := newest(t)
	own := filepath.Join(Dir(t), "own")
	does(t, "topics", "create", own, "lines")
	mnt := mounted(t, own)
	sh(t, `seq 1 20000 > "$mnt/lines/0/tail"`, "mnt="+mnt)
	unmount(t, mnt)
	first := filepath.Join(own, "lines-0", "00000000000000000000")
	tests := []struct {
		name, file string
		at         int64
	}{
		{"a bit of a batch", first + ".log", 500},
		{"an offset in the index", first + ".index", 11},
		{"a timestamp in the time index", first + ".timeindex", 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flip(t, tt.file, tt.at)
			defer flip(t, tt.file, tt.at)
			if _, bad := judge(t, k, filepath.Dir(first)); len(bad) == 0 {
				t.Error("kafka-dump-log has nothing to say")
			}
		})
	}
}

// flip turns one bit of a file round.
func flip(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
