package format

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/logmount/logmount/storage"
)

// keepBytes is how much memory a Splitter keeps for the next request once it does not need it any more.
const keepBytes = 128 << 10

// keepHeaders is keepBytes for headers: a request of short records, one header in each, has a few thousand.
const keepHeaders = 8192

var errWrongFormat = errors.New("not a splitter of this format")

// Splitter cuts the bytes written through one open file into records, wherever the requests that bring them were cut. It is for one goroutine at a time.
//
// It is transactional. Split (SplitBatches) tells which records a request completes and changes nothing; Commit takes the request as done, Abort as
// refused. An error of Split is a refusal by itself; calling Abort after it does no harm.
type Splitter struct {
	format Format
	max    int
	delim  byte

	buf []byte // buf[:n] is the unfinished record; what lies behind it belongs to the Split under way
	n   int

	open   bool   // a Split waits for Commit or Abort
	joined bool   // after it, buf as it is will be the unfinished record; else left
	whole  []byte // of batches: what was looked at, the kept ones first
	left   []byte // part of the request
	torn   bool

	text    []byte           // unescaped strings of the last Split
	headers []storage.Header // headers of the last Split
}

// NewSplitter returns a splitter without an unfinished record. maxMessageBytes is the topic's max.message.bytes and bounds what is kept.
func NewSplitter(f Format, maxMessageBytes int) *Splitter {
	s := &Splitter{format: f, max: maxMessageBytes, delim: '\n'}
	if f == NUL {
		s.delim = 0
	}
	return s
}

// Split appends to recs the records that end in p, the first of them with what was unfinished before. Records without a timestamp of their own get now.
// Their slices point into p and into the splitter and are valid until the next call of Commit, Split or Final; p must stay as it is until Commit.
// The slice returned with an error is recs as it was given.
//
// ErrInvalidRecord where bytes are not in the format, ErrTooLarge where a record cannot fit into max.message.bytes any more.
func (s *Splitter) Split(p []byte, now int64, recs []storage.Record) ([]storage.Record, error) {
	if s.format == Batch || s.format == Whole {
		return recs, fmt.Errorf("split %s: %w", s.format, errWrongFormat)
	}
	s.begin()
	out, err := s.split(p, now, recs)
	if err != nil {
		s.Abort()
		return recs, err
	}
	s.open = true
	return out, nil
}

func (s *Splitter) split(p []byte, now int64, recs []storage.Record) ([]storage.Record, error) {
	var err error
	if s.n > 0 {
		i := bytes.IndexByte(p, s.delim)
		part := p
		if i >= 0 {
			part = p[:i]
		}
		if err := s.checkLen(s.n + len(part)); err != nil {
			return recs, err
		}
		s.buf = append(s.buf[:s.n], part...)
		if i < 0 {
			s.joined = true
			return recs, nil
		}
		if recs, err = s.record(recs, s.buf[:len(s.buf):len(s.buf)], now); err != nil {
			return recs, err
		}
		p = p[i+1:]
	}
	for {
		i := bytes.IndexByte(p, s.delim)
		if i < 0 {
			break
		}
		if recs, err = s.record(recs, p[:i:i], now); err != nil {
			return recs, err
		}
		p = p[i+1:]
	}
	if err := s.checkLen(len(p)); err != nil {
		return recs, err
	}
	s.left = p
	return recs, nil
}

// record appends the record that b is, b being without its delimiter and not nil.
func (s *Splitter) record(recs []storage.Record, b []byte, now int64) ([]storage.Record, error) {
	switch s.format {
	case KV:
		if i := bytes.IndexByte(b, '\t'); i >= 0 {
			return append(recs, storage.Record{Timestamp: now, Key: b[:i:i], Value: b[i+1:]}), nil
		}
	case JSON:
		if err := s.checkLen(len(b)); err != nil {
			return recs, err
		}
		if blank(b) {
			return recs, nil
		}
		r, err := s.parseJSON(b, now)
		if err != nil {
			return recs, err
		}
		return append(recs, r), nil
	case Lines, NUL, Batch, Whole:
	}
	return append(recs, storage.Record{Timestamp: now, Value: b}), nil
}

// begin forgets a Split that nobody committed.
func (s *Splitter) begin() {
	s.open, s.joined, s.left, s.whole = false, false, nil, nil
	if cap(s.text) > keepBytes {
		s.text = nil
	}
	if cap(s.headers) > keepHeaders {
		s.headers = nil
	}
	clear(s.headers) // they would keep the last request's buffer alive
	s.text, s.headers = s.text[:0], s.headers[:0]
}

// Commit takes the last Split's request as done: its records were appended, and what lies behind the last boundary is now the unfinished record.
func (s *Splitter) Commit() {
	if !s.open {
		return
	}
	if s.joined {
		s.n = len(s.buf)
	} else {
		if cap(s.buf) > keepBytes && len(s.left) < cap(s.buf)/4 {
			s.buf = nil
		}
		s.buf = append(s.buf[:0], s.left...)
		s.n = len(s.buf)
	}
	s.torn = false
	s.begin()
}

// Abort takes the last Split's request as refused: the unfinished record is what it was before.
func (s *Splitter) Abort() {
	s.torn = s.torn || s.n > 0
	s.begin()
}

// Torn reports that a request was refused that held more of the unfinished record, and that none was taken since. To store the record now would store
// half of it.
func (s *Splitter) Torn() bool { return s.torn }

// Pending reports whether there is an unfinished record.
func (s *Splitter) Pending() bool { return s.n > 0 }

// PendingBytes returns the length of the unfinished record.
func (s *Splitter) PendingBytes() int { return s.n }

// Drop forgets the unfinished record: it was appended as Final gave it, or given up.
func (s *Splitter) Drop() {
	s.begin()
	s.buf, s.n, s.torn = nil, 0, false
}

// Final returns the unfinished record as it is stored at the last close, nil where there is none, or the error that makes that impossible. It changes
// nothing: it serves as a check before, and Drop belongs behind the append. The record is valid until the next call of anything but Pending and Torn.
func (s *Splitter) Final(now int64) (*storage.Record, error) {
	s.begin()
	if s.n == 0 {
		return nil, nil
	}
	b := s.buf[:s.n:s.n]
	switch s.format {
	case Batch:
		return nil, fmt.Errorf("split %s: %w", s.format, errWrongFormat)
	case Whole:
		return &storage.Record{Timestamp: now, Value: b}, nil
	case Lines, NUL, KV, JSON:
	}
	recs, err := s.record(nil, b, now)
	if err != nil || len(recs) == 0 {
		return nil, err
	}
	return &recs[0], nil
}
