package fs

import (
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"pgregory.net/rapid"
)

func lock(typ uint32, start, end uint64) *fuse.FileLock {
	return &fuse.FileLock{Typ: typ, Start: start, End: end, Pid: 7}
}

const (
	rd = syscall.F_RDLCK
	wr = syscall.F_WRLCK
	un = syscall.F_UNLCK

	toEOF = 1<<63 - 1
)

func TestLocksExclude(t *testing.T) {
	type step struct {
		ino, owner uint64
		lk         *fuse.FileLock
		flags      uint32
		want       syscall.Errno
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"readers share, a writer does not", []step{{1, 1, lock(rd, 0, toEOF), 0, 0}, {1, 2, lock(rd, 5, 6), 0, 0}, {1, 3, lock(wr, 6, 6), 0, syscall.EAGAIN}, {1, 3, lock(wr, 6, 6), fuse.LK_FLOCK, 0}}},
		{"files are apart", []step{{1, 1, lock(wr, 0, toEOF), 0, 0}, {2, 2, lock(wr, 0, toEOF), 0, 0}}},
		{"ranges are apart", []step{{1, 1, lock(wr, 0, 9), 0, 0}, {1, 2, lock(wr, 10, 19), 0, 0}, {1, 2, lock(wr, 9, 9), 0, syscall.EAGAIN}}},
		{"an owner is not in its own way", []step{{1, 1, lock(wr, 0, 9), 0, 0}, {1, 1, lock(rd, 3, 5), 0, 0}, {1, 2, lock(rd, 4, 4), 0, 0}, {1, 2, lock(rd, 4, 6), 0, syscall.EAGAIN}}},
		{"a hole in the middle", []step{{1, 1, lock(wr, 0, 9), 0, 0}, {1, 1, lock(un, 3, 5), 0, 0}, {1, 2, lock(wr, 3, 5), 0, 0}, {1, 2, lock(wr, 2, 2), 0, syscall.EAGAIN}, {1, 2, lock(wr, 6, 6), 0, syscall.EAGAIN}}},
		{"a refused flock conversion gives up the old lock", []step{{1, 1, lock(rd, 0, toEOF), fuse.LK_FLOCK, 0}, {1, 2, lock(rd, 0, toEOF), fuse.LK_FLOCK, 0}, {1, 1, lock(wr, 0, toEOF), fuse.LK_FLOCK, syscall.EAGAIN}, {1, 2, lock(wr, 0, toEOF), fuse.LK_FLOCK, 0}}},
		{"nonsense", []step{{1, 1, lock(9, 0, 1), 0, syscall.EINVAL}, {1, 1, lock(wr, 2, 1), 0, syscall.EINVAL}, {1, 1, lock(un, 0, toEOF), 0, 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := newLockTable()
			for i, s := range tt.steps {
				if got := table.setlk(nil, s.ino, s.owner, s.owner, s.lk, s.flags, false); got != s.want {
					t.Errorf("step %d: got %v, want %v", i, got, s.want)
				}
			}
		})
	}
}

func TestGetlkNamesTheHolder(t *testing.T) {
	table := newLockTable()
	table.setlk(nil, 1, 1, 1, lock(wr, 10, 19), 0, false)
	var out fuse.FileLock
	table.getlk(1, 2, lock(rd, 0, 12), 0, &out)
	if want := (fuse.FileLock{Start: 10, End: 19, Typ: wr, Pid: 7}); out != want {
		t.Errorf("got %+v, want %+v", out, want)
	}
	for _, free := range []struct {
		owner uint64
		lk    *fuse.FileLock
		flags uint32
	}{{1, lock(wr, 0, 99), 0}, {2, lock(wr, 20, 99), 0}, {2, lock(wr, 0, 99), fuse.LK_FLOCK}} {
		table.getlk(1, free.owner, free.lk, free.flags, &out)
		if out.Typ != un {
			t.Errorf("%+v: got %+v, want unlocked", free, out)
		}
	}
}

func TestLocksEndWithTheirOwners(t *testing.T) {
	table := newLockTable()
	table.setlk(nil, 1, 100, 1, lock(wr, 0, 9), 0, false)
	table.setlk(nil, 1, 101, 2, lock(wr, 10, 19), 0, false)
	table.setlk(nil, 1, 100, 3, lock(wr, 0, toEOF), fuse.LK_FLOCK, false)
	table.releaseOwner(1, 1) // a FLUSH: leaves flock locks alone, and other owners
	if got := table.setlk(nil, 1, 102, 4, lock(wr, 0, 9), 0, false); got != 0 {
		t.Errorf("after the owner's close: got %v", got)
	}
	if got := table.setlk(nil, 1, 102, 4, lock(wr, 0, toEOF), fuse.LK_FLOCK, false); got != syscall.EAGAIN {
		t.Errorf("flock after a close: got %v, want EAGAIN", got)
	}
	table.releaseHandle(100)
	if got := table.setlk(nil, 1, 102, 4, lock(wr, 0, toEOF), fuse.LK_FLOCK, false); got != 0 {
		t.Errorf("flock after the last close: got %v", got)
	}
	table.releaseHandle(101)
	table.releaseHandle(102)
	table.releaseHandle(103)
	if table.held() != 0 || len(table.files) != 0 || len(table.handles) != 0 {
		t.Errorf("something is left: %+v", table)
	}
}

