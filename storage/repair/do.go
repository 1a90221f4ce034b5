package repair

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// run is one repair that changes the directory.
type run struct {
	*session
	j        *journal
	l        *Layout
	touched  bool   // something was changed
	noMarker string // why the marker stays away
}

// do does the actions of a round, in their order.
func (r *run) do(ctx context.Context, actions []Action, emit func(Action)) error {
	if err := r.held(); err != nil {
		return err
	}
	if err := r.announceMarker(); err != nil {
		return err
	}
	for i := 0; i < len(actions); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := i + 1
		for n < len(actions) && groups(actions[i].Kind) && actions[n].Kind == actions[i].Kind && actions[n].part == actions[i].part {
			n++
		}
		for _, a := range actions[i:n] {
			emit(a)
		}
		if err := r.one(ctx, actions[i:n]); err != nil {
			return fmt.Errorf("%s: %w", actions[i].Path, err)
		}
		i = n
	}
	return nil
}

// groups reports whether actions of a kind are done together.
func groups(k Kind) bool { return k == Move || k == Rebuild }

func (r *run) one(ctx context.Context, group []Action) error {
	a := &group[0]
	switch a.Kind {
	case Segment:
		return r.emptySegment(a)
	case SetPoint:
		return r.setPoint(a)
	case FixPoints:
		return r.fixPoints(a)
	case SetAside:
		return r.setAside(a)
	case Move:
		return r.move(group)
	case Cut:
		return r.cut(a)
	case Remove:
		return r.removeDerived(a)
	case Rebuild:
		return r.rebuild(ctx, group)
	case SetEpoch:
		return r.setEpoch(a)
	case WriteEpochs:
		return r.replace(a, a.epochs)
	case WriteID:
		return r.replace(a, state.FormatPartitionMetadata(a.To))
	case Settle:
		return r.settle(a)
	case NoMarker:
		r.noMarker = a.Path + ": " + a.Why
	case Leave:
	}
	return nil
}

// announceMarker takes the marker away, after the journal has it.
func (r *run) announceMarker() error {
	if r.marker != nil {
		return nil
	}
	b, err := vfs.ReadFile(r.fs, r.path(state.CleanMarkerFile), markerLimit)
	if err == nil {
		e := Entry{Action: "clean-marker", Path: state.CleanMarkerFile, Length: int64(len(b)), Why: "put back when the directory is repaired"}
		e.setOld(b)
		if err := r.j.add(e); err != nil {
			return err
		}
	}
	return r.takeMarker()
}

// emptySegment makes the log of a new segment. Its indexes follow.
func (r *run) emptySegment(a *Action) error {
	if there, err := vfs.Exists(r.fs, r.path(a.Path)); err != nil || there {
		return err
	}
	if err := r.j.add(Entry{Action: Segment, Path: a.Path, Why: a.Why}); err != nil {
		return err
	}
	r.touched = true
	f, err := r.create(a.Path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return r.syncDir(a.part.Dir)
}

// setPoint changes one line of a checkpoint.
func (r *run) setPoint(a *Action) error {
	raw, err := r.readOr(a.Path, nil)
	if err != nil {
		return err
	}
	if _, err := state.ParseCheckpoint(raw); err != nil {
		return err
	}
	b := editPoints(raw, a.part.TP, a.Offset)
	if string(b) == string(raw) {
		return nil
	}
	old, _ := r.l.point(a.Path, a.part.TP)
	e := Entry{Action: SetPoint, Path: a.Path, Why: a.Why, Old: fmt.Sprintf("%s %d %d", a.part.TP.Topic, a.part.TP.Partition, old)}
	if a.Offset >= 0 {
		e.New = fmt.Sprintf("%s %d %d", a.part.TP.Topic, a.part.TP.Partition, a.Offset)
	}
	if err := r.j.add(e); err != nil {
		return err
	}
	r.touched = true
	return r.write(a.Path, b)
}

// fixPoints writes a checkpoint that cannot be parsed with the lines that can be.
func (r *run) fixPoints(a *Action) error {
	raw, err := r.readOr(a.Path, nil)
	if err != nil {
		return err
	}
	return r.replaceWith(FixPoints, a.Path, a.Why, raw, salvagePoints(raw))
}

// replace writes a small file anew.
func (r *run) replace(a *Action, b []byte) error {
	raw, err := r.readOr(a.Path, nil)
	if err != nil {
		return err
	}
	return r.replaceWith(a.Kind, a.Path, a.Why, raw, b)
}

// maxOld is how much of a file is kept in the journal itself.
const maxOld = 64 << 10

func (r *run) replaceWith(k Kind, name, why string, old, b []byte) error {
	e := Entry{Action: k, Path: name, Length: int64(len(old)), Why: why}
	if len(old) <= maxOld {
		e.setOld(old)
	} else {
		kept, err := r.freeName(name)
		if err != nil {
			return err
		}
		if err := r.write(kept, old); err != nil {
			return err
		}
		e.Kept = kept
	}
	if err := r.j.add(e); err != nil {
		return err
	}
	r.touched = true
	return r.write(name, b)
}

// freeName returns the name under which a file is set aside.
func (r *run) freeName(name string) (string, error) {
	return state.TornName(name, func(to string) (bool, error) { return vfs.Exists(r.fs, r.path(to)) })
}

// setEpoch writes a leader epoch into a batch.
func (r *run) setEpoch(a *Action) error {
	to, err := strconv.ParseInt(a.To, 10, 32)
	if err != nil {
		return fmt.Errorf("%w: epoch %q", storage.ErrInvalidName, a.To)
	}
	e := Entry{Action: SetEpoch, Path: a.Path, Pos: int64(a.pos) + epochAt, Length: 4, Why: a.Why, Old: strconv.Itoa(int(a.from)), New: a.To}
	if err := r.j.add(e); err != nil {
		return err
	}
	f, err := r.fs.OpenFile(r.path(a.Path), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	r.touched = true
	_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, uint32(to)), int64(a.pos)+epochAt)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// epochAt is the place of the leader epoch in a batch.
const epochAt = 12

// settle puts a log on stable storage and raises its recovery point.
func (r *run) settle(a *Action) error {
	p := a.part
	for _, g := range p.Segments {
		for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex, state.ExtTxnIndex} {
			if g.Ext[ext] || ext == state.ExtLog {
				if err := r.sync(p.path(g.Base, ext)); err != nil {
					return err
				}
			}
		}
	}
	if err := r.syncDir(p.Dir); err != nil {
		return err
	}
	return r.setPoint(&Action{Kind: SetPoint, Path: state.RecoveryPointFile, Offset: a.Offset, Why: a.Why, part: p})
}
