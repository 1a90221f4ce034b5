package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

const (
	lineBytes  = 1000 // of a long line
	shortBytes = 100  // of a short one
)

// scaled is n at the scale of the run, at least least.
func (b *bench) scaled(n, least int) int { return max(least, int(float64(n)*b.o.scale)) }

func (b *bench) longLines() int    { return b.scaled(1_000_000, 1000) }
func (b *bench) totalBytes() int64 { return int64(b.longLines()) * lineBytes }
func (b *bench) opens() int        { return b.scaled(5000, 1000) }

// cases are all that is measured. A case makes what it needs.
func (b *bench) cases() []testCase {
	return []testCase{b.catIn(), b.shortWrites(), b.catOut(), b.catCold(), b.openRecords(), b.followLine(), b.fsynced(), b.jsonOut()}
}

// catIn writes long lines with cat(1).
func (b *bench) catIn() testCase {
	input, plain := b.path("input"), filepath.Join(b.plain, "copy")
	topic := func(round int) string { return filepath.Join(b.topics, "in"+strconv.Itoa(round)) }
	return testCase{
		name: "cat-in", what: fmt.Sprintf("cat of %d lines of %d bytes into tail", b.longLines(), lineBytes), limit: 1.6, bytes: b.totalBytes(),
		product: work{
			name:    "logmount",
			prepare: func(round int) error { return first(os.Mkdir(topic(round), 0o755), b.settle()) },
			do: func(round int) (time.Duration, error) {
				return b.command(input, filepath.Join(topic(round), "0/tail"), "cat")
			},
		},
		parts: []work{
			{name: "empty FUSE", do: func(int) (time.Duration, error) { return b.command(input, filepath.Join(b.empty, "sink"), "cat") }},
			{
				name:    "plain file",
				prepare: func(int) error { return first(remake(plain), b.settle()) },
				do:      func(int) (time.Duration, error) { return b.command(input, plain, "cat") },
			},
			{name: "empty FUSE, 512 KiB requests", aside: true, do: func(int) (time.Duration, error) {
				return b.command(input, filepath.Join(b.empty, "wide"), "cat")
			}},
		},
	}
}

// shortWrites is one writer that writes short lines, each with a write(2) of its own.
func (b *bench) shortWrites() testCase {
	n := b.scaled(100_000, 20_000)
	plain := filepath.Join(b.plain, "lines")
	lines := func(file string) func(int) (time.Duration, error) {
		return func(int) (time.Duration, error) {
			return b.role("@lines", file, strconv.Itoa(n), strconv.Itoa(shortBytes), "0")
		}
	}
	return testCase{
		name: "writes", what: fmt.Sprintf("%d lines of %d bytes, a write(2) each", n, shortBytes), limit: 1.5, count: n,
		before:  func() error { return first(os.Mkdir(filepath.Join(b.topics, "lines"), 0o755), remake(plain)) },
		product: work{name: "logmount", do: lines(filepath.Join(b.topics, "lines/0/tail"))},
		parts:   []work{{name: "empty FUSE", do: lines(filepath.Join(b.empty, "sink"))}, {name: "plain file", do: lines(plain)}},
	}
}

// catOut reads what lies in the page cache.
func (b *bench) catOut() testCase {
	tail := filepath.Join(b.topics, "read/0/tail")
	return testCase{
		name: "cat-out", what: fmt.Sprintf("cat tail of %d MB in the page cache", b.totalBytes()/1e6), limit: 1.6, bytes: b.totalBytes(),
		before: func() error {
			err := b.makeLog()
			for _, f := range []string{tail, b.path("input")} {
				if err == nil {
					_, err = b.cat(f)
				}
			}
			return err
		},
		product: work{name: "logmount", do: func(int) (time.Duration, error) { return b.cat(tail) }},
		parts: []work{
			{name: "empty FUSE", do: func(int) (time.Duration, error) { return b.cat(filepath.Join(b.empty, "zeros")) }},
			{name: "plain file", do: func(int) (time.Duration, error) { return b.cat(b.path("input")) }},
		},
	}
}

// catCold reads what has to come from the disk.
func (b *bench) catCold() testCase {
	c := b.catOut()
	c.name, c.what, c.largest = "cat-cold", fmt.Sprintf("cat tail of %d MB, caches dropped", b.totalBytes()/1e6), true
	c.before = b.makeLog
	if os.Geteuid() != 0 {
		c.skip = "only root may drop the page cache"
	}
	drop := func(int) error { return first(b.settle(), os.WriteFile("/proc/sys/vm/drop_caches", []byte("3\n"), 0)) }
	c.product.prepare = drop
	for i := range c.parts {
		c.parts[i].prepare = drop
	}
	return c
}

// openRecords opens single records. A small file with a name that the kernel has not seen, through go-fuse's loopback, takes as many requests.
func (b *bench) openRecords() testCase {
	n := b.opens()
	file := func(i int) string { return filepath.Join(b.small, "f"+strconv.Itoa(i)) }
	open := func(dir, prefix string, from, to, round int) (time.Duration, error) {
		return b.role("@opens", dir, prefix, strconv.Itoa(from), strconv.Itoa(to), strconv.Itoa(n), strconv.Itoa(round))
	}
	return testCase{
		name: "record", what: fmt.Sprintf("open, read, close of %d random record/N", n), limit: 3, count: n,
		before: func() error {
			content := make([]byte, lineBytes-1)
			for i := range n * b.o.rounds {
				if err := os.WriteFile(file(i), content, 0o644); err != nil {
					return err
				}
			}
			return first(b.makeLog(), b.settle())
		},
		product: work{name: "logmount", do: func(round int) (time.Duration, error) {
			return open(filepath.Join(b.topics, "read/0/record"), "", 0, b.longLines(), round)
		}},
		parts: []work{{name: "loopback", do: func(round int) (time.Duration, error) { return open(b.loop, "f", round*n, (round+1)*n, round) }}},
	}
}

