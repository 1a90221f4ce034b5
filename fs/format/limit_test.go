package format

import (
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

// TestOwnBatch compares with the codec, at the lengths where a varint grows and between.
func TestOwnBatch(t *testing.T) {
	for _, n := range []int{1, 50, 51, 52, 56, 57, 58, 59, 62, 63, 64, 65, 1000, 8180, 8181, 8182, 8183, 8184, 8190, 8191, 8192, 1048566, 1048567, 1048575, 1048576, 1 << 21} {
		r := storage.Record{Value: make([]byte, n)}
		if got, want := ownBatch(int64(n)), int64(record.SizeOf(&r)); got != want {
			t.Errorf("%d bytes: got %d, want %d", n, got, want)
		}
	}
}
