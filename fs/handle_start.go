package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/logmount/logmount/storage"
)

// startHandle takes the offset below which records are deleted. A line is checked when it is written and takes effect when a descriptor is closed:
// programs look at the errors of both. What has no newline yet takes effect at the last close.
type startHandle struct {
	gate
	t     *Tree
	p     *part
	close closing

	unfinished atomic.Bool // the line takes effect at the last close

	// guarded by gate
	line []byte
	done bool
}

// longestOffset is how long a line can be and still be an offset; leading and trailing blanks are not.
const longestOffset = 20

func (t *Tree) newStartHandle(ctx context.Context, p *part) (*startHandle, error) {
	if err := t.mayChange(); err != nil {
		return nil, err
	}
	if err := p.Writable(ctx); err != nil {
		return nil, err
	}
	t.writing.Add(1)
	h := &startHandle{gate: newGate(), t: t, p: p}
	h.close.key = p.tp
	return h, nil
}

func (h *startHandle) write(ctx context.Context, data []byte, _ int64, _ uint32) error {
	if err := h.lock(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if err := h.t.running(); err != nil || len(data) == 0 {
		return err
	}
	line := append(append([]byte(nil), h.line...), data...)
	if h.done || len(line) > longestOffset || bytes.IndexByte(line, '\n') >= 0 && bytes.IndexByte(line, '\n') < len(line)-1 {
		return fmt.Errorf("%w: start takes one offset", storage.ErrInvalidConfig)
	}
	if line[len(line)-1] == '\n' {
		if err := h.check(ctx, line); err != nil {
			return err
		}
	}
	h.line = line
	h.unfinished.Store(true)
	return nil
}

// check returns the error that the line would give.
func (h *startHandle) check(ctx context.Context, line []byte) error {
	_, err := h.offset(ctx, line)
	return err
}

func (h *startHandle) offset(ctx context.Context, line []byte) (storage.Offset, error) {
	o, err := storage.ParseOffset(string(bytes.TrimSuffix(line, []byte("\n"))))
	if err != nil {
		return 0, fmt.Errorf("%w: start: %w", storage.ErrInvalidConfig, err)
	}
	s, err := h.p.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	if o > s.End() {
		return 0, fmt.Errorf("%w: start %d is above the end %d", storage.ErrInvalidConfig, o, s.End())
	}
	return o, nil
}

func (h *startHandle) flush(ctx context.Context, _ uint32) error {
	h.alive()
	if !h.unfinished.Load() {
		return nil
	}
	if err := h.lock(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if len(h.line) == 0 || h.done {
		return nil
	}
	if h.line[len(h.line)-1] != '\n' {
		h.t.settle.flush(&h.close)
		return h.check(ctx, h.line)
	}
	err := h.apply(context.WithoutCancel(ctx))            // there is no second close(2) to try again with
	if _, told, _ := classify(err); err != nil && !told { // shells do not look at the error of the close
		h.tell(err)
	}
	return err
}

// tell reports that the start was not moved.
func (h *startHandle) tell(err error) {
	h.t.report("/"+h.p.tp.Topic+"/"+number(h.p.tp.Partition)+"/start", "not moved: "+err.Error())
}

// apply moves the start.
func (h *startHandle) apply(ctx context.Context) error {
	o, err := h.offset(ctx, h.line)
	if err != nil {
		return err
	}
	err = h.p.SetStart(ctx, o)
	if errors.Is(err, storage.ErrOutOfRange) {
		return fmt.Errorf("%w: start: %w", storage.ErrInvalidConfig, err)
	}
	if err == nil {
		h.done = true
		h.unfinished.Store(false)
	}
	return err
}

func (h *startHandle) alive() { h.t.settle.alive(&h.close) }

func (h *startHandle) closing() {
	if h.unfinished.Load() {
		h.t.settle.release(&h.close)
	}
}

func (h *startHandle) release() {
	defer h.t.settle.done(&h.close)
	h.t.writing.Add(-1)
	if len(h.line) == 0 || h.done || h.line[len(h.line)-1] == '\n' { // the latter: FLUSH has told why not
		return
	}
	if err := h.apply(context.Background()); err != nil {
		h.tell(err)
	}
}
