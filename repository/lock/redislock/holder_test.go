package redislock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/holdertest"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
	"seckill/service/lock"
)

// TestHolder_Forgotten: a holder whose goroutine is gone without a release does not keep its lock for ever, even though
// the context that it acquired with never ends.
func TestHolder_Forgotten(t *testing.T) {
	r := newRig(t, redislock.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease, err := r.locker.Acquire(context.Background(), key)
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(2 * testLease) // without renewals, the lease would run out at the server
		if lease.Context().Err() != nil {
			t.Error("not renewed while it was held")
		}
	}()
	<-done
	wait.Until(t, "the lock is given back", func() bool {
		runtime.GC()
		return r.depth(t) == "0"
	})
}

// TestHolder_LeaseInUseIsNotForgotten: a caller that keeps only the context, or one derived from it, still holds the lock.
func TestHolder_LeaseInUseIsNotForgotten(t *testing.T) {
	r := newRig(t, redislock.Options{})
	type name struct{}
	ctx := func() context.Context {
		return context.WithValue(mustAcquireIn(t, context.Background(), r.locker).Context(), name{}, 1)
	}()
	// Without renewals, the lease would run out at the server in this time.
	for end := time.Now().Add(3 * testLease); time.Now().Before(end); time.Sleep(testLease / 10) {
		runtime.GC()
		if d := r.depth(t); d != "1" {
			t.Fatalf("depth %s", d)
		}
	}
	inner := mustAcquireIn(t, ctx, r.locker) // re-entry from it still works
	if d := r.depth(t); d != "2" {
		t.Fatalf("depth %s", d)
	}
	mustRelease(t, inner)
}

func mustAcquireIn(t *testing.T, ctx context.Context, l lock.Locker) lock.Lease {
	t.Helper()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestHolder_InnerLeaseForgotten: the outer lease was released, the inner one was not.
func TestHolder_InnerLeaseForgotten(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	func() {
		outer := mustAcquireIn(t, context.Background(), r.locker)
		mustAcquireIn(t, outer.Context(), r.locker)
		mustRelease(t, outer)
	}()
	if d := r.depth(t); d != "1" {
		t.Fatalf("depth %s", d)
	}
	wait.Until(t, "the lock is given back", func() bool {
		runtime.GC()
		return r.depth(t) == "0"
	})
}

func TestHolder_Paused(t *testing.T) {
	r := newRig(t, redislock.Options{})
	holdertest.Paused(t, "TestHolder_Process", r.server.Addr, r.other)
}

// TestHolder_Process is the child of TestHolder_Paused.
func TestHolder_Process(t *testing.T) {
	if holdertest.Addr() == "" {
		t.Skip("runs as the child of TestHolder_Paused")
	}
	holdertest.Process(t, newLocker(t, holdertest.Addr(), redislock.Options{Lease: testLease}))
}

// TestHolder_RenewalEndsWithRelease: nothing is sent for a lock after it was given back.
func TestHolder_RenewalEndsWithRelease(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	acquired, _ := calls(t, r.look)
	awaitScripts(t, r.look, acquired+1) // a renewal
	mustRelease(t, lease)
	before := r.proxy.Stats().Up
	time.Sleep(testLease) // several renewals would be due
	if after := r.proxy.Stats().Up; after != before {
		t.Errorf("%d bytes were sent after the release", after-before)
	}
}

// breakerChanges is a lock.Observer that passes on what the breaker does.
type breakerChanges struct {
	lock.NoObserver
	changes chan bool
}

func (c breakerChanges) BreakerChanged(open bool, _ error) { c.changes <- open }

// TestBypass_RealOutage drives the breaker with a real outage.
func TestBypass_RealOutage(t *testing.T) {
	server := redistest.Start(t)
	changes := make(chan bool, 10)
	l := lock.Bypass(newLocker(t, server.Addr, redislock.Options{}), lock.BypassOptions{
		Pause:    50 * time.Millisecond,
		Observer: breakerChanges{changes: changes},
	})
	acquire := func() bool {
		t.Helper()
		lease, err := l.Acquire(t.Context(), key, lock.Try())
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release(t.Context())
		return lock.IsBypassed(lease)
	}
	if acquire() {
		t.Fatal("bypassed a server that is there")
	}
	server.Kill()
	for len(changes) == 0 {
		if !acquire() {
			t.Fatal("granted by a server that is not there")
		}
	}
	start := time.Now()
	for range 1000 {
		acquire()
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("1000 acquisitions took %v with the breaker open", d)
	}
	server.Restart()
	wait.Until(t, "the breaker closes", func() bool { return !acquire() })
	if first, second := <-changes, <-changes; !first || second || len(changes) > 0 {
		t.Errorf("changes: %t, %t and %d more", first, second, len(changes))
	}
}
