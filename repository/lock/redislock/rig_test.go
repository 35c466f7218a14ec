package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/redistest"
	"seckill/service/lock"
)

// rig is a Redis, a proxy before it, a Locker that goes through the proxy, and another that does not.
type rig struct {
	server *redistest.Server
	proxy  *faultproxy.Proxy
	locker *redislock.Locker
	other  *redislock.Locker
	look   *redis.Client
}

const key = "lock:voucher:1:user:2"

func newRig(t *testing.T, opts redislock.Options) *rig {
	t.Helper()
	if opts.Lease == 0 {
		opts.Lease = testLease
	}
	r := &rig{server: redistest.Start(t)}
	r.proxy = faultproxy.New(t, r.server.Addr)
	r.locker = newLocker(t, r.proxy.Addr(), opts)
	opts.Timeout = 0
	r.other = newLocker(t, r.server.Addr, opts)
	r.look = r.server.Client()
	r.warm(t)
	return r
}

// warm has the connections made and the scripts loaded, so that faults hit what they are meant to hit.
func (r *rig) warm(t *testing.T) {
	t.Helper()
	if err := lock.Do(t.Context(), r.locker, "warm", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func mustAcquire(t *testing.T, l lock.Locker, opts ...lock.Option) lock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func mustRelease(t *testing.T, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// depth returns the depth that Redis knows, 0 if the lock is free; there must be one owner at most.
func (r *rig) depth(t *testing.T) string {
	t.Helper()
	fields, err := r.look.HGetAll(t.Context(), key).Result()
	if err != nil || len(fields) > 1 {
		t.Fatalf("fields %v, %v", fields, err)
	}
	for _, depth := range fields {
		return depth
	}
	return "0"
}

// hasWaiter reports whether a waiter has subscribed to the news of a release.
func (r *rig) hasWaiter(t *testing.T) bool {
	n, err := r.look.PubSubNumSub(t.Context(), redissonChannel).Result()
	return err == nil && n[redissonChannel] == 1
}

func awaitLoss(t *testing.T, lease lock.Lease) {
	t.Helper()
	select {
	case <-lease.Context().Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the loss was not told")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Fatalf("ended with %v, want ErrLost", cause)
	}
}
