package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMountOptions(t *testing.T) {
	u := func(n uint32) *uint32 { return &n }
	tests := []struct {
		name string
		in   []string
		want mountOptions
	}{
		{name: "none", want: mountOptions{batchSize: defaultBatchSize}},
		{name: "read only", in: []string{"ro"}, want: mountOptions{readOnly: true, batchSize: defaultBatchSize, given: []string{"ro"}}},
		{name: "the last of ro and rw", in: []string{"ro,rw"}, want: mountOptions{batchSize: defaultBatchSize, given: []string{"ro", "rw"}}},
		{name: "what fstab carries", in: []string{"defaults,noauto,user,nofail,_netdev,x-systemd.automount,nodev,nosuid,relatime,comment=x"}, want: mountOptions{batchSize: defaultBatchSize}},
		{name: "for the kernel", in: []string{"noatime,noexec"}, want: mountOptions{batchSize: defaultBatchSize, flags: []string{"noatime", "noexec"}, given: []string{"noatime", "noexec"}}},
		{name: "ids", in: []string{"uid=7,gid=0"}, want: mountOptions{uid: u(7), gid: u(0), batchSize: defaultBatchSize, given: []string{"uid=7", "gid=0"}}},
		{name: "umask is octal", in: []string{"umask=027"}, want: mountOptions{umask: u(0o27), batchSize: defaultBatchSize, given: []string{"umask=027"}}},
		{name: "batch size, repeated -o", in: []string{"batch.size=1024", "allow_other"}, want: mountOptions{allowOther: true, batchSize: 1024, given: []string{"batch.size=1024", "allow_other"}}},
		{name: "isolation", in: []string{"isolation=read_committed"}, want: mountOptions{committed: true, batchSize: defaultBatchSize, given: []string{"isolation=read_committed"}}},
		{name: "the last isolation", in: []string{"isolation=read_committed,isolation=read_uncommitted"}, want: mountOptions{batchSize: defaultBatchSize, given: []string{"isolation=read_committed", "isolation=read_uncommitted"}}},
		{name: "empty parts", in: []string{",,ro,", ""}, want: mountOptions{readOnly: true, batchSize: defaultBatchSize, given: []string{"ro"}}},
	}
	same := func(a, b *uint32) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseMountOptions(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got.readOnly != tt.want.readOnly || got.allowOther != tt.want.allowOther || got.batchSize != tt.want.batchSize || got.committed != tt.want.committed ||
				!same(got.uid, tt.want.uid) || !same(got.gid, tt.want.gid) || !same(got.umask, tt.want.umask) || !slices.Equal(got.given, tt.want.given) || !slices.Equal(got.flags, tt.want.flags) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseMountOptionsRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"frobnicate", `unknown option "frobnicate": known are ro, rw, allow_other`},
		{"read-write", "unknown option"},
		{"batch=loose", "exact is the only value"},
		{"batch", "needs a value"},
		{"assume-unreplicated=", "needs a value"},
		{"RO", "unknown option"},
		{"ro=1", "unknown option"},
		{"uid", "needs a value"},
		{"uid=", "needs a value"},
		{"uid=root", "not a numeric id"},
		{"gid=-1", "not a numeric id"},
		{"uid=4294967295", "not a numeric id"},
		{"umask=89", "not an octal number"},
		{"umask=7777", "not an octal number"},
		{"isolation", "needs a value"},
		{"isolation=serializable", "read_uncommitted (the default) or read_committed"},
		{"batch.size=0", "not a number of bytes"},
		{"batch.size=1e6", "not a number of bytes"},
		{"batch.size=99999999999999999999", "not a number of bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			_, err := parseMountOptions([]string{tt.in})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func FuzzParseMountOptions(f *testing.F) {
	f.Add("ro,uid=5,x-a,umask=022")
	f.Add("batch.size=16384,,defaults")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseMountOptions([]string{s})
		if err != nil {
			return
		}
		if got.batchSize < minBatchSize || got.batchSize > maxBatchSize {
			t.Errorf("%q: batch size %d", s, got.batchSize)
		}
		again, err := parseMountOptions([]string{strings.Join(got.given, ",")})
		if err != nil || !slices.Equal(again.given, got.given) {
			t.Errorf("%q: what is handed to the daemon reads as %v, %v; want %v", s, again.given, err, got.given)
		}
	})
}
