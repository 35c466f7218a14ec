package redlock_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/repository/lock/redlock"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/redistest"
	"seckill/service/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testLease = 900 * time.Millisecond
	budget    = 200 * time.Millisecond // generous: the machine may be busy
	key       = "lock:voucher:1:user:2"
)

// cluster is five servers, each with a proxy before it.
type cluster struct {
	servers []*redistest.Server
	proxies []*faultproxy.Proxy
	looks   []*redis.Client
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{}
	for range 5 {
		s := redistest.Start(t)
		c.servers = append(c.servers, s)
		c.proxies = append(c.proxies, faultproxy.New(t, s.Addr))
		c.looks = append(c.looks, s.Client())
	}
	return c
}

// locker returns a Locker that reaches the servers through their proxies, without quarantine unless change sets one.
func (c *cluster) locker(t testing.TB, change func(*redlock.Config)) *redlock.Locker {
	t.Helper()
	config := redlock.Config{Lease: testLease, Budget: budget, Quarantine: -1}
	for _, p := range c.proxies {
		config.Addrs = append(config.Addrs, p.Addr())
	}
	if change != nil {
		change(&config)
	}
	l, err := redlock.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// holders returns who holds the lock, by server; "" where it is free or the server is away.
func (c *cluster) holders() []string {
	var all []string
	for _, look := range c.looks {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		all = append(all, look.Get(ctx, key).Val())
		cancel()
	}
	return all
}

func (c *cluster) count() int {
	n := 0
	for _, holder := range c.holders() {
		if holder != "" {
			n++
		}
	}
	return n
}

// youngest returns the seconds since the last start of a server.
func (c *cluster) youngest(t *testing.T) int {
	t.Helper()
	least := math.MaxInt
	for _, look := range c.looks {
		seconds, err := strconv.Atoi(look.InfoMap(t.Context(), "server").Item("Server", "uptime_in_seconds"))
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, seconds)
	}
	return least
}

func acquire(t *testing.T, l lock.Locker, opts ...lock.Option) lock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
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
