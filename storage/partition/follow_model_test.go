package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"slices"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/record"
	"github.com/logmount/logmount/storage/state"
)

// mbatch is a batch of a model's log.
type mbatch struct {
	base, next storage.Offset
	recs       []storage.Record
	bytes      []byte
}

// mseg is a segment of it.
type mseg struct {
	base    storage.Offset
	batches []mbatch
}

func (s *mseg) bytes() (p []byte) {
	for _, b := range s.batches {
		p = append(p, b.bytes...)
	}
	return p
}

// model is a log that a broker writes, with batches of its own making: it is cut and compacted as well.
type model struct {
	t    *testing.T
	b    *broker
	segs []*mseg
	next storage.Offset
	tag  int
}

func (m *model) last() *mseg { return m.segs[len(m.segs)-1] }

func (m *model) rec(o storage.Offset) storage.Record {
	return storage.Record{Offset: o, Timestamp: 1000 + int64(o), Value: []byte(fmt.Sprintf("%d.%d%s", o, m.tag, "xxxxxxxxxxxxxxxxxx"[:m.tag%17]))}
}

func encodeBatch(t *testing.T, base, next storage.Offset, recs []storage.Record) mbatch {
	t.Helper()
	h := record.NewHeader(recs, 0)
	h.BaseOffset, h.LastOffsetDelta = base, int32(next-base-1)
	if len(recs) == 0 {
		h.BaseTimestamp = 1000
	}
	p, err := record.Encode(nil, h, recs, record.None)
	if err != nil {
		t.Fatal(err)
	}
	return mbatch{base, next, recs, p}
}

func (m *model) append(n int) {
	var recs []storage.Record
	for i := range n {
		recs = append(recs, m.rec(m.next+storage.Offset(i)))
	}
	b := encodeBatch(m.t, m.next, m.next+storage.Offset(n), recs)
	s := m.last()
	m.b.write(m.b.path(s.base, state.ExtLog), b.bytes, int64(len(s.bytes())))
	s.batches = append(s.batches, b)
	m.next = b.next
}

func (m *model) roll() {
	if len(m.last().batches) == 0 {
		return
	}
	m.b.create(m.next)
	m.segs = append(m.segs, &mseg{base: m.next})
}

func (m *model) rm(base storage.Offset) {
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		if err := m.b.fs.Rename(m.b.path(base, ext), m.b.path(base, ext)+state.SuffixDeleted); err != nil {
			m.t.Fatal(err)
		}
	}
}

// cut truncates as a follower does.
func (m *model) cut(i, keep int) {
	for len(m.segs)-1 > i {
		m.rm(m.last().base)
		m.segs = m.segs[:len(m.segs)-1]
	}
	s := m.last()
	s.batches = s.batches[:keep:keep]
	f, err := m.b.fs.OpenFile(m.b.path(s.base, state.ExtLog), os.O_RDWR, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(int64(len(s.bytes()))), f.Close()); err != nil {
		m.t.Fatal(err)
	}
	m.next = s.base
	if keep > 0 {
		m.next = s.batches[keep-1].next
	}
	m.tag++
}

// compact rewrites segments i..j into one.
func (m *model) compact(r *rand.Rand, i, j int) {
	out := &mseg{base: m.segs[i].base}
	for k := i; k <= j; k++ {
		for n, b := range m.segs[k].batches {
			var recs []storage.Record
			for _, x := range b.recs {
				if r.Intn(3) > 0 {
					recs = append(recs, x)
				}
			}
			if len(recs) == 0 && (k < j || n < len(m.segs[k].batches)-1) {
				continue
			}
			out.batches = append(out.batches, encodeBatch(m.t, b.base, b.next, recs))
		}
	}
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		var p []byte
		if ext == state.ExtLog {
			p = out.bytes()
		}
		putFile(m.t, m.b.fs, m.b.path(out.base, ext)+state.SuffixSwap, p)
	}
	for k := i; k <= j; k++ {
		m.rm(m.segs[k].base)
	}
	for _, ext := range []string{state.ExtLog, state.ExtIndex, state.ExtTimeIndex} {
		if err := m.b.fs.Rename(m.b.path(out.base, ext)+state.SuffixSwap, m.b.path(out.base, ext)); err != nil {
			m.t.Fatal(err)
		}
	}
	m.segs = slices.Replace(m.segs, i, j+1, out)
}

func (m *model) recs() (all []storage.Record) {
	for _, s := range m.segs {
		for _, b := range s.batches {
			all = append(all, b.recs...)
		}
	}
	return all
}

