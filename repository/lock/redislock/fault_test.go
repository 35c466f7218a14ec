package redislock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/wait"
	"seckill/service/lock"
)

func TestFault_ReplyOfAcquireDropped(t *testing.T) {
	r := newRig(t, redislock.Options{})
	fault := r.proxy.DropReply(faultproxy.Contains(key))
	lease := mustAcquire(t, r.locker)
	fault.Wait(t)
	if d := r.depth(t); d != "1" {
		t.Errorf("depth %s, want 1", d)
	}

	fault = r.proxy.DropReply(faultproxy.Contains(key))
	inner, err := r.locker.Acquire(lease.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	fault.Wait(t)
	if d := r.depth(t); d != "2" {
		t.Errorf("depth %s, want 2", d)
	}
	mustRelease(t, inner)
	mustRelease(t, lease)
	if d := r.depth(t); d != "0" {
		t.Errorf("an orphan of depth %s", d)
	}
}

func TestFault_ReplyOfReleaseDropped(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	fault := r.proxy.DropReply(faultproxy.Contains("redisson_lock__channel"))
	mustRelease(t, lease) // the second attempt finds it gone, and knows why
	fault.Wait(t)
	if d := r.depth(t); d != "0" {
		t.Errorf("depth %s", d)
	}
}

func TestFault_ReplyOfRenewalDropped(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	for range 3 {
		r.proxy.DropReply(faultproxy.Contains(key)).Wait(t)
	}
	time.Sleep(testLease) // without renewals, the lease would run out at the server
	if err := lease.Context().Err(); err != nil {
		t.Fatal(context.Cause(lease.Context()))
	}
	mustRelease(t, lease)
}

// TestFault_CancelledDuringAcquire has the acquisition take effect at the server, while its caller has gone.
func TestFault_CancelledDuringAcquire(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	fault := r.proxy.SwallowReply(faultproxy.Contains(key))
	taken := make(chan string, 1)
	go func() {
		<-fault.Happened()
		taken <- r.depth(t)
		cancel()
	}()
	if _, err := r.locker.Acquire(ctx, key); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Canceled", err)
	}
	if d := <-taken; d != "1" {
		t.Fatalf("depth %s: the fault did not take effect", d)
	}
	wait.Until(t, "the key is gone", func() bool { return r.depth(t) == "0" })
}

func TestFault_HungServerCostsTheTimeout(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	r.proxy.Hang()
	start := time.Now()
	if _, err := r.locker.Acquire(t.Context(), key, lock.WithTimeout(50*time.Millisecond)); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	if d := time.Since(start); d < 50*time.Millisecond || d > 500*time.Millisecond {
		t.Errorf("took %v, want about 50ms", d)
	}
	r.proxy.Resume() // and the request arrives after all
	wait.Until(t, "the connection works again", func() bool {
		lease, err := r.locker.Acquire(t.Context(), key)
		return err == nil && lease.Release(t.Context()) == nil
	})
	wait.Until(t, "the key is gone", func() bool { return r.depth(t) == "0" })
}

// TestFault_HungServerReachesAllWaiters: 200 waiters don't find out one after the other.
func TestFault_HungServerReachesAllWaiters(t *testing.T) {
	r := newRig(t, redislock.Options{Timeout: 300 * time.Millisecond})
	lease := mustAcquire(t, r.other)
	const waiters = 200
	errs := make(chan error, waiters)
	var calling sync.WaitGroup
	calling.Add(waiters)
	for range waiters {
		go func() {
			calling.Done()
			_, err := r.locker.Acquire(t.Context(), key)
			errs <- err
		}()
	}
	calling.Wait()
	// One waits for the server, the others queue in the process.
	wait.Until(t, "a waiter has subscribed", func() bool { return r.hasWaiter(t) })
	r.proxy.Hang()
	start := time.Now()
	for range waiters {
		if err := <-errs; !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("error %v, want ErrUnavailable", err)
		}
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
	mustRelease(t, lease)
	r.proxy.Resume()
}

