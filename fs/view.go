package fs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// openEnd is the end of a view that goes on as the log grows.
const openEnd storage.Offset = -1

// mark says that the first record at or after an offset begins at a byte of a view.
type mark struct {
	offset storage.Offset
	pos    int64
}

// view is the arithmetic of a file that shows the records from <= offset < to in a format. Byte 0 is the beginning of from.
//
// It remembers one mark, the anchor: the latest place whose byte position is known. Sizes are counted from there, so that no sum is needed twice, and
// what retention deletes behind it cannot make the file shrink.
type view struct {
	format format.Format
	from   storage.Offset
	to     storage.Offset // openEnd, or the first offset that is not shown

	mu sync.Mutex // guards what follows; a leaf
	// generation is the latest of the log in which all that the view has told of was still what it was.
	generation uint64
	anchor     mark           // zero: the beginning
	shown      storage.Offset // records below it were read
	told       int64          // the largest size that was told
	whole      bool           // told is the size, for good
}

// end returns the offset at which the view ends in s.
func (v *view) end(s storage.Snapshot) storage.Offset {
	if v.to != openEnd {
		return min(v.to, max(s.End(), v.from))
	}
	return max(s.End(), v.from)
}

// finished reports whether the view has all the records that it will ever have.
func (v *view) finished(s storage.Snapshot) bool {
	return s.Final() || v.to != openEnd && v.to <= s.End()
}

// latest returns the anchor.
func (v *view) latest() mark {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.latestLocked()
}

func (v *view) latestLocked() mark {
	if v.anchor.offset < v.from {
		return mark{offset: v.from}
	}
	return v.anchor
}

// lost reports whether the log was cut below what the view has told of, and where: what it would show from there on is something else.
func (v *view) lost(s storage.Snapshot) (cut storage.Offset, lost bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lostLocked(s)
}

func (v *view) lostLocked(s storage.Snapshot) (cut storage.Offset, lost bool) {
	cut = s.Unchanged(v.generation)
	known := max(v.latestLocked().offset, v.shown)
	if v.whole {
		known = max(known, v.to)
	}
	if cut < known {
		return cut, true
	}
	v.generation = max(v.generation, s.Generation()) // what is told from here on is of s: a cut of before does not matter to it
	return cut, false
}

// show says that the records below o were read, or are ready to be.
func (v *view) show(o storage.Offset) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown = max(v.shown, o)
}

// learn takes what became known: that in s the view ends at byte size. That makes a mark, unless it ends within a batch that is shown whole: counting
// from there would begin at that batch, not behind it.
func (v *view) learn(s storage.Snapshot, size int64) {
	end := v.end(s)
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = v.lostLocked(s)
	v.told = max(v.told, size)
	switch {
	case v.format == format.Batch && end < s.End():
		v.whole = true
	case end > v.latestLocked().offset:
		v.anchor = mark{end, size}
	}
}

// total returns the size of a view that is known to have no other any more.
func (v *view) total() (int64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.told, v.whole
}

// size returns the bytes of the view in s. It may have to read the log.
func (v *view) size(ctx context.Context, s storage.Snapshot) (int64, error) {
	if n, ok := v.total(); ok {
		return n, nil
	}
	a, end := v.latest(), v.end(s)
	if end <= a.offset {
		return a.pos, nil
	}
	n, err := s.Extent(ctx, v.format.Measure(), a.offset, end)
	if err != nil {
		return 0, err
	}
	v.learn(s, a.pos+n)
	return a.pos + n, nil
}

// sizeNow returns the bytes as far as they are known, never less than before. exact is false where there may be more.
func (v *view) sizeNow(s storage.Snapshot) (n int64, exact bool) {
	if n, ok := v.total(); ok {
		return n, true
	}
	a, end := v.latest(), v.end(s)
	n, exact = a.pos, true
	if end > a.offset {
		var more int64
		more, exact = s.ExtentNow(v.format.Measure(), a.offset, end)
		n += more
	}
	if exact {
		v.learn(s, n)
		return n, true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = max(v.told, n)
	return v.told, false
}

// locate finds the record that holds byte pos, starting from whichever known mark is nearest; known is one more of them.
func (v *view) locate(ctx context.Context, s storage.Snapshot, pos int64, known ...mark) (o storage.Offset, skip int64, err error) {
	cut, lost := v.lost(s)
	if lost {
		return v.locateBelow(ctx, s, pos, cut)
	}
	if pos == 0 {
		return v.from, 0, nil
	}
	best := v.latest()
	for _, m := range append(known, mark{offset: v.from}) {
		// What is below the start may be gone, and counting from there impossible.
		if m.offset >= s.Start() && distance(m.pos, pos) < distance(best.pos, pos) {
			best = m
		}
	}
	if best.offset >= v.end(s) && pos >= best.pos { // the end, also where all before it is gone
		return best.offset, 0, nil
	}
	return s.Locate(ctx, v.format.Measure(), best.offset, pos-best.pos)
}

func distance(a, b int64) int64 {
	if a > b {
		return a - b
	}
	return b - a
}

// interrupted reports whether err says no more than that nobody waits for the answer.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}

// locateBelow is locate in a log that was cut: only what lies below the cut can be found, counted from the beginning.
func (v *view) locateBelow(ctx context.Context, s storage.Snapshot, pos int64, cut storage.Offset) (o storage.Offset, skip int64, err error) {
	if o = v.from; pos > 0 && v.from >= s.Start() && v.from < cut {
		if o, skip, err = s.Locate(ctx, v.format.Measure(), v.from, pos); err != nil {
			return 0, 0, err
		}
	}
	if o >= cut || v.from < s.Start() {
		return 0, 0, cutError(cut)
	}
	return o, skip, nil
}

func cutError(cut storage.Offset) error {
	return fmt.Errorf("offset %d and what followed it: %w: the log was cut there", cut, storage.ErrOffsetGone)
}
