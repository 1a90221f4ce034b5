package fs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/logmount/logmount/storage"
)

func TestSettle(t *testing.T) {
	tp := storage.TopicPartition{Topic: "t", Partition: 3}
	for _, tc := range []struct {
		name string
		key  storage.TopicPartition
		do   func(s *settleTable, c *closing)
		want time.Duration // how long a look then waits
	}{
		{"nothing", tp, func(*settleTable, *closing) {}, 0},
		{"flushed, no release", tp, func(s *settleTable, c *closing) { s.flush(c) }, time.Second},
		{"flushed, another partition", storage.TopicPartition{Topic: "t", Partition: 4}, func(s *settleTable, c *closing) { s.flush(c) }, 0},
		{"flushed, undecided partition", storage.TopicPartition{Topic: "t", Partition: wholeTopic}, func(s *settleTable, c *closing) { s.flush(c) }, time.Second},
		{"used after the flush", tp, func(s *settleTable, c *closing) { s.flush(c); s.alive(c) }, 0},
		{"known to outlive", tp, func(s *settleTable, c *closing) { s.flush(c); s.alive(c); s.flush(c) }, 20 * time.Millisecond},
		{"outlived by the clock", tp, func(s *settleTable, c *closing) { s.flush(c); time.Sleep(2 * time.Second); s.flush(c) }, 20 * time.Millisecond},
		{"flushed twice: a duplicate is closed", tp, func(s *settleTable, c *closing) { s.flush(c); s.flush(c) }, 20 * time.Millisecond},
		{"flushed again and again", tp, func(s *settleTable, c *closing) {
			s.flush(c)
			for range 9 {
				s.flush(c)
				time.AfterFunc(15*time.Millisecond, func() { s.flush(c) })
			}
		}, 20 * time.Millisecond},
		{"released and done", tp, func(s *settleTable, c *closing) { s.flush(c); s.release(c); s.done(c) }, 0},
		{"released later", tp, func(s *settleTable, c *closing) {
			s.flush(c)
			time.AfterFunc(5*time.Millisecond, func() { s.release(c) })
			time.AfterFunc(7*time.Second, func() { s.done(c) })
		}, 7 * time.Second},
		{"released without a flush", tp, func(s *settleTable, c *closing) {
			s.release(c)
			time.AfterFunc(3*time.Second, func() { s.done(c) })
		}, 3 * time.Second},
		{"done without anything", tp, func(s *settleTable, c *closing) { s.done(c) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := newSettleTable(), &closing{key: tc.key}
				tc.do(s, c)
				began := time.Now()
				if err := s.wait(context.Background(), tp); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(began); got != tc.want {
					t.Errorf("waited %v, want %v", got, tc.want)
				}
				time.Sleep(10 * time.Second)
				s.done(c)
				if len(s.m) != 0 || s.busy.Load() != 0 {
					t.Errorf("left behind: %d partitions, %d busy", len(s.m), s.busy.Load())
				}
			})
		})
	}
}

func TestSettleIsInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tp := storage.TopicPartition{Topic: "t"}
		s, c := newSettleTable(), &closing{key: tp}
		s.release(c)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := s.wait(ctx, tp); err == nil {
			t.Error("wait of a cancelled look succeeded")
		}
		s.done(c)
	})
}
