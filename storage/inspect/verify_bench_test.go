package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// BenchmarkVerify verifies logs of records of 100 bytes in batches of 16 KiB. MB/s counts bytes of log.
func BenchmarkVerify(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
		for _, segments := range []int{1, 4} {
			b.Run(fmt.Sprintf("%v/segments=%d", codec, segments), func(b *testing.B) {
				dir := b.TempDir()
				part := filepath.Join(dir, "p-0")
				if err := os.Mkdir(part, 0o755); err != nil {
					b.Fatal(err)
				}
				next, size := storage.Offset(0), int64(0)
				for range segments {
					name := state.FileName(next, state.ExtLog)
					log := benchLog(b, &next, 128<<20/segments, codec)
					size += int64(len(log))
					if err := os.WriteFile(filepath.Join(part, name), log, 0o644); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(size)
				b.ResetTimer()
				for b.Loop() {
					if _, err := Verify(context.Background(), vfs.OS(), dir, VerifyOptions{}, func(Finding) {}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// benchLog makes a log of about n bytes before compression and moves next behind it.
func benchLog(b *testing.B, next *storage.Offset, n int, codec record.Codec) []byte {
	b.Helper()
	var log []byte
	recs := make([]storage.Record, 150)
	for made := 0; made < n; made += 16 << 10 {
		for i := range recs {
			recs[i] = storage.Record{Offset: *next, Timestamp: int64(*next), Value: fmt.Appendf(nil, "%0100d", *next)}
			*next++
		}
		var err error
		if log, err = record.Encode(log, record.NewHeader(recs, 0), recs, codec); err != nil {
			b.Fatal(err)
		}
	}
	return log
}
