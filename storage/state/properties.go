package state

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/logmount/logmount/storage"
)

// MetaProperties says whose log directory it is.
type MetaProperties struct {
	Version     int    // 0 for a ZooKeeper-era broker, 1 for KRaft
	ClusterID   string // empty where there is none
	NodeID      int32  // node.id, or broker.id of version 0; -1 where there is none
	DirectoryID string // empty where there is none
}

// ParseMetaProperties reads a whole meta.properties file.
func ParseMetaProperties(b []byte) (MetaProperties, error) {
	p, err := ParseProperties(b)
	if err != nil {
		return MetaProperties{}, err
	}
	m := MetaProperties{NodeID: -1, ClusterID: p["cluster.id"], DirectoryID: p["directory.id"]}
	if v, ok := p["version"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 1 {
			return MetaProperties{}, fmt.Errorf("%s: version %s is not known: %w", MetaPropertiesFile, quote(v), storage.ErrCorrupt)
		}
		m.Version = n
	}
	key := "node.id"
	if m.Version == 0 {
		key = "broker.id"
	}
	if v, ok := p[key]; ok {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return MetaProperties{}, fmt.Errorf("%s: %s %s is not a number: %w", MetaPropertiesFile, key, quote(v), storage.ErrCorrupt)
		}
		m.NodeID = int32(n)
	}
	return m, nil
}

// ParseProperties reads a file in the syntax of Java's properties: a key and a value a line, separated by '=', ':' or blanks; '#' or '!' starts a comment
// line; a backslash escapes, and at the end of a line joins the next. Bytes are characters of Latin-1. The last of equal keys counts.
func ParseProperties(b []byte) (map[string]string, error) {
	p := map[string]string{}
	all := lines(b)
	for i := 0; i < len(all); i++ {
		first := i
		line := strings.TrimLeft(all[i], propertyBlank)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		if continued(line) {
			var joined strings.Builder
			for continued(line) {
				joined.WriteString(line[:len(line)-1])
				line = ""
				if i++; i < len(all) {
					line = strings.TrimLeft(all[i], propertyBlank)
				}
			}
			joined.WriteString(line)
			line = joined.String()
		}
		k, v := splitProperty(line)
		key, err := unescape(k)
		if err != nil {
			return nil, corruptLine("properties", first, "%s", err)
		}
		if p[key], err = unescape(v); err != nil {
			return nil, corruptLine("properties", first, "%s", err)
		}
	}
	return p, nil
}

const propertyBlank = " \t\f"

// continued reports whether a line ends in an odd number of backslashes.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// splitProperty cuts a line at the first separator that is not escaped.
func splitProperty(line string) (key, value string) {
	end := 0
	for end < len(line) && !strings.ContainsRune("=:"+propertyBlank, rune(line[end])) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	value = strings.TrimLeft(line[end:], propertyBlank)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], propertyBlank)
	}
	return line[:end], value
}

// unescape resolves the escapes of Latin-1 text.
func unescape(s string) (string, error) {
	units := make([]uint16, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := uint16(s[i])
		if c == '\\' {
			if i++; i == len(s) {
				break
			}
			c = uint16(s[i])
			switch c {
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 'f':
				c = '\f'
			case 'u':
				if i+4 >= len(s) {
					return "", fmt.Errorf("%s ends in half an escape", quote(s))
				}
				n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
				if err != nil {
					return "", fmt.Errorf("%s is not an escape", quote(s[i-1:i+5]))
				}
				c = uint16(n)
				i += 4
			}
		}
		units = append(units, c)
	}
	return string(utf16.Decode(units)), nil
}
