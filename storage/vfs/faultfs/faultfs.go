// Package faultfs wraps a file system and makes chosen calls fail.
//
// Calls are counted from 0. A test that must hold whatever fails runs with FailAt(0), FailAt(1) and so on until a run has fewer calls than that:
//
//	for i := 0; ; i++ {
//		f := faultfs.New(memfs.New())
//		f.FailAt(i, syscall.EIO)
//		... // do it, and look at the wrapped file system without faults
//		if f.Calls() <= i {
//			break
//		}
//	}
//
// A call that is made to fail is not done at all, but for the short write of ShortAt. File.Close and Lock.Ours are neither counted nor made to fail.
package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"

	"github.com/logmount/logmount/storage/vfs"
)

// ErrInjected is the failure where none was given.
var ErrInjected = errors.New("injected failure")

// FS implements vfs.FS. It may be given new faults at any time.
type FS struct {
	inner vfs.FS

	mu      sync.Mutex // guards everything below; not held during a call
	calls   int
	only    []Op // nil: all
	failAt  map[int]error
	shortAt map[int]bool
	from    int // -1: none
	fromErr error
	hook    func(op Op, name string) error
	log     []string
}

var _ vfs.FS = (*FS)(nil)

// New wraps inner. Nothing fails until it is told to.
func New(inner vfs.FS) *FS {
	f := &FS{inner: inner}
	f.reset()
	return f
}

// Inner returns what is wrapped.
func (f *FS) Inner() vfs.FS { return f.inner }

// FailAt makes call number i fail with err, or with ErrInjected if that is nil. Several may be chosen.
func (f *FS) FailAt(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt[i] = err
}

// ShortAt makes call number i, if it is a write, write the first half of its bytes and then fail with ENOSPC; another call just fails.
func (f *FS) ShortAt(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shortAt[i] = true
}

// FailFrom makes all calls from number i on fail with err, or with ErrInjected if that is nil: the disk is gone.
func (f *FS) FailFrom(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.fromErr = i, err
}

// Only makes calls of these kinds count, and no others. With none all count.
func (f *FS) Only(ops ...Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.only = slices.Clone(ops)
}

// Hook is asked at every call, counted or not, and an error from it is that of the call. name is that of the file; of a rename the old one. It runs without
// a lock held, perhaps in several goroutines at once, and may call the wrapped file system. nil takes the hook away.
func (f *FS) Hook(hook func(op Op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

// Reset takes all faults, the hook and the choice of Only away and counts from 0 again.
func (f *FS) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset()
}

func (f *FS) reset() {
	f.calls, f.only, f.hook, f.log = 0, nil, nil, nil
	f.failAt, f.shortAt = make(map[int]error), make(map[int]bool)
	f.from, f.fromErr = -1, nil
}

// Calls returns how many calls have been counted.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Log returns the counted calls, each as its kind and name, with what was done to it.
func (f *FS) Log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// count notes a call and returns the error that it has to fail with, and whether a write has to be short.
func (f *FS) count(op Op, name, detail string) (short bool, err error) {
	v := f.decide(op, name, detail)
	if v.err == nil && v.hook != nil {
		v.err = v.hook(op, name)
	}
	if v.err == nil {
		return false, nil
	}
	return v.short, &fs.PathError{Op: op.String(), Path: name, Err: v.err}
}

// verdict is what is to become of a call.
type verdict struct {
	err   error
	short bool
	hook  func(op Op, name string) error // to be asked where err is nil
}

func (f *FS) decide(op Op, name, detail string) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := verdict{hook: f.hook}
	if len(f.only) > 0 && !slices.Contains(f.only, op) {
		return v
	}
	i := f.calls
	f.calls++
	err, failing := f.failAt[i]
	switch {
	case f.shortAt[i]:
		v.short, err, failing = true, syscall.ENOSPC, true
	case !failing && f.from >= 0 && i >= f.from:
		err, failing = f.fromErr, true
	}
	outcome := ""
	if failing {
		if err == nil {
			err = ErrInjected
		}
		v.err = err
		outcome = ": " + err.Error()
	}
	f.log = append(f.log, fmt.Sprintf("%d %v %s%s%s", i, op, name, detail, outcome))
	return v
}
