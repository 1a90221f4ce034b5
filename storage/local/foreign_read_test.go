package local

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/vfs"
)

// many is how many timestamps are passed over for one that is looked up.
const many = 499

// readAll checks that a snapshot's records, sums and times agree.
func readAll(ctx context.Context, s storage.Snapshot) error {
	m := &storage.Measure{PerRecord: 1, PerValueByte: 1}
	c := s.Records(s.Start())
	defer c.Close()
	var sum int64
	first := map[int64]storage.Offset{} // of some timestamps: the first offset with it or a later one
	top := int64(-1)
	n := 0
	for {
		r, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		sum += m.Of(r)
		if r.Timestamp > top {
			top = r.Timestamp
			if n++; n%many == 1 {
				first[top] = r.Offset
			}
		}
	}
	if n, err := s.Extent(ctx, m, s.Start(), s.End()); err != nil || n != sum {
		return errors.Join(err, errors.New("the sums are not those of the records"))
	}
	for ts, want := range first {
		if o, err := s.FindTime(ctx, ts); err != nil || o != want {
			return errors.Join(err, errors.New("a time leads elsewhere"))
		}
	}
	return nil
}

// TestForeignReadersGoOn reads while the first records are appended: indexes are trimmed and made anew then.
func TestForeignReadersGoOn(t *testing.T) {
	for _, archive := range []string{"clean", "live"} {
		t.Run(archive, func(t *testing.T) {
			fsys := brokerDir(t, archive, "times-unordered-0", "codec-zstd-0", "segments-0")
			e := mustOpen(t, foreignOptions(fsys))
			defer mustClose(t, e)
			var readers sync.WaitGroup
			for _, topic := range []string{"times-unordered", "codec-zstd", "segments"} {
				p := mustPartition(t, e, topic, 0)
				old, err := p.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				start := make(chan struct{})
				for range 2 {
					readers.Go(func() {
						<-start
						for range 3 {
							s, err := p.Snapshot(t.Context())
							if err == nil {
								err = readAll(t.Context(), s)
							}
							if err != nil {
								t.Errorf("%s: %v", topic, err)
							}
						}
					})
				}
				close(start)
				for range 10 {
					if _, err := p.Append(t.Context(), []storage.Record{{Timestamp: 4e12, Value: []byte("x")}}, 100); err != nil {
						t.Error(err)
					}
				}
				readers.Wait()
				if err := readAll(t.Context(), old); err != nil {
					t.Errorf("%s: a snapshot from before: %v", topic, err)
				}
			}
		})
	}
}

// The time of a topic is the newest of those of its directories, as they were found: it does not move under who reads the tree.
func TestTimeOfForeignTopic(t *testing.T) {
	fsys := brokerDir(t, "clean", "codec-none-0", "segments-0")
	now := time.Unix(1_700_000_000, 0)
	fsys.SetClock(func() int64 { return now.UnixNano() })
	create := func(name string) {
		t.Helper()
		if err := vfs.WriteFile(fsys, name, nil, 0o644, nil); err != nil {
			t.Fatal(err)
		}
	}
	create("/data/codec-none-0/x")
	if err := fsys.Mkdir("/data/codec-none-1", 0o755); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	create("/data/codec-none-1/x")
	want := now
	o := testOptions(fsys)
	o.ReadOnly = true
	e := mustOpen(t, o)
	defer mustClose(t, e)
	check := func(when string) {
		t.Helper()
		if info, err := e.Topic(t.Context(), "codec-none"); err != nil || !info.Modified.Equal(want) || !info.Created.IsZero() {
			t.Errorf("%s: got %v, %v, want %v", when, info.Modified, err, want)
		}
	}
	check("at first")
	now = now.Add(time.Hour)
	create("/data/codec-none-0/y")
	if err := fsys.Mkdir("/data/other-0", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Topic(t.Context(), "other"); err != nil {
		t.Errorf("it was not listed anew: %v", err)
	}
	check("after another look")
}
