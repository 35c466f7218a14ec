package app

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/lock/redislock"
	"seckill/repository/lock/redlock"
	"seckill/repository/lock/zklock"
	"seckill/service/lock"
)

// openLocker opens the lock of the options. Unless it is required, orders bypass it while its servers are unavailable.
func (a *App) openLocker(client redis.UniversalClient) (lock.Locker, error) {
	locker, err := a.newLocker(client)
	if err != nil {
		return nil, err
	}
	if a.opts.Lock.Lock != "none" {
		if !a.opts.Lock.LockRequired {
			locker = lock.Bypass(locker, lock.BypassOptions{Timeout: a.opts.lockTimeout(), Observer: a.observer})
		}
		locker = lock.Observe(locker, a.observer)
	}
	a.stack.onClose("locks", func(context.Context) error { return locker.Close() })
	return locker, nil
}

func (a *App) newLocker(client redis.UniversalClient) (lock.Locker, error) {
	o := &a.opts
	switch o.Lock.Lock {
	case "redis":
		return redislock.New(client, redislock.Options{Lease: o.Lock.LockLease, Timeout: o.lockTimeout()}), nil
	case "redlock":
		// A failed attempt asks the servers twice, to lock and to release, so it may take two budgets.
		return redlock.New(redlock.Config{
			Addrs: o.Lock.RedlockAddrs, Username: o.Servers.RedisUsername, Password: o.Servers.RedisPassword,
			DB: o.Servers.RedisDB, Lease: o.Lock.LockLease, Budget: o.Lock.LockTimeout / 2,
		})
	case "zookeeper":
		return zklock.New(zklock.Config{Addrs: o.Servers.ZooKeeperAddrs, Session: o.Lock.LockSession, Timeout: o.lockTimeout()})
	case "none":
		return lock.None(), nil
	}
	return nil, fmt.Errorf("unknown lock %q", o.Lock.Lock)
}

// lockTimeout is how long an order waits for the lock's servers. A Redis in this process is never unavailable, only as
// busy as the process.
func (o *Options) lockTimeout() time.Duration {
	if o.Servers.Embedded() && o.Lock.Lock == "redis" {
		return max(o.Lock.LockTimeout, 2*time.Second)
	}
	return o.Lock.LockTimeout
}
