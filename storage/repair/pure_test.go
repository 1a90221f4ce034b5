package repair

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/state"
)

func TestEditPoints(t *testing.T) {
	tp := storage.TopicPartition{Topic: "b", Partition: 1}
	tests := []struct {
		name, raw string
		o         storage.Offset
		want      string
	}{
		{"change", "0\n3\na 0 1\nb 1 2\nc  0\t3\r\n", 7, "0\n3\na 0 1\nb 1 7\nc  0\t3\r\n"},
		{"add", "0\n1\na 0 1\n", 7, "0\n2\na 0 1\nb 1 7\n"},
		{"add without an end of line", "0\n1\na 0 1", 7, "0\n2\na 0 1\nb 1 7\n"},
		{"add to an empty file", "", 7, "0\n1\nb 1 7\n"},
		{"add to none", "0\n0\n", 7, "0\n1\nb 1 7\n"},
		{"remove", "0\n3\na 0 1\nb 1 2\nc 0 3\n", -1, "0\n2\na 0 1\nc 0 3\n"},
		{"remove what is not there", "0\n1\na 0 1\n", -1, "0\n1\na 0 1\n"},
		{"named twice", "0\n3\nb 1 1\na 0 1\nb 1 2\n", 3, "0\n2\nb 1 3\na 0 1\n"},
		{"an unusable line", "0\n2\nb 1 x\nb x 1\n", 3, "0\n2\nb 1 3\nb x 1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(editPoints([]byte(tt.raw), tp, tt.o)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got, want := string(salvagePoints([]byte("0\n9\na 0 1\nb 1 -2\nx y\n a 1 1\nc 0 3 4\nd 0 5\ne 0 12"))), "0\n2\na 0 1\nd 0 5\n"; got != want {
		t.Errorf("salvaged %q, want %q", got, want)
	}
}

func TestPickInterval(t *testing.T) {
	for _, tt := range []struct {
		b    bounds
		want int64
	}{
		{anyInterval, 4096}, {bounds{0, 5000}, 4096}, {bounds{150, 260}, 200}, {bounds{4097, 9000}, 5000}, {bounds{0, 1}, 0}, {bounds{0, 3}, 1}, {bounds{131, 137}, 131}, {bounds{95, 4000}, 1000},
	} {
		if got := tt.b.pick(4096); got != tt.want || !tt.b.has(got) {
			t.Errorf("%v: got %d, want %d", tt.b, got, tt.want)
		}
	}
}

func TestPlanEpochs(t *testing.T) {
	file := func(x ...int) state.Epochs {
		var e state.Epochs
		for i := 0; i < len(x); i += 2 {
			e = append(e, state.EpochEntry{Epoch: int32(x[i]), Start: storage.Offset(x[i+1])})
		}
		return e
	}
	tests := []struct {
		name    string
		batches []int32 // epochs of batches at offsets 0, 1, 2 and so on
		file    state.Epochs
		clean   bool
		want    state.Epochs
		patched map[int]int32
	}{
		{"all is well", []int32{0, 0, 3, 3}, file(0, 0, 3, 2), true, file(0, 0, 3, 2), nil},
		{"no file", []int32{0, 0, 3, 3}, nil, true, file(0, 0, 3, 2), nil},
		{"a single batch", []int32{0, 16, 0, 3}, file(0, 0, 3, 3), true, file(0, 0, 3, 3), map[int]int32{1: 0}},
		{"a single batch and no file", []int32{0, 0, 16, 3, 3}, nil, true, file(0, 0, 3, 3), map[int]int32{2: 0}},
		{"the first batch", []int32{9, 1, 1}, nil, true, file(1, 0), map[int]int32{0: 1}},
		{"the file is another log's", []int32{0, 0, 0, 3}, file(7, 0), true, file(0, 0, 3, 3), nil},
		{"an entry was lost", []int32{0, 0, 3, 3, 3}, file(0, 0), true, file(0, 0, 3, 2), nil},
		{"an entry was lost by a kill", []int32{0, 0, 3}, file(0, 0), false, file(0, 0, 3, 2), nil},
		{"the last batch", []int32{0, 0, 16}, file(0, 0), true, file(0, 0), map[int]int32{2: 0}},
		{"entries behind the end", []int32{0, 0}, file(0, 0, 5, 2, 7, 9), true, file(0, 0, 5, 2), nil},
		{"an election without records", []int32{0, 0, 4}, file(0, 0, 2, 2, 4, 2+0)[:1], false, file(0, 0, 4, 2), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var list []epochBatch
			for i, e := range tt.batches {
				list = append(list, epochBatch{first: storage.Offset(i), epoch: e})
			}
			p := planEpochs(list, tt.file, 0, storage.Offset(len(list)), tt.clean)
			if !slices.Equal(p.file, tt.want) {
				t.Errorf("file: got %v, want %v", p.file, tt.want)
			}
			if len(p.patches) != len(tt.patched) {
				t.Errorf("patched %v, want %v", p.patches, tt.patched)
			}
			for _, x := range p.patches {
				if to, ok := tt.patched[int(x.first)]; !ok || to != x.to {
					t.Errorf("patched %v, want %v", x, tt.patched)
				}
			}
		})
	}
}

