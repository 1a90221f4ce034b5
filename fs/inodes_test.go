package fs

import (
	"fmt"
	"testing"
)

func TestInodesAreSharedByIdentity(t *testing.T) {
	tb := newInodeTable(nil)
	root := tb.get(1)
	a := tb.add(root, "x", &found{ino: 7, same: "v1"})
	if b := tb.add(root, "x", &found{ino: 7, same: "v1"}); b != a {
		t.Error("the same thing got another inode")
	}
	if b := tb.add(root, "x", &found{ino: 7, same: "v2"}); b == a {
		t.Error("another thing got the same inode")
	}
	if b, c := tb.add(root, "y", &found{ino: 8}), tb.add(root, "y", &found{ino: 8}); b == c || b.ino != c.ino {
		t.Error("what can grow must get a new inode with the same number at each lookup")
	}
	tb.removed(root, "x")
	if b := tb.add(root, "x", &found{ino: 7, same: "v1"}); b == a {
		t.Error("a removed directory came back")
	}
	tb.forget(a.id, 1)
	if tb.get(a.id) == nil {
		t.Error("forgotten too early")
	}
	tb.forget(a.id, 1)
	if tb.get(a.id) != nil {
		t.Error("not forgotten")
	}
	tb.forget(a.id, 1)
	tb.forget(1, 1)
	if tb.get(1) == nil {
		t.Error("the root was forgotten")
	}
}

func TestDynamicNamesAreBounded(t *testing.T) {
	tb := newInodeTable(nil)
	tb.limit = 10
	root := tb.get(1)
	var ids []uint64
	for i := range 30 {
		ids = append(ids, tb.add(root, fmt.Sprint(i), &found{ino: 2, dynamic: true}).id)
		tb.add(root, "0", &found{ino: 2, dynamic: true}) // always the latest but one
		tb.add(root, "plain", &found{ino: 3})
	}
	if _, names := tb.counts(); names != 10 {
		t.Errorf("%d names are kept, want 10", names)
	}
	gone := map[string]bool{}
	for len(tb.stale) > 0 {
		n := <-tb.stale
		gone[n.name] = true
	}
	if len(gone) != 20 || gone["0"] || gone["29"] || gone["plain"] || !gone["1"] {
		t.Errorf("handed to the notifier: %v", gone)
	}
	tb.forget(ids[29], 1)
	if _, names := tb.counts(); names != 9 {
		t.Errorf("%d names after one was forgotten, want 9", names)
	}
}

func TestAFullNotifierLosesNothing(t *testing.T) {
	tb := newInodeTable(nil)
	tb.limit = 1
	tb.stale = make(chan staleName, 2)
	root := tb.get(1)
	for i := range 10 {
		tb.add(root, fmt.Sprint(i), &found{ino: 2, dynamic: true})
	}
	if _, names := tb.counts(); names != 8 {
		t.Errorf("%d names, want the 8 that nobody was told of", names)
	}
}

func TestPath(t *testing.T) {
	tb := newInodeTable(nil)
	a := tb.add(tb.get(1), "orders", &found{ino: 5})
	b := tb.add(a, "0", &found{ino: 6})
	for in, want := range map[*inode]string{tb.get(1): "/", a: "/orders", b: "/orders/0", nil: "/"} {
		if got := in.path(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
