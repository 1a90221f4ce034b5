package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/vfs"
)

// VerifyOptions says what to verify and how.
type VerifyOptions struct {
	Select   []string                      // topics, or partitions spelt topic-partition; none is all of them
	Adopt    bool                          // also refuse what would hurt a broker that adopts the directory
	Jobs     int                           // segments that are read at once; 0 is the number of processors
	Config   func(map[string]string) error // says whether a mount takes a topic's settings; may be nil
	Progress func(done, total int64)       // told of bytes of log; may be nil; calls do not overlap
}

// Summary is what Verify adds up to.
type Summary struct {
	Partitions int   `json:"partitions"`
	Segments   int   `json:"segments"`
	Batches    int64 `json:"batches"`
	Records    int64 `json:"records"` // control records included
	Bytes      int64 `json:"bytes"`   // of log
	Damage     int   `json:"damage"`
	Notices    int   `json:"notices"`
	// CleanShutdown says that the marker of a clean shutdown is there, and nothing of damage.
	CleanShutdown bool `json:"clean_shutdown"`
}

// Verify checks all that can be told of a log directory without a second copy of it: every batch and record, what lies beside the logs against them, the
// small files and the names. It emits findings in a stable order, from one goroutine. It writes nothing, and looks at a directory that somebody else writes
// to as it was when each file was opened.
//
// The error is about what could not be looked at; the rest is verified all the same. A name in Select that nothing has is storage.ErrTopicNotFound.
func Verify(ctx context.Context, fsys vfs.FS, dir string, opt VerifyOptions, emit func(Finding)) (Summary, error) {
	v := &verifier{fsys: fsys, dir: dir, opt: opt, out: emit}
	if v.opt.Jobs <= 0 {
		v.opt.Jobs = runtime.NumCPU()
	}
	if err := v.readTop(); err != nil {
		return v.sum, err
	}
	parts, err := v.selected()
	if err != nil {
		return v.sum, err
	}
	v.checkTop()
	v.total(parts)
	v.run(ctx, parts)
	if ctx.Err() != nil {
		return v.sum, context.Cause(ctx)
	}
	return v.sum, errors.Join(v.errs...)
}

// verifier is one call of Verify. What has no lock is used by the collector alone once workers run.
type verifier struct {
	fsys vfs.FS
	dir  string
	opt  VerifyOptions
	out  func(Finding)
	sum  Summary
	errs []error
	top  topDir
	ids  map[string]string // topic ids seen so far

	mu    sync.Mutex // makes calls of Progress take turns
	done  atomic.Int64
	bytes int64 // of all logs; 0 where nobody wants to know
}

func (v *verifier) emit(f Finding) {
	if f.Severity == Damage {
		v.sum.Damage++
	} else {
		v.sum.Notices++
	}
	v.out(f)
}

func (v *verifier) emitAll(list []Finding) {
	for _, f := range list {
		v.emit(f)
	}
}

// maxErrors bounds what is remembered of files that could not be read.
const maxErrors = 20

// unreadable makes of an error a finding, where the file was removed meanwhile or the disk is bad, or else an error that keeps it from being verified.
func unreadable(path string, err error) (Finding, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return about(path, Notice, Vanished, "", "removed while the directory was looked at"), nil
	case errors.Is(err, syscall.EIO):
		return about(path, Damage, Unreadable, "copy the directory to a sound disk", "%v", err), nil
	}
	return Finding{}, fmt.Errorf("%s: %w", path, err)
}

// segTask is a segment to be checked.
type segTask struct {
	p   *partPlan
	i   int
	out chan *segReport
}

// aheadPerJob is how many segments may be finished ahead of the one whose result is waited for.
const aheadPerJob = 8

// run verifies partitions: one goroutine plans, several check segments, and the caller's collects in order.
func (v *verifier) run(ctx context.Context, parts []storage.TopicPartition) {
	plans := make(chan *partPlan, v.opt.Jobs)
	work := make(chan segTask)
	room := make(chan struct{}, v.opt.Jobs*aheadPerJob)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(plans)
		defer close(work)
		for _, tp := range parts {
			p := v.plan(tp)
			select {
			case plans <- p:
			case <-ctx.Done():
				return
			}
			for i, out := range p.results {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				select {
				case work <- segTask{p: p, i: i, out: out}:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range v.opt.Jobs {
		wg.Go(func() {
			reader := &record.Reader{}
			for t := range work {
				t.out <- v.checkSegment(ctx, t.p, t.i, reader)
			}
		})
	}
	v.collect(ctx, plans, room)
	wg.Wait()
}

// collect takes the results in the order of the plans.
func (v *verifier) collect(ctx context.Context, plans <-chan *partPlan, room <-chan struct{}) {
	for p := range plans {
		c := v.newCollector(p)
		for _, out := range p.results {
			select {
			case r := <-out:
				<-room
				c.segment(r)
			case <-ctx.Done():
				return
			}
		}
		c.finish()
	}
}

// total adds up what there is to read, for Progress.
func (v *verifier) total(parts []storage.TopicPartition) {
	if v.opt.Progress == nil {
		return
	}
	for _, tp := range parts {
		for _, s := range v.listLogs(tp.String()) {
			v.bytes += s
		}
	}
	v.progress(0)
}

func (v *verifier) progress(n int64) {
	if v.opt.Progress == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	done := v.done.Add(n)
	v.opt.Progress(done, max(done, v.bytes))
}
