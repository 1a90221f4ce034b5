package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
)

// cut takes stretches out of a log. They are copied and journalled first; then the indexes go, then the log is cut, or replaced by a copy without them.
func (r *run) cut(a *Action) error {
	f, err := r.fs.OpenFile(r.path(a.Path), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var list []Entry
	at := storage.Pos(0)
	for _, c := range a.Cuts {
		if c.Pos < at || c.End <= c.Pos || int64(c.End) > st.Size {
			return fmt.Errorf("%w: the log has changed since it was verified", storage.ErrUnavailable)
		}
		at = c.End
		hash, zeros, err := sum(f, int64(c.Pos), int64(c.End))
		if err != nil {
			return err
		}
		e := Entry{Action: Cut, Path: a.Path, Pos: int64(c.Pos), Length: int64(c.End - c.Pos), SHA256: hash, What: string(c.What), Why: c.Why}
		if !zeros || int64(c.End) < st.Size {
			if e.Kept, err = r.quarantine(a.Path, f, c, hash); err != nil {
				return err
			}
		}
		list = append(list, e)
	}
	if err := r.syncDir(a.part.Dir); err != nil {
		return err
	}
	if err := r.j.add(list...); err != nil {
		return err
	}
	r.touched = true
	if err := r.dropDerived(a.part, a.base); err != nil {
		return err
	}
	if keep, ok := tail(a.Cuts, st.Size); ok {
		return r.truncate(a.Path, keep)
	}
	return r.rewrite(a, f, st.Size)
}

// tail reports whether cuts are all that lies behind a position.
func tail(cuts []Range, size int64) (storage.Pos, bool) {
	for i := 1; i < len(cuts); i++ {
		if cuts[i].Pos != cuts[i-1].End {
			return 0, false
		}
	}
	return cuts[0].Pos, int64(cuts[len(cuts)-1].End) == size
}

func (r *run) truncate(name string, size storage.Pos) error {
	w, err := r.fs.OpenFile(r.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = w.Truncate(int64(size)); err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// rewrite replaces a log by one without the stretches.
func (r *run) rewrite(a *Action, f vfs.File, size int64) error {
	temp := a.Path + vfs.TempSuffix
	w, err := r.create(temp)
	if err != nil {
		return err
	}
	n, from := int64(0), int64(0)
	for _, c := range append(a.Cuts[:len(a.Cuts):len(a.Cuts)], Range{Pos: storage.Pos(size), End: storage.Pos(size)}) {
		if n, err = copyInto(w, n, f, from, int64(c.Pos)); err != nil {
			break
		}
		from = int64(c.End)
	}
	if err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, r.remove(temp))
	}
	if err := r.fs.Rename(r.path(temp), r.path(a.Path)); err != nil {
		return errors.Join(err, r.remove(temp))
	}
	return r.syncDir(a.part.Dir)
}

// quarantine copies a stretch into a file of its own. One that an earlier run made of the same bytes will do.
func (r *run) quarantine(name string, f vfs.File, c Range, hash string) (string, error) {
	var to string
	for i := 1; ; i++ {
		to = name + "." + strconv.FormatInt(int64(c.Pos), 10)
		if i > 1 {
			to += "." + strconv.Itoa(i)
		}
		to += state.SuffixQuarantine
		there, err := vfs.Exists(r.fs, r.path(to))
		if err != nil {
			return "", err
		}
		if !there {
			break
		}
		same, err := r.holds(to, int64(c.End-c.Pos), hash)
		if err != nil {
			return "", err
		}
		if same {
			return to, r.sync(to)
		}
	}
	temp := to + vfs.TempSuffix
	w, err := r.create(temp)
	if err != nil {
		return "", err
	}
	if _, err = copyInto(w, 0, f, int64(c.Pos), int64(c.End)); err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err == nil {
		err = r.fs.Rename(r.path(temp), r.path(to))
	}
	if err != nil {
		return "", errors.Join(err, r.remove(temp))
	}
	return to, nil
}

// holds reports whether a file is of that size and hash.
func (r *run) holds(name string, size int64, hash string) (bool, error) {
	f, err := r.fs.OpenFile(r.path(name), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil || st.Size != size {
		return false, err
	}
	h, _, err := sum(f, 0, size)
	return h == hash, err
}

// dropDerived removes the files that are derived from a log, durably, .index first.
func (r *run) dropDerived(p *Part, base storage.Offset) error {
	for _, ext := range []string{state.ExtIndex, state.ExtTimeIndex, state.ExtTxnIndex, state.ExtSizeIndex} {
		if err := r.remove(p.path(base, ext)); err != nil {
			return err
		}
	}
	return r.syncDir(p.Dir)
}

// announce journals a file that is about to go as a whole.
func (r *run) announce(k Kind, name, kept, why string) error {
	e, err := r.entry(k, name, kept, why)
	if err != nil {
		return err
	}
	return r.j.add(e)
}

// entry is the line of the journal for a file as a whole.
func (r *run) entry(k Kind, name, kept, why string) (Entry, error) {
	f, err := r.fs.OpenFile(r.path(name), os.O_RDONLY, 0)
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
		return Entry{}, err
	}
	hash, _, err := sum(f, 0, st.Size)
	return Entry{Action: k, Path: name, Length: st.Size, SHA256: hash, Why: why, Kept: kept}, err
}

// setAside gives a file a name under which nobody reads it.
func (r *run) setAside(a *Action) error {
	to, err := r.freeName(a.Path)
	if err != nil {
		return err
	}
	if err := r.announce(SetAside, a.Path, to, a.Why); err != nil {
		return err
	}
	r.touched = true
	_, ext, suffix, _ := state.ParseFileName(path.Base(a.Path))
	if ext == state.ExtLog && suffix == "" && !a.moving {
		if err := r.dropDerived(a.part, a.base); err != nil {
			return err
		}
	}
	if err := r.fs.Rename(r.path(a.Path), r.path(to)); err != nil {
		return err
	}
	if ext == state.ExtSnapshot {
		r.lostSnapshot(a)
	}
	return r.syncDir(a.part.Dir)
}

// lostSnapshot notes a snapshot that is gone. A broker that trusts the marker and finds none forgets the producers.
func (r *run) lostSnapshot(a *Action) {
	var left []storage.Offset
	for _, o := range a.part.Snaps {
		if o != a.base {
			left = append(left, o)
		}
	}
	if a.part.Snaps = left; len(left) == 0 {
		r.noMarker = a.part.Dir + ": its last producer snapshot could not be kept, so a broker has to read the log"
	}
}

// removeDerived removes a file that can be made again, or that nobody needs.
func (r *run) removeDerived(a *Action) error {
	if err := r.announce(Remove, a.Path, "", a.Why); err != nil {
		return err
	}
	r.touched = true
	if err := r.remove(a.Path); err != nil {
		return err
	}
	return r.syncDir(a.part.Dir)
}

// move renames the logs of a partition, in two steps, since one may need the name of another.
func (r *run) move(group []Action) error {
	p := group[0].part
	var list []Entry
	for i := range group {
		a := &group[i]
		if a.moving {
			continue
		}
		e, err := r.entry(Move, a.Path, a.To, a.Why)
		if err != nil {
			return err
		}
		list = append(list, e)
	}
	if err := r.j.add(list...); err != nil {
		return err
	}
	for i := range group {
		a := &group[i]
		if a.moving {
			continue
		}
		r.touched = true
		from, _, _, _ := state.ParseFileName(path.Base(a.Path))
		for _, base := range []storage.Offset{from, a.base} {
			if err := r.dropDerived(p, base); err != nil {
				return err
			}
		}
		if there, err := vfs.Exists(r.fs, r.path(a.To+state.SuffixMoving)); err != nil || there {
			return errors.Join(err, fmt.Errorf("%s: %w: the name is taken", a.To+state.SuffixMoving, storage.ErrUnavailable))
		}
		if err := r.fs.Rename(r.path(a.Path), r.path(a.To+state.SuffixMoving)); err != nil {
			return err
		}
	}
	if err := r.syncDir(p.Dir); err != nil {
		return err
	}
	for i := range group {
		a := &group[i]
		if there, err := vfs.Exists(r.fs, r.path(a.To)); err != nil || there {
			return errors.Join(err, fmt.Errorf("%s: %w: the name is taken", a.To, storage.ErrUnavailable))
		}
		r.touched = true
		if err := r.fs.Rename(r.path(a.To+state.SuffixMoving), r.path(a.To)); err != nil {
			return err
		}
	}
	return r.syncDir(p.Dir)
}

// rebuild makes the indexes of segments of one partition anew, in one pass over its logs.
func (r *run) rebuild(ctx context.Context, group []Action) error {
	p := &Part{}
	*p = *group[0].part
	fresh, err := r.read([]string{p.Dir}, &Options{})
	if err != nil {
		return err
	}
	if now := fresh.part(p.Dir); now != nil {
		p.Segments = now.Segments // as the actions before left them
	}
	want := map[storage.Offset]bool{}
	for i := range group {
		want[group[i].base] = true
	}
	from, to := -1, -1
	for i := range p.Segments {
		if want[p.Segments[i].Base] {
			if from < 0 {
				from = i
			}
			to = i
		}
	}
	if from < 0 {
		return nil
	}
	t, err := r.replay(ctx, p, from)
	if err != nil {
		return err
	}
	for _, g := range p.Segments[from : to+1] {
		sc := &scanner{txns: t, sums: p.settings.sizes && want[g.Base]}
		x, err := r.scanSegment(ctx, sc, p.Dir, g, g.options(p.settings.interval))
		if err != nil {
			return fmt.Errorf("%s: %w", p.path(g.Base, state.ExtLog), err)
		}
		if !want[g.Base] {
			continue
		}
		own := x
		if !g.Ext[state.ExtIndex] {
			own = nil
		}
		st, err := r.settingsOf(ctx, p, g, own)
		if err != nil {
			return err
		}
		d, err := x.derive(g.Base, st)
		if err != nil {
			return err
		}
		r.touched = true
		if err := r.writeDerived(p, g.Base, d); err != nil {
			return err
		}
	}
	return nil
}
