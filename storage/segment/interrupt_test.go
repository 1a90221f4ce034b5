package segment

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
)

// unindexed returns views of a segment without index files, each as a process sees it that has just started, and the segment's last offset.
func unindexed(t *testing.T) (fresh func() *View, last storage.Offset) {
	t.Helper()
	const batches = 700 // more than are walked between two looks at the context
	var log []byte
	for i := range batches {
		recs := []storage.Record{{Offset: storage.Offset(100 + i), Timestamp: int64(i), Value: []byte(strconv.Itoa(i))}}
		var err error
		if log, err = record.Encode(log, record.NewHeader(recs, int32(i)), recs, record.None); err != nil {
			t.Fatal(err)
		}
	}
	fsys := writeLog(t, log)
	files := vfs.NewFiles(fsys, 8)
	t.Cleanup(func() { _ = files.Close() })
	env := &Env{FS: fsys, Files: files, Now: func() time.Time { return time.UnixMilli(0) }, Log: slog.New(slog.DiscardHandler)}
	return func() *View {
		s := New(env, "/d/t-0", 100, Settings{IndexInterval: 1024, MaxIndexBytes: 10 << 20})
		return &View{Segment: s, Size: storage.Pos(len(log)), Next: 100 + batches}
	}, 100 + batches - 1
}

// waits are the questions that may wait for a missing index.
func waits(last storage.Offset) map[string]func(context.Context, *View) error {
	lines, whole := &storage.Measure{Name: "lines", PerRecord: 1, PerValueByte: 1}, &storage.Measure{Name: "batches", Batches: true}
	hidden := Hide([]index.TxnEntry{{ProducerID: 1, First: last, Last: last}})
	return map[string]func(context.Context, *View) error{
		"Open": func(ctx context.Context, v *View) error {
			var r Reader
			defer r.Close()
			return r.Open(ctx, v, last)
		},
		"FindTime":     func(ctx context.Context, v *View) error { _, err := v.FindTime(ctx, 650, 100); return err },
		"FindNext":     func(ctx context.Context, v *View) error { _, err := v.FindNext(ctx, last); return err },
		"FindLast":     func(ctx context.Context, v *View) error { _, _, err := v.FindLast(ctx, 2, 100); return err },
		"Extent":       func(ctx context.Context, v *View) error { _, err := v.Extent(ctx, lines, last, last+1); return err },
		"Extent batch": func(ctx context.Context, v *View) error { _, err := v.Extent(ctx, whole, last, last+1); return err },
		"Before batch": func(ctx context.Context, v *View) error { _, err := v.Before(ctx, whole, last); return err },
		"Locate batch": func(ctx context.Context, v *View) error {
			_, _, err := v.Locate(ctx, whole, int64(v.Size)-1)
			return err
		},
		"Trail":        func(ctx context.Context, v *View) error { _, err := v.Trail(ctx, 2); return err },
		"StartOf":      func(ctx context.Context, v *View) error { _, err := v.StartOf(ctx, last); return err },
		"Committed":    func(ctx context.Context, v *View) error { _, err := v.Committed(ctx, hidden, last); return err },
		"Tail":         func(ctx context.Context, v *View) error { _, err := v.Segment.Tail(ctx, v.Size); return err },
		"EachProduced": func(ctx context.Context, v *View) error { return v.EachProduced(ctx, last, nil) },
	}
}

func TestWaitingForAMissingIndexCanBeInterrupted(t *testing.T) {
	fresh, last := unindexed(t)
	cause := errors.New("interrupted")
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	for name, ask := range waits(last) {
		t.Run(name, func(t *testing.T) {
			v := fresh()
			if err := ask(ended, v); !errors.Is(err, cause) {
				t.Errorf("its own rebuild: got %v, want %v", err, cause)
			}
			if v.indexes.info != nil {
				t.Error("half a rebuild was kept")
			}
			if err := v.enter(context.Background(), &v.indexes.gate); err != nil {
				t.Fatal(err)
			}
			if err := ask(ended, v); !errors.Is(err, cause) {
				t.Errorf("another's rebuild: got %v, want %v", err, cause)
			}
			v.leave(&v.indexes.gate)
			if err := ask(context.Background(), v); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if v.indexes.info == nil || v.indexes.info.offsets == 0 {
				t.Error("the next call did not build the index")
			}
		})
	}
	t.Run("Epochs", func(t *testing.T) {
		v := fresh()
		if _, err := v.Epochs(ended); !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		if e, err := v.Epochs(context.Background()); err != nil || len(e) != int(last)-100+1 {
			t.Errorf("the next call: %d epochs, %v", len(e), err)
		}
	})
}

func TestAReaderInterruptedWhileItsSegmentGrowsMissesNothing(t *testing.T) {
	fresh, last := unindexed(t)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	v := fresh()
	empty := View{Segment: v.Segment, Next: last}
	var r Reader
	defer r.Close()
	if err := r.Open(ended, &empty, last); err != nil {
		t.Fatal(err)
	}
	if err := r.Extend(ended, v); !errors.Is(err, context.Canceled) {
		t.Fatalf("extend: got %v, want %v", err, context.Canceled)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("next: got %v, want %v", err, io.EOF)
	}
	if r.View().Size != 0 {
		t.Error("the reader says that it has read what it could not open")
	}
	if err := r.Extend(context.Background(), v); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.Next(); err != nil || rec.Offset != last {
		t.Errorf("next: got %v, %v, want offset %d", rec, err, last)
	}
}