// followLine is the way of one line from a writer to a reader that waits for it.
func (b *bench) followLine() testCase {
	n := strconv.Itoa(b.scaled(500, 50))
	fifo, topic := b.path("fifo"), filepath.Join(b.topics, "live")
	return testCase{
		name: "follow", what: "a line from write(2) to a reader of follow", atMost: time.Millisecond,
		before: func() error { return first(os.Mkdir(topic, 0o755), unix.Mkfifo(fifo, 0o600)) },
		product: work{name: "logmount", do: func(int) (time.Duration, error) {
			return b.role("@latency", filepath.Join(topic, "0/follow"), filepath.Join(topic, "0/tail"), n)
		}},
		parts: []work{{name: "FIFO", do: func(int) (time.Duration, error) { return b.role("@latency", fifo, fifo, n) }}},
	}
}

// fsynced is one writer that waits for the disk after each line.
func (b *bench) fsynced() testCase {
	n := b.scaled(500, 50)
	plain := filepath.Join(b.plain, "synced")
	lines := func(file string) func(int) (time.Duration, error) {
		return func(int) (time.Duration, error) {
			return b.role("@lines", file, strconv.Itoa(n), strconv.Itoa(shortBytes), "1")
		}
	}
	return testCase{
		name: "fsync", what: fmt.Sprintf("%d lines of %d bytes, a write(2) and an fsync(2) each", n, shortBytes), count: n,
		before:  func() error { return first(os.Mkdir(filepath.Join(b.topics, "synced"), 0o755), remake(plain)) },
		product: work{name: "logmount", do: lines(filepath.Join(b.topics, "synced/0/tail"))},
		parts:   []work{{name: "empty FUSE", do: lines(filepath.Join(b.empty, "sink"))}, {name: "plain file", do: lines(plain)}},
	}
}

// jsonOut reads the log as JSON. What it is compared with is encoding as many records in memory.
func (b *bench) jsonOut() testCase {
	tail := filepath.Join(b.topics, "read/0/tail.json")
	n := b.longLines()
	return testCase{
		name: "json", what: fmt.Sprintf("cat tail.json of %d records", n), bytes: encodeAll(n, nil),
		before: func() error {
			err := b.makeLog()
			if err == nil {
				_, err = b.cat(tail) // works the size out, which is kept
			}
			return err
		},
		product: work{name: "logmount", do: func(int) (time.Duration, error) { return b.cat(tail) }},
		parts: []work{{name: "encode", do: func(int) (time.Duration, error) {
			var took time.Duration
			encodeAll(n, &took)
			return took, nil
		}}},
	}
}

// encodeAll encodes n records as JSON and returns how many bytes that makes.
func encodeAll(n int, took *time.Duration) int64 {
	value := make([]byte, lineBytes-1)
	fillLine(value, rand.New(rand.NewPCG(1, 1)))
	r := storage.Record{Timestamp: 1_700_000_000_000, Value: value}
	var buf []byte
	var total int64
	start := time.Now()
	for i := range n {
		r.Offset = storage.Offset(i)
		buf = format.JSON.Append(buf[:0], &r)
		total += int64(len(buf))
	}
	if took != nil {
		*took = time.Since(start)
	}
	return total
}

func (b *bench) cat(file string) (time.Duration, error) { return b.command("", "", "cat", file) }

// makeInput writes the file of long lines.
func (b *bench) makeInput() error {
	var st unix.Statfs_t
	if err := unix.Statfs(b.dir, &st); err != nil {
		return err
	}
	if need := b.totalBytes() * int64(b.o.rounds+4); int64(st.Bavail)*st.Bsize < need {
		return fmt.Errorf("%s: %d MB are needed: give another directory with -dir, or a smaller -scale", b.dir, need/1e6)
	}
	f, err := os.Create(b.path("input"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(2, 2))
	line := make([]byte, lineBytes)
	line[lineBytes-1] = '\n'
	for i := range b.longLines() {
		if i%16 == 0 {
			fillLine(line[:lineBytes-1], r)
		}
		copy(line, fmt.Sprintf("%09d ", i))
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}

func fillLine(b []byte, r *rand.Rand) {
	for i := range b {
		b[i] = 'a' + byte(r.IntN(26))
	}
}

// makeLog writes the log that is read, once.
func (b *bench) makeLog() error {
	topic := filepath.Join(b.topics, "read")
	if _, err := os.Stat(topic); err == nil {
		return nil
	}
	if err := os.Mkdir(topic, 0o755); err != nil {
		return err
	}
	_, err := b.command(b.path("input"), filepath.Join(topic, "0/tail"), "cat")
	return first(err, b.settle())
}

// remake makes an empty file.
func remake(file string) error {
	_ = os.Remove(file)
	return os.WriteFile(file, nil, 0o644)
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
