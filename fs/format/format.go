package format

import (
	"github.com/logmount/logmount/storage"
)

// Format says how records look as bytes.
type Format int

// The formats. The zero value is the one without a suffix.
const (
	Lines Format = iota // value, newline
	NUL                 // value, NUL
	KV                  // key, TAB, value, newline
	JSON                // one JSON object a line, lossless
	Batch               // record batches as they lie on disk
	Whole               // write only: everything written through one open file is one record
)

var suffixes = [...]string{Lines: "", NUL: "nul", KV: "kv", JSON: "json", Batch: "batch", Whole: "whole"}

// Parse returns the format that a file name's suffix stands for, without its dot. The empty suffix is Lines.
func Parse(suffix string) (Format, bool) {
	for f, s := range suffixes {
		if s == suffix {
			return Format(f), true
		}
	}
	return 0, false
}

// String returns the suffix that names the format; "lines" for the one that has none.
func (f Format) String() string {
	if f == Lines {
		return "lines"
	}
	return f.Suffix()
}

// Suffix returns what Parse takes, and "" for a number that is no format.
func (f Format) Suffix() string {
	if f < 0 || int(f) >= len(suffixes) {
		return ""
	}
	return suffixes[f]
}

// Readable reports whether a view can have the format: all but Whole.
func (f Format) Readable() bool { return f >= Lines && f < Whole }

var (
	measureLines = &storage.Measure{Name: "lines", PerRecord: 1, PerValueByte: 1}
	measureNUL   = &storage.Measure{Name: "nul", PerRecord: 1, PerValueByte: 1}
	measureKV    = &storage.Measure{Name: "kv", PerRecord: 2, PerKeyByte: 1, PerValueByte: 1}
	measureJSON  = &storage.Measure{Name: "json", Size: SizeJSON}
	measureBatch = &storage.Measure{Name: "batch", Batches: true}
)

// Measure returns the measure in which a view's bytes are counted, always the same pointer for a format; nil for one that is not readable.
func (f Format) Measure() *storage.Measure {
	switch f {
	case Lines:
		return measureLines
	case NUL:
		return measureNUL
	case KV:
		return measureKV
	case JSON:
		return measureJSON
	case Batch:
		return measureBatch
	case Whole:
	}
	return nil
}

// Append adds the bytes of r to dst. It allocates nothing but room in dst. Batch and Whole are no encodings of a single record and add nothing.
func (f Format) Append(dst []byte, r *storage.Record) []byte {
	switch f {
	case Lines:
		return append(append(dst, r.Value...), '\n')
	case NUL:
		return append(append(dst, r.Value...), 0)
	case KV:
		dst = append(append(dst, r.Key...), '\t')
		return append(append(dst, r.Value...), '\n')
	case JSON:
		return AppendJSON(dst, r)
	case Batch, Whole:
	}
	return dst
}
