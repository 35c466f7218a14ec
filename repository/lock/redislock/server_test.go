package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
	"seckill/service/lock"
)

func TestServer_RestartedEmpty(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	r.server.Kill()
	r.server.Restart()
	if d := r.depth(t); d != "0" {
		t.Fatalf("depth %s: it did not restart empty", d)
	}
	next := mustAcquire(t, r.other)
	before, _ := lease.Token()
	if after, _ := next.Token(); after <= before {
		t.Errorf("token %d after %d", after, before)
	}
	awaitLoss(t, lease)
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
	mustRelease(t, next)
}

func TestServer_GoneForGood(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	start := time.Now()
	r.server.Kill()
	awaitLoss(t, lease)
	if d := time.Since(start); d > testLease+300*time.Millisecond {
		t.Errorf("the loss was told after %v, the lease being %v", d, testLease)
	}
}

func TestServer_AwayAtStart(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	l := newLocker(t, server.Addr, redislock.Options{})
	if _, err := l.Acquire(t.Context(), key, lock.Try()); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	server.Restart()
	mustRelease(t, mustAcquire(t, l))
}

func TestServer_ScriptFlush(t *testing.T) {
	r := newRig(t, redislock.Options{})
	flush := func() {
		t.Helper()
		if err := r.look.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	lease := mustAcquire(t, r.locker)
	flush()
	time.Sleep(testLease) // without renewals, the lease would run out at the server
	inner, err := r.locker.Acquire(lease.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, inner)
	flush()
	mustRelease(t, lease)
	if d := r.depth(t); d != "0" {
		t.Errorf("depth %s", d)
	}
}

// TestServer_Paused: what the server does not answer within the lease is lost, what it does is not.
func TestServer_Paused(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	pause := func(d time.Duration) {
		t.Helper()
		if err := r.look.ClientPause(t.Context(), d).Err(); err != nil {
			t.Fatal(err)
		}
	}
	pause(testLease / 2)
	time.Sleep(testLease) // without renewals, the lease would run out at the server
	if err := lease.Context().Err(); err != nil {
		t.Fatal(context.Cause(lease.Context()))
	}
	start := time.Now()
	pause(3 * testLease)
	awaitLoss(t, lease)
	if d := time.Since(start); d > testLease+300*time.Millisecond {
		t.Errorf("told after %v", d)
	}
}

// TestFailover_ForgetsTheLock: the new master never saw the key. Two hold it then, until the first one's next renewal;
// the tokens tell who is the later.
func TestFailover_ForgetsTheLock(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	sentinel := redistest.StartSentinel(t, "shop", master)
	client, err := redislock.NewClient(redislock.Config{Addrs: []string{sentinel.Addr}, SentinelMaster: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	l := redislock.New(client, redislock.Options{Lease: 20 * time.Second})
	t.Cleanup(func() { l.Close() })
	mustRelease(t, mustAcquire(t, l))

	replica.Pause()
	// What the master sent would wait in the socket for the replica: it must not send it.
	if err := master.Client().ClientKillByFilter(t.Context(), "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	lease := mustAcquire(t, l)
	master.Kill()
	replica.Resume()
	var next lock.Lease
	wait.Until(t, "the lock is granted by the new master", func() bool {
		other := redislock.New(client, redislock.Options{})
		t.Cleanup(func() { other.Close() })
		next, err = other.Acquire(t.Context(), key, lock.Try())
		if errors.Is(err, lock.ErrHeld) {
			t.Fatal("the replica knew of the lock: the fault did not take effect")
		}
		return err == nil
	})
	if lease.Context().Err() != nil {
		t.Fatal("the first holder was told before its renewal: there were no two holders to tell apart")
	}
	before, _ := lease.Token()
	if after, _ := next.Token(); after <= before {
		t.Errorf("token %d after %d", after, before)
	}
	awaitLoss(t, lease)
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
	mustRelease(t, next)
}

func TestLocker_ForeignKeyIsNoOutage(t *testing.T) {
	r := newRig(t, redislock.Options{})
	if err := r.look.Set(t.Context(), key, "not a lock", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := r.locker.Acquire(t.Context(), key)
	if err == nil || errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrHeld) {
		t.Fatalf("error %v, want one of its own", err)
	}
}

func TestLocker_OnACluster(t *testing.T) {
	addrs := redistest.StartCluster(t)
	newCluster := func(t *testing.T) *redislock.Locker {
		client, err := redislock.NewClient(redislock.Config{Addrs: addrs, Cluster: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		l := redislock.New(client, redislock.Options{Lease: testLease, Poll: time.Minute})
		t.Cleanup(func() { l.Close() })
		return l
	}
	ours, theirs := newCluster(t), newCluster(t)
	for _, key := range []string{"a", "b", "c", "lock:{tag}:1", "odd{", "odd{}x", "lock:voucher:1:user:2"} {
		first, err := ours.Acquire(t.Context(), key)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if _, err := theirs.Acquire(t.Context(), key, lock.Try()); !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("%s: %v, want ErrHeld", key, err)
		}
		got := make(chan error, 1)
		go func() {
			second, err := theirs.Acquire(t.Context(), key)
			if err == nil {
				before, _ := first.Token()
				if after, _ := second.Token(); after <= before {
					t.Errorf("%s: token %d after %d", key, after, before)
				}
				err = second.Release(t.Context())
			}
			got <- err
		}()
		time.Sleep(2 * testLease) // without renewals, the lease would run out at the server; the waiter subscribes in this time
		mustRelease(t, first)
		select {
		case err := <-got:
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the waiter was not woken", key)
		}
	}
}
