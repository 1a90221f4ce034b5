package repair

import (
	"fmt"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
)

// Kind is what an action does.
type Kind string

// The kinds of actions, in the order in which those of a partition are done.
const (
	Segment     Kind = "empty-segment"      // make an empty segment, so that no offset is given twice
	SetPoint    Kind = "checkpoint"         // change or remove the line of a checkpoint
	FixPoints   Kind = "rewrite-checkpoint" // write a checkpoint that cannot be read anew, with the lines that can
	SetAside    Kind = "set-aside"          // rename a file so that nobody reads it
	Move        Kind = "move"               // give a log the base offset that its batches call for
	Cut         Kind = "cut"                // take damaged bytes out of a log, and keep them beside it
	Remove      Kind = "remove"             // remove a derived file that has no place
	Rebuild     Kind = "rebuild-indexes"    // of a segment
	SetEpoch    Kind = "batch-epoch"        // write the leader epoch, which no checksum covers, into a batch
	WriteEpochs Kind = "leader-epochs"      // write leader-epoch-checkpoint anew
	WriteID     Kind = "topic-id"           // write partition.metadata anew
	Settle      Kind = "recovered"          // put a log that was not closed in order on stable storage and say so in the recovery point
	NoMarker    Kind = "no-marker"          // leave the marker of a clean shutdown away, so that a broker reads the log
	Leave       Kind = "leave"              // nothing can be done
)

var kindOrder = []Kind{Segment, SetPoint, FixPoints, SetAside, Move, Cut, Remove, SetEpoch, WriteEpochs, WriteID, Rebuild, Settle, NoMarker, Leave}

// Changes reports whether the action changes the directory.
func (k Kind) Changes() bool { return k != Leave }

// Range is a stretch of a file.
type Range struct {
	Pos  storage.Pos  `json:"pos"`
	End  storage.Pos  `json:"end"`
	What inspect.What `json:"what"`
	Why  string       `json:"why"`
}

// Action is one thing to do.
type Action struct {
	Kind   Kind           `json:"action"`
	Path   string         `json:"path"`           // relative to the log directory
	Cuts   []Range        `json:"cuts,omitempty"` // of Cut, ascending
	To     string         `json:"to,omitempty"`   // of Move: the new path; of WriteID: the id; of SetEpoch: the epoch
	Offset storage.Offset `json:"offset"`         // of SetPoint: the new value, -1 to remove the line; of Segment and Settle: the end of the log
	Why    string         `json:"why"`
	What   inspect.What   `json:"what,omitempty"` // of Leave: the finding

	part   *Part
	base   storage.Offset
	pos    storage.Pos
	from   int32 // of SetEpoch: the epoch that is there
	epochs []byte
	moving bool // of Move: the path is that of a log whose move was cut short
}

// String says what the action does.
func (a *Action) String() string {
	var b strings.Builder
	switch a.Kind {
	case Segment:
		fmt.Fprintf(&b, "make the empty segment %s", a.Path)
	case SetPoint:
		if a.Offset < 0 {
			fmt.Fprintf(&b, "remove %s from %s", a.part.TP, a.Path)
		} else {
			fmt.Fprintf(&b, "set %s in %s to %d", a.part.TP, a.Path, a.Offset)
		}
	case FixPoints:
		fmt.Fprintf(&b, "write %s anew with the lines that can be read", a.Path)
	case SetAside:
		fmt.Fprintf(&b, "set %s aside", a.Path)
	case Move:
		fmt.Fprintf(&b, "rename %s to %s", a.Path, a.To)
	case Cut:
		a.cuts(&b)
	case Remove:
		fmt.Fprintf(&b, "remove %s", a.Path)
	case Rebuild:
		fmt.Fprintf(&b, "rebuild the indexes of %s", a.Path)
	case SetEpoch:
		fmt.Fprintf(&b, "set the leader epoch of the batch at byte %d of %s from %d to %s", a.pos, a.Path, a.from, a.To)
	case WriteEpochs:
		fmt.Fprintf(&b, "write %s anew", a.Path)
	case WriteID:
		fmt.Fprintf(&b, "write %s anew with topic id %s", a.Path, a.To)
	case Settle:
		fmt.Fprintf(&b, "put %s on stable storage and note that it is recovered up to offset %d", a.Path, a.Offset)
	case NoMarker:
		b.WriteString("leave the marker of a clean shutdown away")
	case Leave:
		fmt.Fprintf(&b, "leave %s as it is (%s)", a.Path, a.What)
	}
	if a.Why != "" {
		fmt.Fprintf(&b, ": %s", a.Why)
	}
	return b.String()
}

func (a *Action) cuts(b *strings.Builder) {
	n := int64(0)
	for _, c := range a.Cuts {
		n += int64(c.End - c.Pos)
	}
	fmt.Fprintf(b, "take %d bytes out of %s:", n, a.Path)
	const few = 5
	for i, c := range a.Cuts {
		if i == few {
			fmt.Fprintf(b, " and %d more", len(a.Cuts)-few)
			break
		}
		fmt.Fprintf(b, " %d to %d (%s)", c.Pos, c.End, c.What)
	}
}
