package format

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/logmount/logmount/storage"
)

// blank reports whether a line holds nothing but white space. Such a line is no record and no error: programs that print JSON like to end with one.
func blank(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// parser reads one line. It knows the shape of a record and so has no need to recurse.
type parser struct {
	s *Splitter
	b []byte
	i int
}

// field is a member of an object; a set of them says which were seen.
type field uint

const (
	fieldOffset field = 1 << iota
	fieldPartition
	fieldTimestamp
	fieldKey
	fieldValue
	fieldHeaders
)

var strictBase64 = base64.StdEncoding.Strict()

// parseJSON reads a record. Its slices point into b and into the splitter.
//
// Taken are offset and partition (numbers, without meaning here), timestamp (an integer; missing or null is now), key or key_base64, value or
// value_base64 (strings; missing or null is null), headers (an array of objects with key or key_base64, value or value_base64). Any other field is an
// error, and so is one given twice: a misspelt name must not lose data.
func (s *Splitter) parseJSON(b []byte, now int64) (storage.Record, error) {
	p := &parser{s: s, b: b}
	r := storage.Record{Timestamp: now}
	var seen field
	err := p.object(func(name []byte) error {
		var err error
		switch string(name) {
		case "offset":
			if err = p.once(&seen, fieldOffset); err == nil {
				_, err = p.number()
			}
		case "partition":
			if err = p.once(&seen, fieldPartition); err == nil {
				_, err = p.number()
			}
		case "timestamp":
			if err = p.once(&seen, fieldTimestamp); err == nil {
				err = p.timestamp(&r.Timestamp)
			}
		case "key", "key_base64":
			if err = p.once(&seen, fieldKey); err == nil {
				r.Key, err = p.bytes(len(name) > len("key"))
			}
		case "value", "value_base64":
			if err = p.once(&seen, fieldValue); err == nil {
				r.Value, err = p.bytes(len(name) > len("value"))
			}
		case "headers":
			if err = p.once(&seen, fieldHeaders); err == nil {
				r.Headers, err = p.headers()
			}
		default:
			return p.fail("unknown field %.40q", name)
		}
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	if p.space(); p.i < len(p.b) {
		return storage.Record{}, p.fail("more bytes behind the object")
	}
	return r, nil
}

// headers reads the array, or null for none.
func (p *parser) headers() ([]storage.Header, error) {
	if p.null() {
		return nil, nil
	}
	if !p.take('[') {
		return nil, p.fail("headers must be an array")
	}
	first := len(p.s.headers)
	if p.take(']') {
		return nil, nil
	}
	for {
		h, err := p.header()
		if err != nil {
			return nil, err
		}
		p.s.headers = append(p.s.headers, h)
		if p.take(']') {
			break
		}
		if !p.take(',') {
			return nil, p.fail("want , or ] in headers")
		}
	}
	all := p.s.headers
	return all[first:len(all):len(all)], nil
}

func (p *parser) header() (storage.Header, error) {
	var h storage.Header
	var seen field
	err := p.object(func(name []byte) error {
		var err error
		switch string(name) {
		case "key", "key_base64":
			if err = p.once(&seen, fieldKey); err == nil {
				h.Key, err = p.bytes(len(name) > len("key"))
			}
		case "value", "value_base64":
			if err = p.once(&seen, fieldValue); err == nil {
				h.Value, err = p.bytes(len(name) > len("value"))
			}
		default:
			return p.fail("unknown field %.40q of a header", name)
		}
		return err
	})
	if err == nil && h.Key == nil {
		err = p.fail("a header needs a key")
	}
	return h, err
}

// object reads an object and calls member where each value begins.
func (p *parser) object(member func(name []byte) error) error {
	if !p.take('{') {
		return p.fail("want an object")
	}
	if p.take('}') {
		return nil
	}
	for {
		p.space()
		name, err := p.str()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return p.fail("want : behind the name of a field")
		}
		if err := member(name); err != nil {
			return err
		}
		if p.take('}') {
			return nil
		}
		if !p.take(',') {
			return p.fail("want , or } in an object")
		}
	}
}

func (p *parser) once(seen *field, f field) error {
	if *seen&f != 0 {
		return p.fail("a field is given twice")
	}
	*seen |= f
	return nil
}

func (p *parser) timestamp(to *int64) error {
	if p.null() {
		return nil
	}
	p.space()
	at := p.i
	b, err := p.number()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		p.i = at
		return p.fail("timestamp must be whole milliseconds since 1970")
	}
	*to = n
	return nil
}

// bytes reads a string, of base64 where encoded is set, or null.
func (p *parser) bytes(encoded bool) ([]byte, error) {
	if p.null() {
		return nil, nil
	}
	p.space()
	at := p.i
	b, err := p.str()
	if err != nil || !encoded {
		return b, err
	}
	for _, c := range b {
		if c == '\n' || c == '\r' { // the decoder would skip them
			p.i = at
			return nil, p.fail("not base64")
		}
	}
	start := len(p.s.text)
	text, err := strictBase64.AppendDecode(p.s.text, b)
	if err != nil {
		p.i = at
		return nil, p.fail("not base64")
	}
	p.s.text = text
	return taken(text, start), nil
}

// taken returns what was added to text since start; not nil even if that is nothing.
func taken(text []byte, start int) []byte {
	if len(text) == start {
		return []byte{}
	}
	return text[start:len(text):len(text)]
}

// str reads a string. One without escapes is a slice of the line.
func (p *parser) str() ([]byte, error) {
	if p.i >= len(p.b) || p.b[p.i] != '"' {
		return nil, p.fail("want a string")
	}
	at := p.i
	p.i++
	if n := plainLen(p.b[p.i:]); p.i+n < len(p.b) && p.b[p.i+n] == '"' {
		out := p.b[p.i : p.i+n : p.i+n]
		p.i += n + 1
		return p.valid(out, at)
	}
	start := len(p.s.text)
	for {
		n := plainLen(p.b[p.i:])
		p.s.text = append(p.s.text, p.b[p.i:p.i+n]...)
		p.i += n
		if p.i >= len(p.b) {
			return nil, p.fail("the line ends inside a string")
		}
		switch p.b[p.i] {
		case '"':
			p.i++
			return p.valid(taken(p.s.text, start), at)
		case '\\':
			if err := p.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, p.fail("a control character in a string must be escaped")
		}
	}
}

func (p *parser) valid(b []byte, at int) ([]byte, error) {
	if !utf8.Valid(b) {
		p.i = at
		return nil, p.fail("a string is not valid UTF-8 (such bytes go under a name with _base64)")
	}
	return b, nil
}

// escape reads one escape, or the two of a pair of surrogates, and adds its character to the splitter's text.
func (p *parser) escape() error {
	if p.i+1 >= len(p.b) {
		return p.fail("the line ends inside a string")
	}
	c := p.b[p.i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicode()
	default:
		return p.fail("unknown escape")
	}
	p.s.text = append(p.s.text, c)
	p.i += 2
	return nil
}

func (p *parser) unicode() error {
	r, ok := p.hex4(p.i)
	if !ok {
		return p.fail("\\u needs four hexadecimal digits")
	}
	n := 6
	if utf16.IsSurrogate(r) {
		low, _ := p.hex4(p.i + n)
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return p.fail("half of a surrogate pair")
		}
		n = 12
	}
	p.s.text = utf8.AppendRune(p.s.text, r)
	p.i += n
	return nil
}

