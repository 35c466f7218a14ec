package handler

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLimiter_Wait(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 2, Burst: 3})
	now := time.Now()
	for i := range 3 {
		if wait := l.wait(1, now); wait != 0 {
			t.Fatalf("request %d has to wait %v", i, wait)
		}
	}
	if wait := l.wait(1, now); wait != 500*time.Millisecond {
		t.Errorf("an empty bucket at 2 a second: wait %v", wait)
	}
	if wait := l.wait(2, now); wait != 0 {
		t.Errorf("another key has to wait %v", wait)
	}
	if wait := l.wait(1, now.Add(250*time.Millisecond)); wait != 250*time.Millisecond {
		t.Errorf("half a token: wait %v", wait)
	}
	if wait := l.wait(1, now.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("after the wait: wait %v", wait)
	}
	if l := newLimiter[int](Rate{Burst: 3}); l != nil {
		t.Error("a limiter without a rate")
	}
	if wait := newLimiter[int](Rate{PerSecond: 0.5}).wait(1, now); wait != 0 {
		t.Errorf("a rate without a burst: wait %v", wait)
	}
}

// A key that keeps sending gets exactly its rate, although many other keys come and go.
func TestLimiter_KeepsBusyKey(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 1, Burst: 2})
	now := time.Now()
	allowed := 0
	for step := range 1000 {
		at := now.Add(time.Duration(step) * 100 * time.Millisecond)
		if l.wait(-1, at) == 0 {
			allowed++
		}
		for other := range 200 {
			l.wait(step*200+other, at)
		}
	}
	if allowed != 2+99 {
		t.Errorf("%d in 100 s at 1 a second", allowed)
	}
}

func TestLimiter_IsBounded(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 0.001, Burst: 1})
	now := time.Now()
	for key := range limiterKeys + 1000 {
		l.wait(key, now)
	}
	if held := l.buckets.Len(); held != limiterKeys {
		t.Errorf("%d buckets, want %d", held, limiterKeys)
	}
}

// Concurrent first requests of a key share one bucket.
func TestLimiter_ConcurrentFirstRequests(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 0.001, Burst: 1})
	const keys = 20_000
	var allowed [keys]atomic.Int32
	var all sync.WaitGroup
	for range 4 { // all in the same order
		all.Go(func() {
			for key := range keys {
				if l.wait(key, time.Now()) == 0 {
					allowed[key].Add(1)
				}
			}
		})
	}
	all.Wait()
	for key := range keys {
		if n := allowed[key].Load(); n != 1 {
			t.Fatalf("key %d: %d requests passed, want 1", key, n)
		}
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := newLimiter[int](Rate{PerSecond: 1e9, Burst: 1e9})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			l.wait(i&1023, time.Now())
		}
	})
}
