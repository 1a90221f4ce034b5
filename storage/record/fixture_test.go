package record

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/test/fixture"
)

// archiveFiles returns the files of an archive whose names end in ext, by name.
func archiveFiles(t *testing.T, archive, ext string) map[string][]byte {
	t.Helper()
	f, err := os.Open(fixture.Path(t, archive))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, ext) {
			b, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = b
		}
	}
}

// TestBrokerLogs reads every batch that brokers wrote and writes it again: without compression it comes out as it was, with compression it holds the
// same records.
func TestBrokerLogs(t *testing.T) {
	for _, archive := range []string{"clean-4.4.0", "live-4.4.0", "killed-4.4.0"} {
		t.Run(archive, func(t *testing.T) {
			seen := map[Codec]int{}
			var r, again Reader
			for name, b := range archiveFiles(t, archive, ".log") {
				next := storage.Offset(-1)
				for pos := 0; pos < len(b); {
					f, err := ParseFrame(b[pos:])
					if errors.Is(err, ErrZero) || errors.Is(err, ErrTruncated) {
						break
					}
					if err != nil {
						t.Fatalf("%s at %d: %v", name, pos, err)
					}
					batch := b[pos : pos+int(f.Size)]
					pos += len(batch)
					h, sums, err := r.Validate(batch)
					if err != nil {
						t.Fatalf("%s: batch %d: %v", name, f.Offset, err)
					}
					if h.BaseOffset < next {
						t.Fatalf("%s: batch %d after %d", name, h.BaseOffset, next-1)
					}
					next = h.NextOffset()
					recs := readAllRecords(t, &r)
					if want := sumsOf(recs); sums != want {
						t.Fatalf("%s: batch %d: sums %+v, want %+v", name, f.Offset, sums, want)
					}
					codec := h.Attributes.Codec()
					seen[codec]++
					if !h.Attributes.LogAppendTime() { // else the stored deltas are the producer's
						rewritten, err := Encode(nil, h, recs, codec)
						if err != nil {
							t.Fatal(err)
						}
						if codec == None && !bytes.Equal(rewritten, batch) {
							t.Fatalf("%s: batch %d: written anew as %x, was %x", name, f.Offset, rewritten, batch)
						}
						if _, _, err := again.Validate(rewritten); err != nil {
							t.Fatal(err)
						}
						sameRecords(t, readAllRecords(t, &again), recs)
					}
					if h.Attributes.Control() {
						for i := range recs {
							if _, err := ParseControl(&recs[i]); err != nil {
								t.Errorf("%s: %v", name, err)
							}
						}
					}
				}
			}
			if archive != "killed-4.4.0" {
				for _, c := range codecs {
					if seen[c] == 0 {
						t.Errorf("no batch with codec %v", c)
					}
				}
			}
		})
	}
}

// TestBrokerTruth compares what we read with what other consumers read through the broker.
func TestBrokerTruth(t *testing.T) {
	starts := map[string]storage.Offset{"start-moved-0": 38}
	got := map[string]map[storage.Offset]storage.Record{}
	var r Reader
	for name, b := range archiveFiles(t, "clean-4.4.0", ".log") {
		part := path.Base(path.Dir(name))
		for len(b) > 0 {
			f, err := ParseFrame(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Reset(b[:f.Size]); err != nil {
				t.Fatal(err)
			}
			b = b[f.Size:]
			if r.Header().Attributes.Control() {
				continue
			}
			for _, rec := range readAllRecords(t, &r) {
				if rec.Offset < starts[part] {
					continue
				}
				if got[part] == nil {
					got[part] = map[storage.Offset]storage.Record{}
				}
				got[part][rec.Offset] = rec
			}
		}
	}
	if n := compareTruth(t, got, archiveFiles(t, "truth-4.4.0", ".uncommitted.jsonl")); n < 1000 {
		t.Errorf("only %d records compared", n)
	}
}

// compareTruth compares the records of partitions with the files that tell what others read of them, and returns the number of records.
func compareTruth(t *testing.T, got map[string]map[storage.Offset]storage.Record, files map[string][]byte) int {
	t.Helper()
	type line struct {
		Partition int         `json:"partition"`
		Offset    int64       `json:"offset"`
		Timestamp int64       `json:"timestamp"`
		Key       *string     `json:"key_base64"`
		Value     *string     `json:"value_base64"`
		Headers   [][]*string `json:"headers"`
	}
	bytesOf := func(s *string) []byte {
		if s == nil {
			return nil
		}
		b, err := base64.StdEncoding.DecodeString(*s)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{}, b...)
	}
	checked := 0
	for name, b := range files {
		topic := strings.TrimSuffix(path.Base(name), ".uncommitted.jsonl")
		seen := map[string]int{}
		s := bufio.NewScanner(bytes.NewReader(b))
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			var l line
			if err := json.Unmarshal(s.Bytes(), &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			part := fmt.Sprintf("%s-%d", topic, l.Partition)
			want := storage.Record{Offset: storage.Offset(l.Offset), Timestamp: l.Timestamp, Key: bytesOf(l.Key), Value: bytesOf(l.Value)}
			for _, h := range l.Headers {
				want.Headers = append(want.Headers, storage.Header{Key: []byte(*h[0]), Value: bytesOf(h[1])})
			}
			rec, ok := got[part][want.Offset]
			if !ok || !sameRecord(&rec, &want) {
				t.Fatalf("%s: got %+v, %v, want %+v", part, rec, ok, want)
			}
			seen[part]++
			checked++
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		for part, n := range seen {
			if n != len(got[part]) {
				t.Errorf("%s: got %d records, want %d", part, len(got[part]), n)
			}
		}
	}
	return checked
}