// hex4 reads the \uXXXX at i.
func (p *parser) hex4(i int) (rune, bool) {
	if i+6 > len(p.b) || p.b[i] != '\\' || p.b[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.b[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number of JSON's grammar and returns its bytes.
func (p *parser) number() ([]byte, error) {
	p.space()
	at := p.i
	p.is('-')
	if !p.is('0') && p.digits() == 0 {
		p.i = at
		return nil, p.fail("want a number")
	}
	if p.is('.') && p.digits() == 0 {
		return nil, p.fail("want digits behind the point")
	}
	if p.is('e') || p.is('E') {
		if !p.is('+') {
			p.is('-')
		}
		if p.digits() == 0 {
			return nil, p.fail("want digits in the exponent")
		}
	}
	return p.b[at:p.i], nil
}

func (p *parser) digits() int {
	at := p.i
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		p.i++
	}
	return p.i - at
}

// null steps over a null.
func (p *parser) null() bool {
	p.space()
	if p.i+4 > len(p.b) || string(p.b[p.i:p.i+4]) != "null" {
		return false
	}
	p.i += 4
	return true
}

// take steps over white space and c.
func (p *parser) take(c byte) bool {
	p.space()
	return p.is(c)
}

// is steps over c.
func (p *parser) is(c byte) bool {
	if p.i >= len(p.b) || p.b[p.i] != c {
		return false
	}
	p.i++
	return true
}

func (p *parser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' || p.b[p.i] == '\r' || p.b[p.i] == '\n') {
		p.i++
	}
}

// fail says what is wrong at the byte where the parser stands, counted from 1.
func (p *parser) fail(reason string, args ...any) error {
	return fmt.Errorf("%w: json, byte %d of the line: "+reason, append([]any{storage.ErrInvalidRecord, p.i + 1}, args...)...)
}
