package repair

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"time"
	"unicode/utf8"
)

// JournalFile is the name of the file, at the top of a log directory, in which everything that was changed is written down before it is changed.
const JournalFile = ".logmount-repair.journal"

// Entry is a line of the journal. Positions are those of the file as it was before the change.
type Entry struct {
	Time   time.Time `json:"time"`
	Step   int64     `json:"step"` // lines of one step are one change, all positions and names are those before it
	Of     int       `json:"of"`   // how many lines the step has
	Action Kind      `json:"action"`
	Path   string    `json:"path"` // relative to the log directory
	Pos    int64     `json:"pos"`
	Length int64     `json:"length"`           // bytes taken out, or of the file that was moved or removed
	SHA256 string    `json:"sha256,omitempty"` // of these bytes
	What   string    `json:"what,omitempty"`   // the kind of finding
	Why    string    `json:"why"`
	Kept   string    `json:"kept,omitempty"`       // the file that holds the bytes now; empty of zeros at the end of a log, and of what can be derived
	Old    string    `json:"old,omitempty"`        // what was replaced, where it is small
	Old64  string    `json:"old_base64,omitempty"` // the same where it is not text
	New    string    `json:"new,omitempty"`        // what stands there now
}

// setOld keeps what is replaced.
func (e *Entry) setOld(b []byte) {
	if utf8.Valid(b) {
		e.Old = string(b)
	} else {
		e.Old64 = base64.StdEncoding.EncodeToString(b)
	}
}

// journal is the open journal.
type journal struct {
	d    *disk
	now  func() time.Time
	size int64
	step int64           // the last one
	seen map[string]bool // entries without their times and steps
	made bool            // the file is there
}

// openJournal reads the journal. What a crash left of a step that was being written is cut off: the change that it announced was not begun.
func openJournal(d *disk, now func() time.Time) (*journal, error) {
	j := &journal{d: d, now: now, seen: map[string]bool{}}
	b, err := d.readOr(JournalFile, nil)
	if err != nil || b == nil {
		return j, err
	}
	j.made = true
	var open []Entry // of a step that is not complete
	for at := 0; at < len(b); {
		n := bytes.IndexByte(b[at:], '\n')
		if n < 0 {
			break
		}
		var e Entry
		if json.Unmarshal(b[at:at+n], &e) == nil {
			if len(open) > 0 && open[0].Step != e.Step {
				open = open[:0]
			}
			open = append(open, e)
			if len(open) >= e.Of {
				for _, e := range open {
					j.seen[key0(e)] = true
				}
				j.size, j.step, open = int64(at+n+1), max(j.step, e.Step), open[:0]
			}
		}
		at += n + 1
	}
	return j, nil
}

// key0 is an entry without its time and step.
func key0(e Entry) string {
	e.Time, e.Step, e.Of = time.Time{}, 0, 0
	b, _ := json.Marshal(e) // strings and numbers only
	return string(b)
}

// add writes the entries of one step durably. One that is there already, because the change that it announced was cut short, is not written again.
func (j *journal) add(list ...Entry) error {
	list = slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return j.seen[key0(e)] })
	if len(list) == 0 {
		return nil
	}
	var b []byte
	for _, e := range list {
		e.Time, e.Step, e.Of = j.now().UTC().Round(0), j.step+1, len(list)
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
	}
	if err := j.append(b); err != nil {
		return err
	}
	j.step++
	j.size += int64(len(b))
	for _, e := range list {
		j.seen[key0(e)] = true
	}
	return nil
}

func (j *journal) append(b []byte) error {
	d := j.d
	if !j.made {
		f, err := d.create(JournalFile)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	f, err := d.fs.OpenFile(d.path(JournalFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // synced
	if err := f.Truncate(j.size); err != nil {
		return err
	}
	if _, err := f.WriteAt(b, j.size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if !j.made {
		j.made = true
		return d.syncDir(".")
	}
	return nil
}
