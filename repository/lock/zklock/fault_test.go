package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository/lock/zklock"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/wait"
	"seckill/repository/repotest/zktest"
	"seckill/service/lock"
)

func TestFault_ReplyOfCreateDropped(t *testing.T) {
	r := newRig(t, long)
	if _, err := r.look.Create(parent, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err) // else the first request would fail for the lack of it, and the fault hit that answer
	}
	fault := r.proxy.DropReply(faultproxy.Contains("-lock-"))
	lease := acquire(t, r.locker)
	fault.Wait(t)
	if n := r.count(t); n != 1 {
		t.Errorf("%d nodes, want 1: an orphan would block everyone", n)
	}
	release(t, lease)
	release(t, acquire(t, r.other))
}

func TestFault_ReplyOfDeleteDropped(t *testing.T) {
	r := newRig(t, long)
	lease := acquire(t, r.locker)
	fault := r.proxy.DropReply(faultproxy.Contains("-lock-"))
	release(t, lease) // the second attempt finds it gone, and knows why
	fault.Wait(t)
	if n := r.count(t); n != 0 {
		t.Errorf("%d nodes are left", n)
	}
}

func TestFault_ReplyOfRenewalDropped(t *testing.T) {
	r := newRig(t, func(c *zklock.Config) { c.Session = 3 * time.Second })
	lease := acquire(t, r.locker)
	r.proxy.DropReply(faultproxy.Contains("-lock-")).Wait(t)
	time.Sleep(3 * time.Second) // without renewals, the lease would be over
	if lease.Context().Err() != nil {
		t.Fatal(context.Cause(lease.Context()))
	}
	release(t, lease)
}

// TestFault_CancelledDuringAcquire has the node created, while its caller has gone.
func TestFault_CancelledDuringAcquire(t *testing.T) {
	r := newRig(t, func(c *zklock.Config) { c.Session = 3 * time.Second })
	// The lock's node is there already, so that the first request creates the waiter's.
	if _, err := r.look.Create(parent, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fault := r.proxy.SwallowReply(faultproxy.Contains("-lock-"))
	go func() {
		<-fault.Happened()
		cancel()
	}()
	if _, err := r.locker.Acquire(ctx, key); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Canceled", err)
	}
	if n := r.count(t); n != 1 {
		t.Fatalf("%d nodes: the fault did not take effect", n)
	}
	wait.Until(t, "the node is gone", func() bool { return r.count(t) == 0 })
}

func TestFault_ConnectionCut(t *testing.T) {
	r := newRig(t, long)
	lease := acquire(t, r.locker)
	if r.proxy.Cut() == 0 {
		t.Fatal("nothing was cut")
	}
	inner, err := r.locker.Acquire(lease.Context(), key) // asks whether it is still there
	if err != nil {
		t.Fatal(err)
	}
	release(t, inner)
	release(t, lease)

	lease = acquire(t, r.other)
	got := make(chan error, 1)
	go func() { got <- lock.Do(t.Context(), r.locker, key, func(context.Context) error { return nil }) }()
	wait.Until(t, "the waiter has queued", func() bool { return r.count(t) == 2 })
	awaitWatches(t, r.server, 1)
	r.proxy.Cut()
	start := time.Now()
	release(t, lease)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 5*time.Second { // the poll is at ten
		t.Errorf("the watch did not survive: woken after %v", d)
	}
}

// TestFault_ReleaseDuringConnectionLoss: the node is removed when the connection is back.
func TestFault_ReleaseDuringConnectionLoss(t *testing.T) {
	r := newRig(t, func(c *zklock.Config) { c.Session, c.Timeout = 20*time.Second, 200*time.Millisecond })
	lease := acquire(t, r.locker)
	r.proxy.Refuse()
	r.proxy.Cut()
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	if n := r.count(t); n != 1 {
		t.Fatalf("%d nodes: the fault did not take effect", n)
	}
	r.proxy.Accept()
	start := time.Now()
	wait.Until(t, "the node is gone", func() bool { return r.count(t) == 0 })
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("gone after %v: by the end of the session, it seems", d)
	}
}

// TestFault_HungServerLosesTheLock before its session can have expired, and costs an acquisition its timeout only.
func TestFault_HungServerLosesTheLock(t *testing.T) {
	r := newRig(t, nil)
	lease := acquire(t, r.locker)
	r.proxy.Hang()
	start := time.Now()
	if _, err := r.locker.Acquire(t.Context(), "another", lock.WithTimeout(100*time.Millisecond)); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	if d := time.Since(start); d > testSession/2 {
		t.Errorf("it took %v", d)
	}
	awaitLoss(t, lease)
	if d := time.Since(start); d > testSession {
		t.Errorf("told after %v, the session's timeout being %v", d, testSession)
	}
	r.proxy.Resume()
	wait.Until(t, "the node is gone", func() bool { return r.count(t) == 0 })
}

