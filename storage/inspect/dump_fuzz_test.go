package inspect

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
	"github.com/logmount/logmount/storage/vfs"
	"github.com/logmount/logmount/storage/vfs/memfs"
)

// countingWriter counts what is written and checks that every line is a JSON object.
type countingWriter struct {
	tb   testing.TB
	rest []byte
	n    int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.n += len(b)
	w.rest = append(w.rest, b...)
	for {
		line, rest, ok := strings.Cut(string(w.rest), "\n")
		if !ok {
			return len(b), nil
		}
		if !json.Valid([]byte(line)) || line[0] != '{' {
			w.tb.Fatalf("not a JSON object: %.300q", line)
		}
		w.rest = []byte(rest)
	}
}

func FuzzDump(f *testing.F) {
	files, _ := sampleFiles(f)
	for name, b := range files {
		for i, kind := range FileKinds() {
			if string(identify(name).kind) == kind {
				f.Add(byte(i), b, files["00000000000000000100.log"], byte(0))
			}
		}
	}
	f.Add(byte(0), []byte("garbage"), []byte(nil), byte(1))
	names := []string{"00000000000000000100.log", "00000000000000000100.index", "00000000000000000100.timeindex", "00000000000000000100.txnindex",
		"00000000000000000100.sizeindex", "00000000000000000100.snapshot", state.RecoveryPointFile, state.EpochsFile, state.MetadataFile,
		state.MetaPropertiesFile, state.CleanMarkerFile, state.TopicsFile, quorumStateFile}
	f.Fuzz(func(t *testing.T, which byte, b, log []byte, how byte) {
		m := memfs.New()
		const dir = "/data/" + topicOffsets + "-0"
		if err := vfs.MkdirAll(m, dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := names[int(which)%len(names)]
		for n, b := range map[string][]byte{names[0]: log, name: b} {
			if err := vfs.WriteFile(m, dir+"/"+n, b, 0o600, nil); err != nil {
				t.Fatal(err)
			}
		}
		o := NewDumpOptions()
		o.JSON, o.Records = true, how&1 == 0
		o.Decode = append(Decoders(), "")[int(how>>1)%(len(Decoders())+1)]
		if how&0x40 != 0 {
			o.From, o.PosFrom, o.TimeFrom = 105, 70, 1700000000105
		}
		w := &countingWriter{tb: t}
		res, err := Dump(t.Context(), m, w, []string{"/data"}, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Dump(t.Context(), m, io.Discard, []string{"/data"}, func() DumpOptions { o.JSON = false; return o }())
		if err != nil || text != res {
			t.Fatalf("as text: %+v, %v; as JSON: %+v", text, err, res)
		}
		if _, err := GroupOffsets(t.Context(), m, []string{"/data"}, func(*storage.CorruptError) {}); err != nil {
			t.Fatal(err)
		}
	})
}
