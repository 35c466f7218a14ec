package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/repository/lock/redlock"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/wait"
	"seckill/service/lock"
	"seckill/service/lock/locktest"
)

func TestLocker_Suite(t *testing.T) {
	c := newCluster(t)
	locktest.Run(t, locktest.Backend{
		New:   func(t *testing.T) lock.Locker { return c.locker(t, nil) },
		Lease: testLease,
		Left: func(t *testing.T, key string) (left []string) {
			for i, look := range c.looks {
				keys, err := look.Keys(context.Background(), "*"+key+"*").Result()
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range keys {
					left = append(left, fmt.Sprintf("%s on %d", k, i))
				}
			}
			return left
		},
		Wipe: func(t *testing.T, key string) {
			for _, look := range c.looks {
				if err := look.Del(context.Background(), key).Err(); err != nil {
					t.Fatal(err)
				}
			}
		},
		HonoursWithLease: true,
		FairToWaiters:    true,
	})
}

// TestCooldown_HungServerCostsItsBudgetOnce: a node that hangs costs its budget once, and then nothing for a while.
func TestCooldown_HungServerCostsItsBudgetOnce(t *testing.T) {
	c := newCluster(t)
	l := c.locker(t, nil)
	release(t, acquire(t, l))
	c.proxies[2].Hang()
	start := time.Now()
	lease := acquire(t, l)
	if d := time.Since(start); d < budget || d > 2*budget {
		t.Errorf("the first acquisition took %v, want the budget of %v", d, budget)
	}
	start = time.Now()
	release(t, lease)
	release(t, acquire(t, l))
	if d := time.Since(start); d > budget {
		t.Errorf("with a node at rest it still takes %v", d)
	}
}

func TestMajority_TwoDownThreeDown(t *testing.T) {
	c := newCluster(t)
	l := c.locker(t, nil)
	release(t, acquire(t, l))
	c.servers[0].Kill()
	c.servers[4].Kill()
	lease := acquire(t, l)
	if n := c.count(); n != 3 {
		t.Fatalf("held on %d nodes, want 3", n)
	}
	time.Sleep(testLease * 3 / 2) // without renewals, the lease would run out at the servers
	if err := lease.Context().Err(); err != nil {
		t.Fatalf("not renewed: %v", context.Cause(lease.Context()))
	}
	release(t, lease)

	lease = acquire(t, l)
	c.servers[1].Kill()
	awaitLoss(t, lease)
	if _, err := l.Acquire(t.Context(), key); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	wait.Until(t, "the two that are left keep nothing", func() bool { return c.count() == 0 })
}

