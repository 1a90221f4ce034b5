package state

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/logmount/logmount/storage"
)

// Checkpoint is the content of an offset checkpoint file: an offset for each of some logs, in the order of the file. The zero value is empty and ready.
//
// Lines with the right number of fields whose numbers cannot be used are kept and written again as they are, until Set or Delete names their log; see
// Unusable. They count as offset 0.
type Checkpoint struct {
	lines []checkpointLine
	byLog map[storage.TopicPartition]int // place in lines
}

type checkpointLine struct {
	tp     storage.TopicPartition
	offset storage.Offset
	raw    string // the line where it cannot be used, else empty
}

// framed checks version and count of a checkpoint file and returns its entry lines; the first of them is line 2, counted from 0.
func framed(what string, b []byte) ([]string, error) {
	all := lines(b)
	if len(all) == 0 {
		return nil, nil
	}
	if v, err := strconv.ParseInt(all[0], 10, 32); err != nil || v != 0 {
		return nil, corruptLine(what, 0, "version %s, not 0", quote(all[0]))
	}
	if len(all) == 1 {
		return nil, nil
	}
	n, err := strconv.ParseInt(all[1], 10, 32)
	if err != nil {
		return nil, corruptLine(what, 1, "%s is not a number of entries", quote(all[1]))
	}
	for i, line := range all[2:] {
		if strings.Trim(line, " \t\v\f\r") == "" {
			return nil, corruptLine(what, i+2, "the line is blank")
		}
	}
	if int64(len(all)-2) != n {
		return nil, corruptLine(what, 1, "%d entries announced, %d lines follow", n, len(all)-2)
	}
	return all[2:], nil
}

// appendFrame starts a checkpoint file of n entries.
func appendFrame(dst []byte, n int) []byte {
	dst = append(dst, "0\n"...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\n')
}

// ParseCheckpoint reads a whole offset checkpoint file. An empty one has no entries. If a log is named twice the later line counts.
func ParseCheckpoint(b []byte) (Checkpoint, error) {
	const what = "offset checkpoint"
	entries, err := framed(what, b)
	if err != nil {
		return Checkpoint{}, err
	}
	c := Checkpoint{lines: make([]checkpointLine, 0, len(entries)), byLog: make(map[storage.TopicPartition]int, len(entries))}
	for i, line := range entries {
		f := fields(line)
		if len(f) != 3 {
			return Checkpoint{}, corruptLine(what, i+2, "%s is not topic, partition and offset", quote(line))
		}
		p, err := strconv.ParseInt(f[1], 10, 32)
		if err != nil || p < 0 {
			c.lines = append(c.lines, checkpointLine{raw: line})
			continue
		}
		l := checkpointLine{tp: storage.TopicPartition{Topic: f[0], Partition: int32(p)}}
		if o, err := strconv.ParseInt(f[2], 10, 64); err == nil && o >= 0 {
			l.offset = storage.Offset(o)
		} else {
			l.raw = line
		}
		c.put(l)
	}
	return c, nil
}

func (c *Checkpoint) put(l checkpointLine) {
	if i, ok := c.byLog[l.tp]; ok {
		c.lines[i] = l
		return
	}
	if c.byLog == nil {
		c.byLog = map[storage.TopicPartition]int{}
	}
	c.byLog[l.tp] = len(c.lines)
	c.lines = append(c.lines, l)
}

// Get returns a log's offset; 0 and false where the file does not name the log.
func (c *Checkpoint) Get(tp storage.TopicPartition) (storage.Offset, bool) {
	i, ok := c.byLog[tp]
	if !ok {
		return 0, false
	}
	return c.lines[i].offset, true
}

// Set gives a log an offset, in its old place or behind all others.
func (c *Checkpoint) Set(tp storage.TopicPartition, o storage.Offset) {
	c.put(checkpointLine{tp: tp, offset: o})
}

// Delete removes a log's entry.
func (c *Checkpoint) Delete(tp storage.TopicPartition) {
	i, ok := c.byLog[tp]
	if !ok {
		return
	}
	c.lines = slices.Delete(c.lines, i, i+1)
	delete(c.byLog, tp)
	for other, j := range c.byLog {
		if j > i {
			c.byLog[other] = j - 1
		}
	}
}

// Len returns the number of logs with an entry.
func (c *Checkpoint) Len() int { return len(c.byLog) }

// All goes over the logs in the order of the file.
func (c *Checkpoint) All() iter.Seq2[storage.TopicPartition, storage.Offset] {
	return func(yield func(storage.TopicPartition, storage.Offset) bool) {
		for i, l := range c.lines {
			if j, ok := c.byLog[l.tp]; ok && j == i && !yield(l.tp, l.offset) {
				return
			}
		}
	}
}

// Unusable returns the lines whose partition or offset is not a number that a log can have.
func (c *Checkpoint) Unusable() []string {
	var out []string
	for _, l := range c.lines {
		if l.raw != "" {
			out = append(out, l.raw)
		}
	}
	return out
}

// Clone returns an independent copy.
func (c *Checkpoint) Clone() Checkpoint {
	return Checkpoint{lines: slices.Clone(c.lines), byLog: maps.Clone(c.byLog)}
}

// Format returns the bytes of the file.
func (c *Checkpoint) Format() []byte {
	b := appendFrame(nil, len(c.lines))
	for _, l := range c.lines {
		if l.raw != "" {
			b = append(append(b, l.raw...), '\n')
		} else {
			b = fmt.Appendf(b, "%s %d %d\n", l.tp.Topic, l.tp.Partition, l.offset)
		}
	}
	return b
}
