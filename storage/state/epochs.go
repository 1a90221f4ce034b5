package state

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/logmount/logmount/storage"
)

// EpochEntry says that the batches from Start on, up to the next entry's, carry a leader epoch.
type EpochEntry struct {
	Epoch int32
	Start storage.Offset
}

// Epochs is the content of a leader-epoch-checkpoint: entries with strictly ascending epochs and starts. Its methods never change a slice; they return
// the same one, or a new one.
type Epochs []EpochEntry

// ParseEpochs reads a whole leader-epoch-checkpoint. An empty one has no entries.
func ParseEpochs(b []byte) (Epochs, error) {
	const what = "leader epoch checkpoint"
	entries, err := framed(what, b)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	out := make(Epochs, 0, len(entries))
	for i, line := range entries {
		f := fields(line)
		if len(f) != 2 {
			return nil, corruptLine(what, i+2, "%s is not epoch and offset", quote(line))
		}
		epoch, err := strconv.ParseInt(f[0], 10, 32)
		if err != nil || epoch < 0 {
			return nil, corruptLine(what, i+2, "%s is not an epoch", quote(f[0]))
		}
		start, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || start < 0 {
			return nil, corruptLine(what, i+2, "%s is not an offset", quote(f[1]))
		}
		e := EpochEntry{Epoch: int32(epoch), Start: storage.Offset(start)}
		if last, ok := out.Last(); ok && (e.Epoch <= last.Epoch || e.Start <= last.Start) {
			return nil, corruptLine(what, i+2, "epoch %d at %d is not behind epoch %d at %d", e.Epoch, e.Start, last.Epoch, last.Start)
		}
		out = append(out, e)
	}
	return out, nil
}

// Format returns the bytes of the file.
func (e Epochs) Format() []byte {
	b := appendFrame(nil, len(e))
	for _, x := range e {
		b = fmt.Appendf(b, "%d %d\n", x.Epoch, x.Start)
	}
	return b
}

// Last returns the newest entry.
func (e Epochs) Last() (EpochEntry, bool) {
	if len(e) == 0 {
		return EpochEntry{}, false
	}
	return e[len(e)-1], true
}

// At returns the entry whose range holds o.
func (e Epochs) At(o storage.Offset) (EpochEntry, bool) {
	for _, x := range slices.Backward(e) {
		if x.Start <= o {
			return x, true
		}
	}
	return EpochEntry{}, false
}

// Assign notes that a batch with this epoch and base offset is in the log. changed is false where the entries say so already, and for an epoch or offset
// below 0. Entries with an epoch or a start at or above the new one's are dropped.
func (e Epochs) Assign(epoch int32, start storage.Offset) (_ Epochs, changed bool) {
	if epoch < 0 || start < 0 {
		return e, false
	}
	if last, ok := e.Last(); ok && last.Epoch == epoch && start >= last.Start {
		return e, false
	}
	n := len(e)
	for n > 0 && (e[n-1].Epoch >= epoch || e[n-1].Start >= start) {
		n--
	}
	return append(slices.Clone(e[:n]), EpochEntry{Epoch: epoch, Start: start}), true
}

// Raise is Assign for a batch that is met on the way through a log: only an epoch above the last is noted.
func (e Epochs) Raise(epoch int32, start storage.Offset) (_ Epochs, changed bool) {
	if last, ok := e.Last(); ok && epoch <= last.Epoch {
		return e, false
	}
	return e.Assign(epoch, start)
}

// TruncateFrom drops the entries of a log that was cut so that it ends at end.
func (e Epochs) TruncateFrom(end storage.Offset) (_ Epochs, changed bool) {
	n := len(e)
	for n > 0 && e[n-1].Start >= end {
		n--
	}
	return e[:n:n], n < len(e)
}

// TruncateBefore drops what lies wholly below the log's new start; the entry whose range holds the start begins there.
func (e Epochs) TruncateBefore(start storage.Offset) (_ Epochs, changed bool) {
	n := 0
	for n < len(e) && e[n].Start <= start {
		n++
	}
	if n == 0 || n == 1 && e[0].Start == start {
		return e, false
	}
	out := slices.Clone(e[n-1:])
	out[0].Start = start
	return out, true
}
