package locks

import (
	"context"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"seckill/repository/lock/redislock"
	"seckill/repository/lock/zklock"
	"seckill/service/lock"
)

// peer is a way to lock. It returns when the lock is its own, with what unlocks it.
type peer struct {
	name string
	lock func(ctx context.Context, key string) (unlock func() error, err error)
}

// lease is everyone's: long enough that nobody renews while the benchmark measures.
const lease = 30 * time.Second

func ours(l lock.Locker) func(context.Context, string) (func() error, error) {
	return func(ctx context.Context, key string) (func() error, error) {
		held, err := l.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error { return held.Release(ctx) }, nil
	}
}

func oursOnRedis(b *testing.B, addr string) peer {
	client, err := redislock.NewClient(redislock.Config{Addrs: []string{addr}})
	if err != nil {
		b.Fatal(err)
	}
	l := redislock.New(client, redislock.Options{Lease: lease})
	b.Cleanup(func() {
		l.Close()
		client.Close()
	})
	return peer{"ours", ours(l)}
}

// bsmLock is github.com/bsm/redislock. It waits only with a retry strategy, which polls.
func bsmLock(b *testing.B, addr string) peer {
	client := redis.NewClient(&redis.Options{Addr: addr})
	b.Cleanup(func() { client.Close() })
	l := bsm.New(client)
	return peer{"bsm", func(ctx context.Context, key string) (func() error, error) {
		held, err := l.Obtain(ctx, key, lease, &bsm.Options{RetryStrategy: bsm.LinearBackoff(100 * time.Millisecond)})
		if err != nil {
			return nil, err
		}
		return func() error { return held.Release(ctx) }, nil
	}}
}

// rueidisLock is github.com/redis/rueidis/rueidislock with one key for each lock, as the others have.
func rueidisLock(b *testing.B, addr string) peer {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  1,
		KeyValidity:  lease,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	return peer{"rueidis", func(ctx context.Context, key string) (func() error, error) {
		_, cancel, err := l.WithContext(ctx, key)
		return func() error { cancel(); return nil }, err
	}}
}

// redsyncLock is redsync on one server, with its own delays.
func redsyncLock(b *testing.B, addr string) peer {
	client := redis.NewClient(&redis.Options{Addr: addr})
	b.Cleanup(func() { client.Close() })
	rs := redsync.New(goredis.NewPool(client))
	return peer{"redsync", func(ctx context.Context, key string) (func() error, error) {
		m := rs.NewMutex(key, redsync.WithExpiry(lease))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error { _, err := m.UnlockContext(ctx); return err }, nil
	}}
}

func oursOnZooKeeper(b *testing.B, addr string) peer {
	l, err := zklock.New(zklock.Config{Addrs: []string{addr}, Session: lease, Timeout: 10 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return peer{"ours", ours(l)}
}

// zkRecipe is the lock that comes with github.com/go-zookeeper/zk.
func zkRecipe(b *testing.B, addr string) peer {
	conn, events, err := zk.Connect([]string{addr}, lease, zk.WithLogger(silent{}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return peer{"recipe", func(_ context.Context, key string) (func() error, error) {
		l := zk.NewLock(conn, "/recipe/"+key, zk.WorldACL(zk.PermAll))
		return l.Unlock, l.Lock()
	}}
}

type silent struct{}

func (silent) Printf(string, ...any) {}
