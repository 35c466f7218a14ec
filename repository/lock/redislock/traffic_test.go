package redislock_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/wait"
	"seckill/service/lock"
)

// calls returns how often the server was asked to run a script, and how many commands it got from clients in all.
func calls(t testing.TB, look *redis.Client) (scripts, all int) {
	t.Helper()
	info, err := look.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		n, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "eval", "evalsha":
			scripts += n
			all += n
		case "subscribe", "unsubscribe", "ping":
			all += n
		}
	}
	return scripts, all
}

// awaitScripts waits until the server has been asked to run a total of n scripts. A waiter that is idle has asked for two:
// its first try, and the try that follows its subscription.
func awaitScripts(t testing.TB, look *redis.Client, n int) {
	t.Helper()
	wait.Until(t, "the waiter has tried", func() bool { scripts, _ := calls(t, look); return scripts >= n })
}

func TestTraffic_PairIsTwoRoundTrips(t *testing.T) {
	r := newRig(t, redislock.Options{})
	const pairs = 50
	_, before := calls(t, r.look)
	for range pairs {
		mustRelease(t, mustAcquire(t, r.locker, lock.Try()))
	}
	if _, after := calls(t, r.look); after-before != 2*pairs {
		t.Errorf("%d commands for %d pairs", after-before, pairs)
	}
}

// TestTraffic_HeldHereCostsNothing: that this process holds the lock needs no question.
func TestTraffic_HeldHereCostsNothing(t *testing.T) {
	r := newRig(t, redislock.Options{})
	lease := mustAcquire(t, r.locker)
	_, before := calls(t, r.look)
	for range 100 {
		if _, err := r.locker.Acquire(t.Context(), key, lock.Try()); err != lock.ErrHeld {
			t.Fatal(err)
		}
	}
	if _, after := calls(t, r.look); after != before {
		t.Errorf("%d commands", after-before)
	}
	mustRelease(t, lease)
}

// TestTraffic_ThousandWaiters: one contender per process and key. Another process holds the lock for a second; then the waiters
// get in one after the other.
func TestTraffic_ThousandWaiters(t *testing.T) {
	const waiters, poll = 1000, 100 * time.Millisecond
	r := newRig(t, redislock.Options{Lease: time.Minute, Poll: poll})
	lease := mustAcquire(t, r.other)
	before, _ := calls(t, r.look)
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if err := lock.Do(t.Context(), r.locker, key, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(time.Second) // the test counts the attempts of a real second
	waiting, _ := calls(t, r.look)
	if n := waiting - before; n < 2 || n > 20 {
		t.Errorf("%d attempts in a second of waiting with a poll of %v, want about ten", n, poll)
	}
	mustRelease(t, lease)
	all.Wait()
	after, _ := calls(t, r.look)
	// A pair for each, the release by the holder, and some messages about our own releases, which wake the contender although the lock is held again.
	if n := after - waiting; n > 2*waiters+50 {
		t.Errorf("%d scripts for %d waiters", n, waiters)
	}
}

// TestTraffic_WaitingIsIdle: waiting takes no processor time.
func TestTraffic_WaitingIsIdle(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	lease := mustAcquire(t, r.other)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	before := processorTime(t)
	var all sync.WaitGroup
	leases := []lock.Lease{lease}
	for i := range 100 {
		all.Go(func() { r.locker.Acquire(ctx, key) })
		leases = append(leases, mustHold(t, r, fmt.Sprint(key, i)))
		all.Go(func() { r.locker.Acquire(ctx, fmt.Sprint(key, i)) })
	}
	all.Wait()
	if used := processorTime(t) - before; used > 500*time.Millisecond {
		t.Errorf("a second of waiting used %v of processor time", used)
	}
	for _, lease := range leases {
		mustRelease(t, lease)
	}
}

func mustHold(t *testing.T, r *rig, key string) lock.Lease {
	t.Helper()
	lease, err := r.other.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestLocker_WorksWithOneConnection: pipelines must not wait for each other's connection for ever.
func TestLocker_WorksWithOneConnection(t *testing.T) {
	r := newRig(t, redislock.Options{})
	client := redis.NewClient(&redis.Options{Addr: r.server.Addr, PoolSize: 1, PipelinePoolSize: 1, PoolTimeout: time.Second})
	defer client.Close()
	l := redislock.New(client, redislock.Options{})
	defer l.Close()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := lock.Do(t.Context(), l, fmt.Sprint(key, i), func(context.Context) error { return nil }, lock.WithTimeout(5*time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