// rangeOf makes a chain of batches of one record each.
func rangeOf(lo, hi int, crc uint32) []batch {
	var out []batch
	for o := lo; o < hi; o++ {
		out = append(out, batch{first: storage.Offset(o), crc: crc})
	}
	return out
}

func TestArrange(t *testing.T) {
	type log struct {
		base   int
		lo, hi int
	}
	tests := []struct {
		name string
		logs []log
		want []string
	}{
		{"in order", []log{{0, 0, 10}, {10, 10, 20}, {20, 20, 20}}, nil},
		{"with gaps", []log{{0, 3, 10}, {15, 17, 20}}, nil},
		{"a copy in the middle", []log{{0, 0, 10}, {5, 0, 10}, {10, 10, 20}}, []string{"set-aside 5"}},
		{"a copy behind", []log{{0, 0, 10}, {10, 10, 20}, {99, 0, 10}}, []string{"set-aside 99"}},
		{"a higher name", []log{{5, 0, 10}, {10, 10, 20}}, []string{"move 5 0"}},
		{"a lower name", []log{{0, 0, 10}, {5, 10, 20}}, []string{"move 5 10"}},
		{"swapped", []log{{0, 10, 20}, {10, 0, 10}}, []string{"move 0 10", "move 10 0"}},
		{"three in a circle", []log{{0, 10, 20}, {10, 20, 30}, {20, 0, 10}}, []string{"move 0 10", "move 10 20", "move 20 0"}},
		{"empty in the way", []log{{0, 0, 10}, {5, 5, 5}, {10, 10, 20}}, []string{"set-aside 5"}},
		{"overlap that both have", []log{{0, 0, 12}, {10, 10, 20}}, nil},
		{"overlap that the lower has alone", []log{{0, 0, 12}, {10, 12, 20}}, []string{"move 10 12"}},
		{"part of another", []log{{0, 0, 20}, {5, 5, 10}}, []string{"set-aside 5"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &Part{Dir: "t-0"}
			for _, l := range tt.logs {
				free := rangeOf(l.lo, l.hi, 1)
				named := slices.DeleteFunc(slices.Clone(free), func(b batch) bool { return b.first < storage.Offset(l.base) })
				p.chains = append(p.chains, chain{base: storage.Offset(l.base), named: named, free: free})
			}
			var got []string
			for _, a := range arrange(p) {
				from, _, _, _ := state.ParseFileName(path.Base(a.Path))
				s := fmt.Sprintf("%s %d", a.Kind, from)
				if a.Kind == Move {
					s += fmt.Sprintf(" %d", a.base)
				}
				got = append(got, s)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPlanLeavesWhatItCannotJudge(t *testing.T) {
	p := &Part{TP: storage.TopicPartition{Topic: state.MetadataTopic}, Dir: state.MetadataTopic + "-0", Raft: true, end: -1,
		Segments: []SegmentFiles{{Base: 0, Next: maxOffset, Size: 1000}}}
	l := &Layout{Parts: []*Part{p}}
	hole := inspect.Finding{Path: p.path(0, state.ExtLog), Pos: 100, End: 200, Offset: 5, What: inspect.BatchCRC, Severity: inspect.Damage}
	top := inspect.Finding{Path: state.TopicsFile, What: inspect.CatalogSyntax, Severity: inspect.Damage}
	note := inspect.Finding{Path: "x", What: inspect.DirName, Severity: inspect.Notice}
	got := Plan([]inspect.Finding{hole, top, note}, l)
	if len(got) != 2 || got[0].Kind != Leave || got[1].Kind != Leave || got[0].What != inspect.CatalogSyntax {
		t.Errorf("got %v", got)
	}
	torn := hole
	torn.End, torn.What = 1000, inspect.TornTail
	if got := Plan([]inspect.Finding{torn}, l); len(got) != 2 || got[0].Kind != Cut || got[1].Kind != Rebuild {
		t.Errorf("torn: got %v", got)
	}
}
