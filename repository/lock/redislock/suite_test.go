package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/redistest"
	"seckill/service/lock"
	"seckill/service/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocker_Suite(t *testing.T) {
	t.Run("redis", func(t *testing.T) { runSuite(t, redistest.Addr(t)) })
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		runSuite(t, m.Addr())
	})
}

const testLease = 600 * time.Millisecond

func runSuite(t *testing.T, addr string) {
	look := redistest.Client(t, addr)
	locktest.Run(t, locktest.Backend{
		New:   func(t *testing.T) lock.Locker { return newLocker(t, addr, redislock.Options{Lease: testLease}) },
		Lease: testLease,
		Left: func(t *testing.T, key string) []string {
			left, err := look.Keys(context.Background(), "*"+key+"*").Result() // also called in Cleanup
			if err != nil {
				t.Fatal(err)
			}
			return left
		},
		Wipe: func(t *testing.T, key string) {
			if n, err := look.Del(t.Context(), key).Result(); err != nil || n != 1 {
				t.Fatalf("deleted %d keys, %v", n, err)
			}
		},
		Tokens:           true,
		HonoursWithLease: true,
		FairToWaiters:    true,
	})
}

// newLocker returns a Locker with a client of its own; both are closed with the test.
func newLocker(t testing.TB, addr string, opts redislock.Options) *redislock.Locker {
	t.Helper()
	l := redislock.New(newClient(t, addr), opts)
	t.Cleanup(func() { l.Close() })
	return l
}

func newClient(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	client, err := redislock.NewClient(redislock.Config{Addrs: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
