package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/vfs"
)

// maxRounds bounds how often a directory is verified. A log with very many damaged places takes several rounds.
const maxRounds = 1000

// Result is what Repair adds up to.
type Result struct {
	Rounds  int    `json:"rounds"`           // how often the directory, or part of it, was verified
	Actions int    `json:"actions"`          // done, or without Apply to be done
	Left    int    `json:"left"`             // findings of damage that nothing is done about
	Marker  string `json:"marker,omitempty"` // why the marker of a clean shutdown was not put back, though it was there
}

// errStuck is what a repair ends with that would do the same again.
var errStuck = errors.New("the same actions are called for again after they were done")

// Repair verifies a log directory and does, or without Apply only works out, what puts it right. Options.Emit is told of every action.
//
// What is no log directory is storage.ErrNotLogDirectory. With Apply it locks the directory: storage.ErrLocked where a broker, a mount or another verb has it. After an error the directory is one that the next run
// goes on with; the marker of a clean shutdown is then gone if anything was changed.
func Repair(ctx context.Context, fsys vfs.FS, dir string, opt Options) (res Result, err error) {
	d := &disk{fs: fsys, dir: dir}
	if opt.Emit == nil {
		opt.Emit = func(Action) {}
	}
	if !opt.Apply {
		actions, _, err := d.round(ctx, opt.Select, &opt, false)
		res.Rounds = 1
		for _, a := range actions {
			res.count(&a)
			opt.Emit(a)
		}
		return res, err
	}
	if err := d.check(); err != nil {
		return res, err
	}
	s, err := open(d)
	if err != nil {
		return res, err
	}
	defer func() { err = firstOf(err, s.close()) }()
	j, err := openJournal(d, opt.Now)
	if err != nil {
		return res, err
	}
	r := &run{session: s, j: j}
	if err := r.rounds(ctx, &opt, &res); err != nil {
		if !r.touched {
			err = errors.Join(err, r.putMarker())
		}
		return res, err
	}
	if r.noMarker != "" && r.marker != nil {
		res.Marker = r.noMarker
		return res, nil
	}
	return res, r.putMarker()
}

func (r *Result) count(a *Action) {
	if a.Kind.Changes() {
		r.Actions++
	} else {
		r.Left++
	}
}

// rounds verifies and acts until there is nothing to do.
func (r *run) rounds(ctx context.Context, opt *Options, res *Result) error {
	sel := opt.Select
	var before []string
	for res.Rounds < maxRounds {
		actions, l, err := r.round(ctx, sel, opt, r.marker != nil && r.noMarker == "")
		res.Rounds++
		if err != nil {
			return err
		}
		r.l = l
		var todo []Action
		again := map[string]bool{}
		all := false
		for _, a := range actions {
			if a.Kind == NoMarker && r.noMarker != "" {
				continue
			}
			if a.Kind.Changes() {
				todo = append(todo, a)
				again[a.dir()] = true
				all = all || a.part == nil
			}
		}
		// What is left of a partition that is looked at again is told then.
		for _, a := range actions {
			if !a.Kind.Changes() && !all && !again[a.dir()] {
				res.count(&a)
				opt.Emit(a)
			}
		}
		if len(todo) == 0 {
			return nil
		}
		now := texts(todo)
		if slices.Equal(now, before) {
			return fmt.Errorf("%w: %s", errStuck, now[0])
		}
		before = now
		had := r.noMarker
		if err := r.do(ctx, todo, func(a Action) { res.count(&a); opt.Emit(a) }); err != nil {
			return err
		}
		switch {
		case had != r.noMarker: // it will not have been closed in order: all that was selected has to be settled
			sel = opt.Select
		case !all:
			sel = slices.Sorted(maps.Keys(again))
		}
	}
	return errStuck
}

func texts(actions []Action) []string {
	var out []string
	for i := range actions {
		out = append(out, actions[i].String())
	}
	return out
}

// round verifies the directory and plans. wasClean says that the marker of a clean shutdown was there when the run began.
func (d *disk) round(ctx context.Context, sel []string, opt *Options, wasClean bool) ([]Action, *Layout, error) {
	var findings []inspect.Finding
	v := inspect.VerifyOptions{Select: sel, Jobs: opt.Jobs, Progress: opt.Progress}
	if opt.Config != nil {
		v.Config = func(m map[string]string) error {
			_, err := opt.Config(m)
			return err
		}
	}
	if _, err := inspect.Verify(ctx, d.fs, d.dir, v, func(f inspect.Finding) { findings = append(findings, f) }); err != nil {
		return nil, nil, err
	}
	for _, f := range findings {
		if f.What == inspect.Unreadable {
			return nil, nil, fmt.Errorf("%s: %w: %s; copy the directory to a sound disk and repair the copy", f.Path, storage.ErrUnavailable, f.Detail)
		}
	}
	l, err := d.read(sel, opt)
	if err != nil {
		return nil, nil, err
	}
	l.Clean = l.Clean || wasClean
	if err := d.look(ctx, l, findings); err != nil {
		return nil, nil, err
	}
	actions := Plan(findings, l)
	busy := map[*Part]bool{}
	for _, a := range actions {
		busy[a.part] = true
	}
	for _, p := range l.Parts {
		if busy[p] {
			continue
		}
		if err := d.lookSettle(ctx, l, p); err != nil {
			return nil, nil, err
		}
		if p.looked {
			actions = append(actions, l.planSettle(p)...)
		}
	}
	return actions, l, nil
}
