package app

import (
	"context"
	"log/slog"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/lock/redlock"
	"seckill/repository/lock/zklock"
	"seckill/service/lock"
)

// openLocker puts together what stands in front of the database: the lock of the options, unless it is required a way
// around it while its servers are away, and metrics.
func openLocker(opts *Options, b backends, m *metrics, log *slog.Logger, s *stack) (lock.Locker, error) {
	locker, err := newLocker(opts, b)
	if err != nil {
		return nil, err
	}
	if opts.Lock.Lock != "none" {
		if !opts.Lock.LockRequired {
			locker = lock.Bypass(locker, lock.BypassOptions{
				Timeout: opts.lockTimeout(), Observer: lockWatch{m, log},
			})
		}
		locker = lock.Observe(locker, lockWatch{m, log})
	}
	s.onClose("locks", func(context.Context) error { return locker.Close() })
	return locker, nil
}

func newLocker(opts *Options, b backends) (lock.Locker, error) {
	switch opts.Lock.Lock {
	case "redis":
		return redislock.New(b.redis, redislock.Options{Lease: opts.Lock.LockLease, Timeout: opts.lockTimeout()}), nil
	case "redlock":
		return redlock.New(redlock.Config{
			Addrs: opts.Lock.RedlockAddrs, Username: opts.Servers.RedisUsername, Password: opts.Servers.RedisPassword,
			DB: opts.Servers.RedisDB, Lease: opts.Lock.LockLease, Budget: opts.Lock.LockTimeout / 2,
		})
	case "zookeeper":
		return zklock.New(zklock.Config{Addrs: opts.Servers.ZooKeeperAddrs, Session: opts.Lock.LockSession, Timeout: opts.lockTimeout()})
	}
	return lock.None(), nil
}

// lockTimeout is how long an order waits for the lock's servers. A Redis in this process cannot be away, only as busy as
// the process is.
func (o *Options) lockTimeout() time.Duration {
	if o.Servers.Embedded() && o.Lock.Lock == "redis" {
		return max(o.Lock.LockTimeout, 2*time.Second)
	}
	return o.Lock.LockTimeout
}

func breakerChanged(m *metrics, log *slog.Logger, open bool, cause error) {
	m.breaker("lock", open, true) // it tells of changes only
	m.meter.LockBreaker(open)
	if open {
		log.Warn("the lock's servers are away; the shop goes on with the database alone", "error", cause)
	} else {
		log.Info("the lock's servers are back")
	}
}