func TestLocksAreWaitedFor(t *testing.T) {
	table := newLockTable()
	table.setlk(nil, 1, 1, 1, lock(wr, 0, toEOF), 0, false)
	got := make(chan syscall.Errno)
	go func() { got <- table.setlk(nil, 1, 2, 2, lock(wr, 5, 5), 0, true) }()
	waitForWaiters(table, lockSpace{ino: 1}, 1)
	table.setlk(nil, 1, 1, 1, lock(un, 0, 4), 0, false) // wakes for nothing
	waitForWaiters(table, lockSpace{ino: 1}, 1)
	table.releaseOwner(1, 1)
	if e := <-got; e != 0 {
		t.Errorf("got %v, want 0", e)
	}

	cancel := make(chan struct{})
	go func() { got <- table.setlk(cancel, 1, 3, 3, lock(rd, 5, 5), 0, true) }()
	waitForWaiters(table, lockSpace{ino: 1}, 1)
	close(cancel)
	if e := <-got; e != syscall.EINTR {
		t.Errorf("interrupted: got %v, want EINTR", e)
	}

	go func() { got <- table.setlk(nil, 1, 3, 3, lock(rd, 5, 5), 0, true) }()
	waitForWaiters(table, lockSpace{ino: 1}, 1)
	table.close()
	table.close()
	if e := <-got; e != syscall.ENOLCK {
		t.Errorf("closed: got %v, want ENOLCK", e)
	}
	table.releaseHandle(2)
	if len(table.files) != 0 {
		t.Errorf("something is left: %+v", table.files)
	}
}

// Two that hold a shared flock and both want it exclusively must not wait for each other.
func TestFlockConversionsDoNotDeadlock(t *testing.T) {
	table := newLockTable()
	var wg sync.WaitGroup
	for owner := range uint64(2) {
		table.setlk(nil, 1, owner, owner, lock(rd, 0, toEOF), fuse.LK_FLOCK, false)
	}
	for owner := range uint64(2) {
		wg.Go(func() {
			if e := table.setlk(nil, 1, owner, owner, lock(wr, 0, toEOF), fuse.LK_FLOCK, true); e != 0 {
				t.Errorf("owner %d: got %v", owner, e)
			}
			table.releaseHandle(owner)
		})
	}
	wg.Wait()
}

func waitForWaiters(table *lockTable, space lockSpace, n int) {
	for {
		table.mu.Lock()
		f := table.files[space]
		there := f != nil && f.waiters == n
		table.mu.Unlock()
		if there {
			return
		}
	}
}

// The model keeps, for each byte, who has it and how.
func TestLocksModel(t *testing.T) {
	const size, owners = 12, 3
	rapid.Check(t, func(t *rapid.T) {
		table := newLockTable()
		var model [size][owners]uint32
		for b := range model {
			for o := range model[b] {
				model[b][o] = un
			}
		}
		conflict := func(owner int, lk *fuse.FileLock) bool {
			for b := lk.Start; b <= lk.End; b++ {
				for o, typ := range model[b] {
					if o != owner && typ != un && (typ == wr || lk.Typ == wr) {
						return true
					}
				}
			}
			return false
		}
		draw := func(t *rapid.T, types ...uint32) (int, *fuse.FileLock) {
			start := rapid.Uint64Range(0, size-1).Draw(t, "start")
			end := rapid.Uint64Range(start, size-1).Draw(t, "end")
			return rapid.IntRange(0, owners-1).Draw(t, "owner"), lock(rapid.SampledFrom(types).Draw(t, "type"), start, end)
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				owner, lk := draw(t, rd, wr, un)
				want := syscall.Errno(0)
				if lk.Typ != un && conflict(owner, lk) {
					want = syscall.EAGAIN
				} else {
					for b := lk.Start; b <= lk.End; b++ {
						model[b][owner] = lk.Typ
					}
				}
				if got := table.setlk(nil, 1, uint64(owner), uint64(owner), lk, 0, false); got != want {
					t.Fatalf("owner %d, %+v: got %v, want %v", owner, lk, got, want)
				}
			},
			"get": func(t *rapid.T) {
				owner, lk := draw(t, rd, wr)
				var out fuse.FileLock
				table.getlk(1, uint64(owner), lk, 0, &out)
				if got, want := out.Typ != un, conflict(owner, lk); got != want {
					t.Fatalf("owner %d, %+v: got %+v, want conflict %v", owner, lk, out, want)
				}
			},
			"close": func(t *rapid.T) {
				owner := rapid.IntRange(0, owners-1).Draw(t, "owner")
				if rapid.Bool().Draw(t, "last") {
					table.releaseHandle(uint64(owner))
				} else {
					table.releaseOwner(1, uint64(owner))
				}
				for b := range model {
					model[b][owner] = un
				}
			},
			"": func(t *rapid.T) {
				runs := 0
				for o := range owners {
					for b := range model {
						if model[b][o] != un && (b == 0 || model[b-1][o] != model[b][o]) {
							runs++
						}
					}
				}
				if got := table.held(); got != runs {
					t.Fatalf("got %d locks, want %d", got, runs)
				}
				if runs == 0 && len(table.files) != 0 {
					t.Fatal("an unlocked file is remembered")
				}
			},
		})
	})
}
