package state

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage"
)

func TestValidTopic(t *testing.T) {
	tests := []struct{ in, err string }{
		{"orders", ""},
		{"A-Z_a.z-09", ""},
		{"...", ""},
		{strings.Repeat("x", 249), ""},
		{"", "empty"},
		{".", "named"},
		{"..", "named"},
		{strings.Repeat("x", 250), "250 characters"},
		{"a/b", "holds '/'"},
		{"a b", "holds ' '"},
		{"ä", "holds 'ä'"},
		{"a\x00", `holds '\x00'`},
		{"\xff", "holds"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) { checkErr(t, ValidTopic(tt.in), storage.ErrInvalidName, tt.err) })
	}
}

func TestParseDirName(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	tests := []struct {
		in   string
		want DirName
		ok   bool
	}{
		{"orders-0", DirName{tp("orders", 0), DirNormal, ""}, true},
		{"a-b.c-2147483647", DirName{tp("a-b.c", math.MaxInt32), DirNormal, ""}, true},
		{"a--1", DirName{tp("a-", 1), DirNormal, ""}, true},
		{"__cluster_metadata-0", DirName{tp("__cluster_metadata", 0), DirNormal, ""}, true},
		{"orders-3." + id + "-delete", DirName{tp("orders", 3), DirDelete, id}, true},
		{"a.b-3." + id + "-stray", DirName{tp("a.b", 3), DirStray, id}, true},
		{"orders-3." + id + "-future", DirName{tp("orders", 3), DirFuture, id}, true},
		{"orders-delete-0", DirName{tp("orders-delete", 0), DirNormal, ""}, true},
		{"orders-2147483648", DirName{}, false},
		{"orders-01", DirName{}, false},
		{"orders-+1", DirName{}, false},
		{"orders", DirName{}, false},
		{"-0", DirName{}, false},
		{"orders-", DirName{}, false},
		{"orders-x", DirName{}, false},
		{"orders-3-delete", DirName{}, false},
		{"orders-3.-delete", DirName{}, false},
		{"orders." + id + "-delete", DirName{}, false},
		{"my topic-0", DirName{}, false},
		{"..-0", DirName{}, false},
		{"lost+found", DirName{}, false},
		{"remote-log-index-cache", DirName{}, false},
		{"", DirName{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := ParseDirName(tt.in)
			if (err == nil) != tt.ok || got != tt.want || err != nil && !errors.Is(err, storage.ErrInvalidName) {
				t.Fatalf("got %+v, %v, want %+v", got, err, tt.want)
			}
			if tt.ok && got.String() != tt.in {
				t.Errorf("written again as %s", got)
			}
		})
	}
}

func TestDeleteDirName(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	if got, want := DeleteDirName(tp("orders", 3), id), "orders-3."+id+"-delete"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := strings.Repeat("x", 249)
	got := DeleteDirName(tp(long, math.MaxInt32), id)
	d, err := ParseDirName(got)
	if len(got) != 255 || err != nil || d.Partition != math.MaxInt32 || d.Kind != DirDelete || d.ID != id || !strings.HasPrefix(long, d.Topic) {
		t.Errorf("got %s of %d characters: %+v, %v", got, len(got), d, err)
	}
}

func TestFileNames(t *testing.T) {
	for _, tt := range []struct {
		base storage.Offset
		want string
	}{{0, "00000000000000000000.log"}, {42, "00000000000000000042.log"}, {math.MaxInt64, "09223372036854775807.log"}} {
		if got := FileName(tt.base, ExtLog); got != tt.want {
			t.Errorf("%d: got %s, want %s", tt.base, got, tt.want)
		}
	}
	tests := []struct {
		in     string
		base   storage.Offset
		ext    string
		suffix string
		ok     bool
	}{
		{"00000000000000000042.log", 42, ExtLog, "", true},
		{"00000000000000000042.sizeindex", 42, ExtSizeIndex, "", true},
		{"00000000000000000042.timeindex.swap", 42, ExtTimeIndex, SuffixSwap, true},
		{"00000000000000000042.snapshot.deleted", 42, ExtSnapshot, SuffixDeleted, true},
		{"00000000000000000042.log.cleaned", 42, ExtLog, SuffixCleaned, true},
		{"00000000000000000042.log.torn", 42, ExtLog, SuffixTorn, true},
		{"00000000000000000042.sizeindex.tmp", 42, ExtSizeIndex, SuffixTemp, true},
		{"09223372036854775808.log", 0, "", "", false},
		{"0000000000000000042.log", 0, "", "", false},
		{"000000000000000000042.log", 0, "", "", false},
		{"0000000000000000004x.log", 0, "", "", false},
		{"00000000000000000042", 0, "", "", false},
		{"00000000000000000042.", 0, "", "", false},
		{"00000000000000000042.txt", 0, "", "", false},
		{"00000000000000000042.log.", 0, "", "", false},
		{"00000000000000000042.log.swap.swap", 0, "", "", false},
		{"00000000000000000042-0000000001.checkpoint", 0, "", "", false},
		{"leader-epoch-checkpoint", 0, "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			base, ext, suffix, ok := ParseFileName(tt.in)
			if base != tt.base || ext != tt.ext || suffix != tt.suffix || ok != tt.ok {
				t.Fatalf("got %d, %q, %q, %t", base, ext, suffix, ok)
			}
			if ok && FileName(base, ext+suffix) != tt.in {
				t.Errorf("written again as %s", FileName(base, ext+suffix))
			}
			isLog := tt.ok && tt.in == FileName(tt.base, ExtLog)
			wantBase := tt.base
			if !isLog {
				wantBase = 0
			}
			if base, ok := ParseLogName(tt.in); ok != isLog || base != wantBase {
				t.Errorf("as a log: got %d, %t, want %d, %t", base, ok, wantBase, isLog)
			}
		})
	}
}

func TestTornName(t *testing.T) {
	there := map[string]bool{}
	taken := func(name string) (bool, error) { return there[name], nil }
	for _, want := range []string{"a.log.torn", "a.log.2.torn", "a.log.3.torn"} {
		got, err := TornName("a.log", taken)
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		there[got] = true
	}
	if _, err := TornName("b.log", func(string) (bool, error) { return false, storage.ErrCorrupt }); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("got %v, want what kept it from looking", err)
	}
}