func TestFault_ConnectionsCut(t *testing.T) {
	r := newRig(t, redislock.Options{Poll: time.Minute})
	lease := mustAcquire(t, r.locker)
	if r.proxy.Cut() == 0 {
		t.Fatal("nothing was cut")
	}
	inner, err := r.locker.Acquire(lease.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, inner)
	r.proxy.Cut()
	mustRelease(t, lease)

	// The news of a release reaches a waiter also after its subscription had to be made anew.
	lease = mustAcquire(t, r.other)
	got := make(chan lock.Lease, 1)
	go func() {
		lease, err := r.locker.Acquire(t.Context(), key)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	subscribed := func() bool { return r.hasWaiter(t) }
	wait.Until(t, "the waiter has subscribed", subscribed)
	r.proxy.Cut()
	wait.Until(t, "its subscription is gone", func() bool { return !subscribed() })
	wait.Until(t, "it has subscribed again", subscribed)
	mustRelease(t, lease)
	select {
	case lease := <-got:
		mustRelease(t, lease)
	case <-time.After(10 * time.Second):
		t.Fatal("the waiter was not woken")
	}
}

func TestFault_ConnectionRefused(t *testing.T) {
	r := newRig(t, redislock.Options{})
	r.proxy.Refuse()
	r.proxy.Cut()
	start := time.Now()
	if _, err := r.locker.Acquire(t.Context(), key); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	if d := time.Since(start); d > 500*time.Millisecond {
		t.Errorf("took %v to find that nobody listens", d)
	}
	r.proxy.Accept()
	mustRelease(t, mustAcquire(t, r.locker))
}

// TestFault_ReleaseIsRepeated: the release is repeated in the background.
func TestFault_ReleaseIsRepeated(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	lease := mustAcquire(t, r.locker)
	r.proxy.Refuse()
	r.proxy.Cut()
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	if d := r.depth(t); d != "1" {
		t.Fatalf("depth %s: the fault did not take effect", d)
	}
	r.proxy.Accept()
	wait.Until(t, "the key is gone", func() bool { return r.depth(t) == "0" })
}

func TestFault_PublishLost(t *testing.T) {
	const poll = 100 * time.Millisecond
	r := newRig(t, redislock.Options{Lease: time.Minute, Poll: poll})
	lease := mustAcquire(t, r.other)
	got := make(chan error, 1)
	before, _ := calls(t, r.look)
	go func() {
		lease, err := r.locker.Acquire(t.Context(), key)
		if err == nil {
			err = lease.Release(t.Context())
		}
		got <- err
	}()
	awaitScripts(t, r.look, before+4)                    // the last two are polls
	if n := r.look.Del(t.Context(), key).Val(); n != 1 { // no news of it
		t.Fatal("there was no lock")
	}
	start := time.Now()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > poll+500*time.Millisecond {
		t.Errorf("got in after %v, with a poll of %v", d, poll)
	}
	runtime.KeepAlive(lease) // a forgotten one would have been given back, with news of it
}

// TestFault_ReleasedBeforeSubscription: the release happens after the waiter's first try, and before its subscription.
func TestFault_ReleasedBeforeSubscription(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute, Poll: time.Minute})
	lease := mustAcquire(t, r.other)
	released := false
	subscribes := faultproxy.Contains("subscribe")
	r.proxy.CutOnRequest(func(request []byte) bool {
		if subscribes(request) && !released {
			released = true
			if err := lease.Release(context.Background()); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	start := time.Now()
	mustRelease(t, mustAcquire(t, r.locker))
	if !released {
		t.Fatal("the fault did not take effect")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("got in after %v", d)
	}
}

// TestFault_RepeatedReleaseLeavesAnothersLock: the release took effect, its reply was lost, and another got the lock before
// the release was sent again.
func TestFault_RepeatedReleaseLeavesAnothersLock(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	lease := mustAcquire(t, r.locker)
	isRelease := faultproxy.Contains("redisson_lock__channel")
	fault := r.proxy.DropReply(isRelease)
	var next lock.Lease
	r.proxy.CutOnRequest(func(request []byte) bool {
		if isRelease(request) { // the second one: the fault before this took the first
			next = mustAcquire(t, r.other)
		}
		return false
	})
	mustRelease(t, lease)
	fault.Wait(t)
	if next == nil {
		t.Fatal("the release was not repeated")
	}
	if d := r.depth(t); d != "1" {
		t.Errorf("depth %s: the second release took another's lock", d)
	}
	mustRelease(t, next)
}
