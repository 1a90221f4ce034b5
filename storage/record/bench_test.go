package record

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/test/fixture"
)

func benchRecords(n, size int) []storage.Record {
	rng := rand.New(rand.NewPCG(1, 2))
	recs := make([]storage.Record, n)
	for i := range recs {
		v := make([]byte, size)
		for j := range v {
			v[j] = "abcdefghijklmnop"[rng.IntN(16)]
		}
		recs[i] = storage.Record{Offset: storage.Offset(i), Timestamp: 1700000000000 + int64(i), Value: v}
	}
	return recs
}

func BenchmarkRead(b *testing.B) {
	for _, codec := range codecs {
		for _, size := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%v/%d", codec, size), func(b *testing.B) {
				recs := benchRecords(16000/size, size)
				batch, err := Encode(nil, NewHeader(recs, 0), recs, codec)
				if err != nil {
					b.Fatal(err)
				}
				var r Reader
				var rec storage.Record
				b.SetBytes(int64(len(recs) * size))
				b.ReportAllocs()
				for b.Loop() {
					if err := CheckCRC(batch); err != nil {
						b.Fatal(err)
					}
					if err := r.Reset(batch); err != nil {
						b.Fatal(err)
					}
					for {
						ok, err := r.Next(&rec)
						if err != nil {
							b.Fatal(err)
						}
						if !ok {
							break
						}
					}
				}
			})
		}
	}
}

func BenchmarkSums(b *testing.B) {
	recs := benchRecords(160, 100)
	batch, err := Encode(nil, NewHeader(recs, 0), recs, None)
	if err != nil {
		b.Fatal(err)
	}
	var r Reader
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Reset(batch); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Sums(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			recs := benchRecords(n, 100)
			var w Builder
			var buf []byte
			b.SetBytes(int64(n * 100))
			b.ReportAllocs()
			for b.Loop() {
				w.Begin(buf[:0], 42, 0)
				for i := range recs {
					if w.SizeWith(&recs[i]) > 1<<20 {
						b.Fatal("too large")
					}
					w.Add(&recs[i])
				}
				buf = w.Finish()
			}
		})
	}
}

// TestAllocations holds the steady state to what the package promises.
func TestAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("pools drop at random under the race detector")
	}
	recs := benchRecords(50, 1000)
	recs[7].Headers = []storage.Header{{Key: []byte("k"), Value: []byte("v")}}
	var r Reader
	var rec storage.Record
	for _, codec := range codecs {
		batch, err := Encode(nil, NewHeader(recs, 0), recs, codec)
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(100, func() {
			if _, _, err := r.Validate(batch); err != nil {
				t.Fatal(err)
			}
			for ok := true; ok; {
				if ok, err = r.Next(&rec); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n > 0 {
			t.Errorf("reading a batch of %v: got %v allocations, want none", codec, n)
		}
	}
	var w Builder
	buf := make([]byte, 0, 1<<17)
	if n := testing.AllocsPerRun(100, func() {
		w.Begin(buf, 42, 0)
		for i := range recs {
			w.Add(&recs[i])
		}
		w.Finish()
	}); n > 0 {
		t.Errorf("building a batch: got %v allocations, want none", n)
	}
}
