package inspect

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
)

func TestMisplaced(t *testing.T) {
	encode := func(o storage.Offset) []byte {
		recs := []storage.Record{{Offset: o, Value: []byte("v")}, {Offset: o + 4, Value: []byte("w")}}
		b, err := record.Encode(nil, record.NewHeader(recs, 0), recs, record.None)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const last = storage.Offset(math.MaxInt64)
	for _, tt := range []struct {
		name   string
		offset storage.Offset // the batch has it and four more
		behind storage.Offset // the offset of the batch behind it; -1 for none
		place  Place
		why    string // part of it; "" where it fits
	}{
		{"where it is expected", 10, -1, Place{0, 10, last}, ""},
		{"where it is expected, whatever follows", 10, 12, Place{0, 10, last}, ""},
		{"behind missing offsets", 20, -1, Place{0, 10, last}, ""},
		{"behind missing offsets, as what follows", 20, 25, Place{0, 10, last}, ""},
		{"before what fits better", 20, 10, Place{0, 10, last}, "before a batch with offset 10, where 10 is expected"},
		{"before what reaches into it", 20, 24, Place{0, 10, last}, "before a batch with offset 24"},
		{"before what is wrong itself", 20, 9, Place{0, 10, last}, ""},
		{"too low", 9, -1, Place{0, 10, last}, "offsets 9 to 13 where 10 or more is expected"},
		{"the last of its segment", 10, -1, Place{0, 10, 15}, ""},
		{"into the next segment", 10, -1, Place{0, 10, 14}, "reach into the next segment, which starts at 14"},
		{"as far as an index reaches", 1<<31 - 5, -1, Place{0, 10, last}, ""},
		{"too far from the base", 1<<31 - 4, -1, Place{0, 10, last}, "too far from the segment's base 0"},
		{"far from a base that nobody knows", 1 << 40, -1, Place{-1, 10, last}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := encode(tt.offset)
			h, err := record.ParseHeader(log)
			if err != nil {
				t.Fatal(err)
			}
			end := storage.Pos(len(log))
			if tt.behind >= 0 {
				log = append(log, encode(tt.behind)...)
			}
			err = Misplaced(bytes.NewReader(log), &h, end, tt.place)
			if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("got %v, want %q", err, tt.why)
			}
		})
	}
}
