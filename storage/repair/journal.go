package repair

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"time"
	"unicode/utf8"
)

// JournalFile is the name of the file, at the top of a log directory, in which everything that was changed is written down before it is changed.
const JournalFile = ".logmount-repair.journal"

// Entry is a line of the journal. Positions are those of the file as it was before the change.
type Entry struct {
	Time   time.Time `json:"time"`
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
	seen map[string]bool // entries without their times
	made bool            // the file is there
}

// openJournal reads the journal. What a crash left of a line is cut off: the change that it announced was not made.
func openJournal(d *disk, now func() time.Time) (*journal, error) {
	j := &journal{d: d, now: now, seen: map[string]bool{}}
	b, err := d.readOr(JournalFile, nil)
	if err != nil || b == nil {
		return j, err
	}
	j.made = true
	good := 0
	for at := 0; at < len(b); {
		n := bytes.IndexByte(b[at:], '\n')
		if n < 0 {
			break
		}
		var e Entry
		if json.Unmarshal(b[at:at+n], &e) == nil {
			j.seen[key0(e)] = true
			good = at + n + 1
		}
		at += n + 1
	}
	j.size = int64(good)
	return j, nil
}

// key0 is an entry without its time.
func key0(e Entry) string {
	e.Time = time.Time{}
	b, _ := json.Marshal(e) // strings and numbers only
	return string(b)
}

// add writes entries durably. One that is there already, because the change that it announced was cut short, is not written again.
func (j *journal) add(list ...Entry) error {
	var b []byte
	var keys []string
	for _, e := range list {
		k := key0(e)
		if j.seen[k] {
			continue
		}
		e.Time = j.now().UTC().Round(0)
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
		keys = append(keys, k)
	}
	if len(b) == 0 {
		return nil
	}
	if err := j.append(b); err != nil {
		return err
	}
	j.size += int64(len(b))
	for _, k := range keys {
		j.seen[k] = true
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
