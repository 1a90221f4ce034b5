package inspect

import (
	"io"
	"testing"

	"github.com/logmount/logmount/storage/vfs"
)

func BenchmarkDump(b *testing.B) {
	log, _ := testLog(b, 0, 2000, 4000)
	dir := writeFiles(b, map[string][]byte{"00000000000000000000.log": log})
	for _, records := range []bool{false, true} {
		name := "batches"
		if records {
			name = "records"
		}
		b.Run(name, func(b *testing.B) {
			o := NewDumpOptions()
			o.Records = records
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Dump(b.Context(), vfs.OS(), io.Discard, []string{dir}, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
