package handler

import (
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
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
		t.Errorf("somebody else has to wait %v", wait)
	}
	if wait := l.wait(1, now.Add(250*time.Millisecond)); wait != 250*time.Millisecond {
		t.Errorf("half a token: wait %v", wait)
	}
	if wait := l.wait(1, now.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("after the wait: wait %v", wait)
	}
	if l := newLimiter[int](Rate{Burst: 3}); l != nil {
		t.Error("no rate is a limit")
	}
	if wait := newLimiter[int](Rate{PerSecond: 0.5}).wait(1, now); wait != 0 {
		t.Errorf("a rate without burst lets nobody through: wait %v", wait)
	}
}

// Whoever keeps sending is remembered for as long as it takes, however many others come and go, and gets exactly the
// rate.
func TestLimiterDoesNotForgetWhoKeepsSending(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 1, Burst: 2})
	now := time.Now()
	allowed := 0
	for step := range 1000 {
		at := now.Add(time.Duration(step) * 100 * time.Millisecond)
		if l.wait(-1, at) == 0 {
			allowed++
		}
		l.wait(step, at)
	}
	if allowed != 2+99 {
		t.Errorf("%d of 100 s at 1 a second", allowed)
	}
}

func TestLimiterForgetsTheIdle(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 1, Burst: 2})
	now := time.Now()
	held := func() (n int) {
		for i := range l.shards {
			n += len(l.shards[i].young) + len(l.shards[i].old)
		}
		return n
	}
	for key := range 5000 {
		l.wait(key, now)
	}
	if held() != 5000 {
		t.Fatalf("%d are held", held())
	}
	for minutes := range 3 {
		for key := range 1000 { // enough to come by every shard
			l.wait(-key, now.Add(time.Duration(minutes+1)*time.Minute))
		}
	}
	if held() > 2000 {
		t.Errorf("%d are held", held())
	}
}

func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter[int](Rate{PerSecond: 0.001, Burst: 1})
	now := time.Now()
	for key := range 3 * limiterKeys {
		l.wait(key, now)
	}
	held := 0
	for i := range l.shards {
		held += len(l.shards[i].young) + len(l.shards[i].old)
	}
	if held > limiterKeys {
		t.Errorf("%d are held, more than %d", held, limiterKeys)
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