// TestLocker_FailedAttemptsLeaveNothing: what a contender got of the nodes is freed though its context is over.
func TestLocker_FailedAttemptsLeaveNothing(t *testing.T) {
	c := newCluster(t)
	l := c.locker(t, nil)
	for _, look := range c.looks[:3] { // held by another on a majority
		if err := look.Set(t.Context(), key, "another", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.Acquire(ctx, key); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want DeadlineExceeded", err)
	}
	wait.Until(t, "the other two are free", func() bool { return c.count() == 3 })
	for i, holder := range c.holders() {
		if want := map[bool]string{true: "another"}[i < 3]; holder != want {
			t.Errorf("node %d is held by %q, want %q", i, holder, want)
		}
	}
	if _, err := l.Acquire(t.Context(), key, lock.Try()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("error %v, want ErrHeld", err)
	}
}

func TestLocker_TooLittleValidityIsReleased(t *testing.T) {
	c := newCluster(t)
	l := c.locker(t, func(r *redlock.Config) { r.MinValidity, r.Budget = testLease*2/3, testLease })
	release(t, acquire(t, l))
	for _, p := range c.proxies {
		p.Delay(testLease / 4) // each way
	}
	if _, err := l.Acquire(t.Context(), key); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
	wait.Until(t, "it was given back", func() bool { return c.count() == 0 })
}

// TestQuarantine_RestartedEmpty: a majority must not count a node that has forgotten a lock.
func TestQuarantine_RestartedEmpty(t *testing.T) {
	c := newCluster(t)
	for _, quarantined := range []bool{false, true} { // without quarantine: a negative control
		t.Run(fmt.Sprintf("quarantined=%t", quarantined), func(t *testing.T) {
			set := func(r *redlock.Config) {
				r.Lease = 20 * time.Second
				if quarantined {
					r.Quarantine = 3 * time.Second
				}
			}
			if quarantined {
				wait.Until(t, "all servers are out of quarantine", func() bool { return c.youngest(t) >= 3 })
			}
			ours, theirs := c.locker(t, set), c.locker(t, set)
			c.proxies[3].Hang()
			c.proxies[4].Hang()
			lease := acquire(t, ours)
			c.proxies[3].Resume()
			c.proxies[4].Resume()
			for _, look := range c.looks[3:] { // what was sent while they hung has arrived
				wait.Until(t, "it has", func() bool { look.Del(t.Context(), key); return look.Exists(t.Context(), key).Val() == 0 })
			}
			c.servers[2].Kill()
			c.servers[2].Restart()
			if n := c.count(); n != 2 {
				t.Fatalf("held on %d nodes, want 2 of the 3", n)
			}
			second, err := theirs.Acquire(t.Context(), key, lock.WithWait(500*time.Millisecond))
			if quarantined && err == nil {
				t.Error("two holders: the forgetful node was counted")
			}
			if !quarantined && (err != nil || lease.Context().Err() != nil) {
				t.Errorf("the control shows no second holder: %v", err)
			}
			if err == nil {
				release(t, second)
			}
			if err := lease.Release(t.Context()); quarantined && err != nil && !errors.Is(err, lock.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
}

// TestMajority_ClockMoved: one server's clock jumps ahead, and what it keeps expires at once. A majority of such servers breaks
// the lock: that is Redlock's assumption, and this its labelled negative control.
func TestMajority_ClockMoved(t *testing.T) {
	for jumped, want := range map[int]error{1: lock.ErrHeld, 3: nil} {
		t.Run(fmt.Sprint(jumped), func(t *testing.T) {
			c := newCluster(t)
			set := func(r *redlock.Config) { r.Lease = 20 * time.Second }
			ours, theirs := c.locker(t, set), c.locker(t, set)
			lease := acquire(t, ours)
			for _, look := range c.looks[:jumped] {
				if !look.PExpire(t.Context(), key, 0).Val() {
					t.Fatal("the lock was not there to expire")
				}
			}
			second, err := theirs.Acquire(t.Context(), key, lock.Try())
			if !errors.Is(err, want) || lease.Context().Err() != nil {
				t.Errorf("error %v, want %v; the first lease %v", err, want, context.Cause(lease.Context()))
			}
			if err == nil {
				release(t, second)
			}
			if err := lease.Release(t.Context()); want != nil && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMajority_RepliesDropped(t *testing.T) {
	c := newCluster(t)
	l := c.locker(t, nil)
	release(t, acquire(t, l))
	var faults []*faultproxy.Fault
	drop := func() {
		for _, p := range c.proxies[:2] {
			faults = append(faults, p.DropReply(faultproxy.Contains(key)))
		}
	}
	drop()
	lease := acquire(t, l)
	drop()
	time.Sleep(testLease) // without renewals, the lease would run out at the servers
	if lease.Context().Err() != nil {
		t.Fatal("lost by two replies")
	}
	drop()
	release(t, lease)
	for _, f := range faults {
		f.Wait(t)
	}
	wait.Until(t, "nothing is left", func() bool { return c.count() == 0 })
}

func TestNew_NumberOfServers(t *testing.T) {
	for n := range 12 {
		l, err := redlock.New(redlock.Config{Addrs: make([]string, n)})
		if (err == nil) != (n >= 3 && n <= 9) {
			t.Errorf("%d servers: %v", n, err)
		}
		if err == nil {
			l.Close()
		}
	}
}
