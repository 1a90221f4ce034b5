package segment

import (
	"os"
	"testing"

	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/faultfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// An index that is trimmed while it is read, and written to again before anybody looks how long it is now, is no error.
func TestIndexTrimmedAndWrittenAgain(t *testing.T) {
	f := faultfs.New(memfs.New())
	h, err := vfs.NewFiles(f, 1).Open("/index", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Unpin()
	entries := make([]byte, 8*index.OffsetEntrySize)
	f.Hook(func(op faultfs.Op, _ string) error {
		if op != faultfs.OpFstat {
			return nil
		}
		_, err := h.WriteAt(entries, 0)
		return err
	})
	err = shorter(h, 8, index.OffsetEntrySize, func(n int) error {
		_, err := index.Offsets{R: h, N: n}.Entry(n - 1)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
