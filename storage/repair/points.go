package repair

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
)

// editPoints changes the line of one log in the bytes of a checkpoint that can be parsed, or removes it where o is negative. All other lines keep their bytes.
func editPoints(raw []byte, tp storage.TopicPartition, o storage.Offset) []byte {
	var kept [][]byte
	done := o < 0
	lines := bytes.SplitAfter(raw, []byte("\n"))
	if len(lines) > 2 {
		lines = lines[2:]
	} else {
		lines = nil
	}
	want := tp.Topic + " " + strconv.Itoa(int(tp.Partition)) + " " + strconv.FormatInt(int64(o), 10) + "\n"
	for _, line := range lines {
		if len(line) == 0 {
			continue
		}
		f := strings.Fields(string(line))
		if len(f) == 3 && f[0] == tp.Topic && f[1] == strconv.Itoa(int(tp.Partition)) {
			if !done {
				kept = append(kept, []byte(want))
				done = true
			}
			continue
		}
		kept = append(kept, line)
	}
	if !done {
		if n := len(kept); n > 0 && !bytes.HasSuffix(kept[n-1], []byte("\n")) {
			kept[n-1] = append(bytes.Clone(kept[n-1]), '\n')
		}
		kept = append(kept, []byte(want))
	}
	return joinPoints(kept)
}

// salvagePoints returns a checkpoint of the lines of raw that are right, as they are.
func salvagePoints(raw []byte) []byte {
	var kept [][]byte
	for _, line := range bytes.SplitAfter(raw, []byte("\n")) {
		f := strings.Fields(string(line))
		if len(f) != 3 || !topicName(f[0]) {
			continue
		}
		p, perr := strconv.ParseInt(f[1], 10, 32)
		o, oerr := strconv.ParseInt(f[2], 10, 64)
		if perr != nil || oerr != nil || p < 0 || o < 0 || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // cut short: the number may be too
		}
		kept = append(kept, line)
	}
	return joinPoints(kept)
}

func topicName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

func joinPoints(lines [][]byte) []byte {
	b := []byte("0\n" + strconv.Itoa(len(lines)) + "\n")
	return append(b, bytes.Join(lines, nil)...)
}