// TestFollowingModel: whatever a broker does to a log, and however looks at it are interrupted, the next look shows it, tells of every cut, and who reads on gets
// each record once and in order.
func TestFollowingModel(t *testing.T) {
	for seed := range int64(150) {
		r := rand.New(rand.NewSource(seed))
		b, d := newBroker(t)
		m := &model{t: t, b: b, segs: []*mseg{{base: 0}}}
		l := d.open(t)
		first := snap(t, l)
		cur := first.Records(0)
		gen := first.Generation()
		var got []storage.Record
		seen, compacted, cutSince := storage.Offset(0), false, false
		var cutBelow storage.Offset = 1<<63 - 1 // lowest cut since the cursor last looked
		for step := range 60 {
			var what string
			switch k := r.Intn(14); {
			case k < 5:
				n := 1 + r.Intn(4)
				what = fmt.Sprint("append ", n)
				m.append(n)
			case k < 7:
				what = "roll"
				m.roll()
			case k == 7 && len(m.segs) > 2:
				what = "drop"
				m.rm(m.segs[0].base)
				m.segs = m.segs[1:]
			case k == 8 && !compacted:
				i := r.Intn(len(m.segs))
				keep := r.Intn(len(m.segs[i].batches) + 1)
				what = fmt.Sprint("cut ", i, " ", keep)
				m.cut(i, keep)
				cutSince = true
				if m.next < seen {
					cutBelow = min(cutBelow, m.next)
				}
			case k == 9 && len(m.segs) > 1 && !cutSince:
				compacted = true // nobody can tell the two apart where both happen between two looks
				i := r.Intn(len(m.segs) - 1)
				j := i + r.Intn(len(m.segs)-1-i)
				what = fmt.Sprint("compact ", i, " ", j)
				m.compact(r, i, j)
			default:
				what = "nothing"
			}
			d.now += int64([]int{0, 1, 20, 3000}[r.Intn(4)])
			if d.now += 1; r.Intn(4) == 0 {
				_, _ = l.Snapshot(&countdown{Context: context.Background(), n: r.Intn(4)})
			}
			if r.Intn(3) == 0 {
				continue // nobody looks
			}
			when := fmt.Sprintf("seed %d step %d %s", seed, step, what)
			s := snap(t, l)
			if s.End() != m.next {
				t.Fatalf("%s: end %d, want %d", when, s.End(), m.next)
			}
			compacted, cutSince = false, false
			want := m.recs()
			if err := sameRecords(readFrom(t, s, s.Start()), want); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if err := checkSnapshot(s, want); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			cut := s.Unchanged(gen)
			if cut > cutBelow {
				t.Fatalf("%s: unchanged below %d, cut at %d", when, cut, cutBelow)
			}
			if cur.Offset() > cut || cur.Offset() < s.Start() {
				cur.Close()
				cur, got = s.Records(s.Start()), nil
			}
			gen, cutBelow, seen = s.Generation(), 1<<63-1, s.End()
			cur.Advance(s)
			for n := r.Intn(12); n > 0; n-- {
				x, err := cur.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if errors.Is(err, storage.ErrOffsetGone) {
					cur.Close()
					cur, got = s.Records(s.Start()), nil
					break
				}
				if err != nil {
					t.Fatalf("%s: follower: %v", when, err)
				}
				if len(got) > 0 && x.Offset <= got[len(got)-1].Offset {
					t.Fatalf("%s: follower: %d after %d", when, x.Offset, got[len(got)-1].Offset)
				}
				if i, ok := slices.BinarySearchFunc(want, x.Offset, func(w storage.Record, o storage.Offset) int { return int(w.Offset - o) }); ok && string(want[i].Value) != string(x.Value) {
					t.Fatalf("%s: follower: offset %d is %q, want %q", when, x.Offset, x.Value, want[i].Value)
				}
				if len(got) > 0 {
					from := got[len(got)-1].Offset
					for _, w := range want {
						if w.Offset > from && w.Offset < x.Offset {
							t.Fatalf("%s: follower: %d left out between %d and %d", when, w.Offset, from, x.Offset)
						}
					}
				}
				got = append(got, clone(x))
			}
		}
		cur.Close()
		for _, w := range d.said {
			t.Fatalf("seed %d said %q", seed, w)
		}
	}
}

// countdown is a context that ends when it is asked for the n-th time.
type countdown struct {
	context.Context //nolint:containedctx // it is one
	n               int
}

// Err implements context.Context.
func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}
