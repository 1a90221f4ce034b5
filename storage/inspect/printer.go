package inspect

import (
	"bufio"
	"encoding/base64"
	"io"
	"strconv"
	"unicode/utf8"
)

// A kind says what a line of a dump is about. It is the field "kind" of --json.
type kind string

// The kinds of lines.
const (
	kindFile       kind = "file"       // the heading of a file
	kindBatch      kind = "batch"      // a batch, or an entry of version 0 or 1
	kindRecord     kind = "record"     // a record, below its batch
	kindGap        kind = "gap"        // bytes of a log that are no batch
	kindTotal      kind = "total"      // what a log adds up to
	kindIndex      kind = "index"      // an entry of an offset index
	kindTimeIndex  kind = "timeindex"  // an entry of a time index
	kindTxnIndex   kind = "txnindex"   // an aborted transaction
	kindSizes      kind = "sizes"      // the header of a size index
	kindSizeIndex  kind = "sizeindex"  // an entry of a size index
	kindProducer   kind = "producer"   // a producer of a snapshot
	kindCheckpoint kind = "checkpoint" // a log's offset in a checkpoint
	kindEpoch      kind = "epoch"      // a leader epoch and where it starts
	kindProperty   kind = "property"   // a name and a value
	kindTopic      kind = "topic"      // a topic of ours
	kindLine       kind = "line"       // a line of a file that makes no sense
	kindDamage     kind = "damage"     // something is wrong here
	kindNote       kind = "note"       // something worth knowing that is no damage
)

// printer writes lines of named fields, for people as `name: value` and for programs as one JSON object each. A failed write is kept and returned by
// flush; what is printed after it is lost.
type printer struct {
	w    *bufio.Writer
	json bool
	b    []byte
	n    int // fields in the line
	err  error
}

func newPrinter(w io.Writer, asJSON bool) *printer {
	return &printer{w: bufio.NewWriterSize(w, 64<<10), json: asJSON}
}

// begin starts a line. For people it begins with lead.
func (p *printer) begin(k kind, lead string) {
	p.b, p.n = p.b[:0], 0
	if p.json {
		p.b = append(append(append(p.b, `{"kind":"`...), k...), '"')
		return
	}
	p.b = append(p.b, lead...)
}

// end writes the line.
func (p *printer) end() {
	if p.json {
		p.b = append(p.b, '}')
	}
	p.b = append(p.b, '\n')
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	if cap(p.b) > 1<<20 {
		p.b = nil
	}
}

func (p *printer) flush() error {
	if err := p.w.Flush(); p.err == nil {
		p.err = err
	}
	return p.err
}

// name begins a field. label is its name for people, if that is another one.
func (p *printer) name(name, label string) {
	if p.json {
		p.b = append(append(append(p.b, `,"`...), name...), `":`...)
		return
	}
	if p.n++; p.n > 1 {
		p.b = append(p.b, ' ')
	}
	if label == "" {
		label = name
	}
	p.b = append(append(p.b, label...), ": "...)
}

func (p *printer) num(name string, v int64) { p.labeled(name, "", v) }

// labeled is num with another name for people.
func (p *printer) labeled(name, label string, v int64) {
	p.name(name, label)
	p.b = strconv.AppendInt(p.b, v, 10)
}

// optional prints a number, or that there is none.
func (p *printer) optional(name string, v int64, there bool) {
	p.name(name, "")
	switch {
	case there:
		p.b = strconv.AppendInt(p.b, v, 10)
	case p.json:
		p.b = append(p.b, "null"...)
	default:
		p.b = append(p.b, "none"...)
	}
}

func (p *printer) flag(name string, v bool) {
	p.name(name, "")
	p.b = strconv.AppendBool(p.b, v)
}

// word prints a string; for people it is quoted where it has blanks.
func (p *printer) word(name, s string) {
	p.name(name, "")
	if p.json {
		p.b = appendJSONString(p.b, s)
		return
	}
	p.b = appendText(p.b, s, true)
}

// text prints a string that may have blanks: the last field of a line.
func (p *printer) text(name, s string) {
	p.name(name, "")
	if p.json {
		p.b = appendJSONString(p.b, s)
		return
	}
	p.b = appendText(p.b, s, false)
}

// only prints a string for programs and nothing for people.
func (p *printer) only(name, s string) {
	if p.json {
		p.word(name, s)
	}
}

// bytes prints a key or value. For programs null is null, and bytes that are no UTF-8 stand under name_base64; for people null is left out and the rest
// is quoted as far as a terminal needs it.
func (p *printer) bytes(name, label string, b []byte, blanks bool) {
	switch {
	case !p.json:
		if b != nil {
			p.name(name, label)
			p.b = appendText(p.b, b, !blanks)
		}
	case b == nil:
		p.name(name, "")
		p.b = append(p.b, "null"...)
	default:
		p.jsonBytes(name, b)
	}
}

func (p *printer) jsonBytes(name string, b []byte) {
	if utf8.Valid(b) {
		p.name(name, "")
		p.b = appendJSONString(p.b, b)
		return
	}
	p.name(name+"_base64", "")
	p.b = appendBase64(p.b, b)
}

// raw prints a value that is JSON already.
func (p *printer) raw(name, label string, v []byte) {
	p.name(name, label)
	p.b = append(p.b, v...)
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// chars is what can be printed without being copied first.
type chars interface{ ~string | ~[]byte }

// runeAt returns the character at s[i:] and its size.
func runeAt[T chars](s T, i int) (rune, int) {
	return utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
}

// appendText appends s as it is where it can be told from what follows and does no harm to a terminal, and quoted where not.
func appendText[T chars](dst []byte, s T, word bool) []byte {
	plain := len(s) > 0 && s[0] != '"' && s[0] != ' ' && s[len(s)-1] != ' '
	for i := 0; plain && i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			plain = c > ' ' && c < 0x7f || c == ' ' && !word
			i++
			continue
		}
		r, n := runeAt(s, i)
		plain = (r != utf8.RuneError || n > 1) && strconv.IsPrint(r)
		i += n
	}
	if plain {
		return append(dst, s...)
	}
	return strconv.AppendQuote(dst, string(s))
}

const hexDigits = "0123456789abcdef"

// appendJSONString appends s in quotes and escapes what JSON requires, no more. Bytes that are no UTF-8 become U+FFFD.
func appendJSONString[T chars](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := runeAt(s, i)
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, `\n`...)
			case '\t':
				dst = append(dst, `\t`...)
			default:
				dst = append(dst, `\u00`...)
				dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
			}
			from = i + 1
		}
		i++
	}
	return append(append(dst, s[from:]...), '"')
}

// appendMember appends a member of an object whose value is bytes: under name, or name_base64 where they are no UTF-8.
func appendMember(dst []byte, name string, b []byte) []byte {
	dst = append(append(dst, '"'), name...)
	switch {
	case b == nil:
		return append(dst, `":null`...)
	case utf8.Valid(b):
		return appendJSONString(append(dst, `":`...), b)
	}
	return appendBase64(append(dst, `_base64":`...), b)
}
