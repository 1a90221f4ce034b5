package inspect

import (
	"fmt"
	"strconv"
	"strings"
)

// schema is one type of record.
type schema struct {
	name   string
	newest int16 // version of the value
	flex   int16 // first version with compact lengths and tagged fields; -1: none
	key    []field
	value  []field
}

// field is one field of a schema.
type field struct {
	name     string
	typ      string  // of it or, in an array, of its elements; "" is a structure
	fields   []field // of a structure
	array    bool
	nullable bool // a structure that has a byte before it which says whether it is there
	lo, hi   int16
	tag      int32 // -1: none
}

const newestVersion = 1<<15 - 1

// fieldTypes are the types of fields that are not structures.
var fieldTypes = map[string]bool{"bool": true, "int8": true, "int16": true, "uint16": true, "int32": true, "int64": true, "float64": true, "string": true, "bytes": true, "uuid": true,
	typeSubscription: true, typeAssignment: true}

// Bytes in which consumers keep what they agree on. They are of no other kind where a group's protocol is not the consumers' own.
const (
	typeSubscription = "subscription"
	typeAssignment   = "assignment"
)

// parseSchemas reads a table: lines `NUMBER NAME NEWEST FLEXIBLE`, each with indented lines of fields below it; those of the key, which are never flexible, on
// one line after `key:`. A field is `name TYPE [VERSION|VERSION+] [@TAG]`, fields are separated by semicolons, and TYPE is a type's name or {FIELDS}, with []
// before it for an array, or ? for a structure that may be null.
func parseSchemas(table string) (map[int32]*schema, error) {
	all := map[int32]*schema{}
	var s *schema
	var body []string
	finish := func() (err error) {
		if s != nil {
			s.value, err = parseFields(strings.Join(body, " "))
		}
		return err
	}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		line = strings.TrimRight(line, "\n")
		if keys, ok := strings.CutPrefix(line, "\tkey: "); ok {
			var err error
			if s.key, err = parseFields(keys); err != nil {
				return nil, err
			}
			continue
		}
		if line[0] == '\t' {
			body = append(body, line[1:])
			continue
		}
		if err := finish(); err != nil {
			return nil, err
		}
		var number int32
		var flex string
		s, body = &schema{flex: -1}, nil
		if _, err := fmt.Sscan(line, &number, &s.name, &s.newest, &flex); err != nil {
			return nil, fmt.Errorf("schema %q: %w", line, err)
		}
		if flex != "-" {
			n, err := strconv.ParseInt(flex, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("schema %q: %w", line, err)
			}
			s.flex = int16(n)
		}
		all[number] = s
	}
	return all, finish()
}

// parseFields reads fields up to the end of s.
func parseFields(s string) ([]field, error) {
	p := schemaParser{rest: s}
	list, err := p.fields()
	if err == nil && p.rest != "" {
		err = fmt.Errorf("schema: %q is left", p.rest)
	}
	return list, err
}

type schemaParser struct{ rest string }

// word takes what comes before the next blank or separator.
func (p *schemaParser) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	n := strings.IndexAny(p.rest, " ;{}")
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// take takes s if it comes next.
func (p *schemaParser) take(s string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " "), s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *schemaParser) fields() ([]field, error) {
	var list []field
	for {
		f := field{name: p.word(), hi: newestVersion, tag: -1}
		if f.name == "" {
			return list, nil
		}
		f.array, f.nullable = p.take("[]"), p.take("?")
		if p.take("{") {
			var err error
			if f.fields, err = p.fields(); err != nil {
				return nil, err
			}
			if !p.take("}") {
				return nil, fmt.Errorf("schema: structure %s is not closed at %q", f.name, p.rest)
			}
		} else if f.typ = p.word(); !fieldTypes[f.typ] {
			return nil, fmt.Errorf("schema: %s has no type %q", f.name, f.typ)
		}
		for w := p.word(); w != ""; w = p.word() {
			if err := f.option(w); err != nil {
				return nil, err
			}
		}
		list = append(list, f)
		if !p.take(";") {
			return list, nil
		}
	}
}

// option reads a version or a tag.
func (f *field) option(w string) error {
	number, tagged := strings.CutPrefix(w, "@")
	number, open := strings.CutSuffix(number, "+")
	n, err := strconv.ParseInt(number, 10, 16)
	switch {
	case err != nil:
		return fmt.Errorf("schema: option %q of %s", w, f.name)
	case tagged:
		f.tag = int32(n)
	default:
		f.lo = int16(n)
		if !open {
			f.hi = f.lo
		}
	}
	return nil
}