// TestSession_ExpiredUnderHolder: the server ends the session while the holder can't be reached.
func TestSession_ExpiredUnderHolder(t *testing.T) {
	r := newRig(t, nil)
	lease := acquire(t, r.locker)
	r.proxy.Hang()
	next := acquire(t, r.other) // waits for the end of the session
	if lease.Context().Err() == nil {
		t.Error("another has the lock, and the holder was not told before")
	}
	r.proxy.Resume()
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
	before, _ := lease.Token()
	if after, _ := next.Token(); after <= before {
		t.Errorf("token %d after %d", after, before)
	}
	if n := r.count(t); n != 1 {
		t.Errorf("%d nodes, want the other's", n)
	}
	release(t, next)
	wait.Until(t, "the Locker has a new session", func() bool {
		lease, err := r.locker.Acquire(t.Context(), key)
		return err == nil && lease.Release(t.Context()) == nil
	})
}

// TestSession_ExpiredUnderWaiter: it queues again with a new node.
func TestSession_ExpiredUnderWaiter(t *testing.T) {
	r := newRig(t, func(c *zklock.Config) { c.Timeout = 15 * time.Second })
	lease := acquire(t, r.other)
	got := make(chan error, 1)
	go func() { got <- lock.Do(t.Context(), r.locker, key, func(context.Context) error { return nil }) }()
	wait.Until(t, "the waiter has queued", func() bool { return r.count(t) == 2 })
	r.proxy.Hang()
	wait.Until(t, "its node is gone", func() bool { return r.count(t) == 1 })
	r.proxy.Resume()
	wait.Until(t, "it has queued again", func() bool { return r.count(t) == 2 })
	select {
	case err := <-got:
		t.Fatalf("the waiter got in beside the holder: %v", err)
	default:
	}
	release(t, lease)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

// TestNode_OfAWaiterDeleted: a waiter whose node is gone must not take its turn for granted.
func TestNode_OfAWaiterDeleted(t *testing.T) {
	r := newRig(t, func(c *zklock.Config) { c.Session, c.Poll = 20*time.Second, 100*time.Millisecond })
	lease := acquire(t, r.other)
	holder := r.nodes(t)[0]
	var inside context.Context
	got := make(chan error, 1)
	go func() {
		got <- lock.Do(t.Context(), r.locker, key, func(ctx context.Context) error {
			inside = ctx
			if n := r.count(t); n != 1 {
				t.Errorf("%d nodes under the lock, want the holder's", n)
			}
			return nil
		})
	}()
	waiting := func() (name string) {
		for _, each := range r.nodes(t) {
			if each != holder {
				name = each
			}
		}
		return name
	}
	wait.Until(t, "the waiter has queued", func() bool { return waiting() != "" })
	first := waiting()
	if err := r.look.Delete(parent+"/"+first, -1); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it has queued again", func() bool { return waiting() != "" && waiting() != first })
	release(t, lease)
	if err := <-got; err != nil || inside == nil {
		t.Fatal(err)
	}
}

func TestServer_Restarted(t *testing.T) {
	r := newRig(t, long)
	lease := acquire(t, r.locker)
	r.server.Kill()
	r.server.Restart()
	wait.Until(t, "it is connected again", func() bool {
		inner, err := r.locker.Acquire(lease.Context(), key)
		return err == nil && inner.Release(t.Context()) == nil
	})
	if _, err := r.other.Acquire(t.Context(), key, lock.Try()); err == nil {
		t.Error("the restart lost the lock")
	}
	release(t, lease)
}

func TestServer_AwayAtStart(t *testing.T) {
	server := zktest.Start(t)
	server.Kill()
	l := newLocker(t, server.Addr, func(c *zklock.Config) { c.Timeout = 300 * time.Millisecond })
	if _, err := l.Acquire(t.Context(), key, lock.Try()); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	server.Restart()
	wait.Until(t, "it is connected", func() bool {
		lease, err := l.Acquire(t.Context(), key)
		return err == nil && lease.Release(t.Context()) == nil
	})
}

func TestNode_ForeignChildrenAreIgnored(t *testing.T) {
	r := newRig(t, long)
	release(t, acquire(t, r.locker))
	if _, err := r.look.Create("/seckill/locks/foreign", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"readme", "lock-1", "0000000000", "lock-000000000x"} {
		if _, err := r.look.Create("/seckill/locks/foreign/"+name, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	for _, opts := range [][]lock.Option{nil, {lock.Try()}} {
		lease, err := r.locker.Acquire(t.Context(), "foreign", opts...)
		if err != nil {
			t.Fatal(err)
		}
		release(t, lease)
	}
}

func TestSession_OneForAllLocks(t *testing.T) {
	r := newRig(t, long)
	before := r.proxy.Stats().Accepted
	var leases []lock.Lease
	for _, key := range []string{"a", "b/c", "d", ".", "..", "订单 %2F"} {
		lease, err := r.locker.Acquire(t.Context(), key)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		leases = append(leases, lease)
	}
	for _, lease := range leases {
		release(t, lease)
	}
	if after := r.proxy.Stats().Accepted; after != before {
		t.Errorf("%d further connections", after-before)
	}
}
