package app

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/repository/lock/redislock"
	"seckill/repository/lock/redlock"
	"seckill/repository/lock/zklock"
	"seckill/service/lock"
	"seckill/service/outbox"
)

// backends are the servers of a shop, beside the database.
type backends struct {
	redis  redis.UniversalClient // nil if nothing needs it
	broker outbox.Broker
}

// openBackends opens the servers that the options name, or the embedded ones: an SQLite file, and a Redis and a broker in
// this process. In between it reads the key of tokens; an embedded shop makes one at its first start.
func (a *App) openBackends(ctx context.Context) (b backends, err error) {
	redisAddrs := a.opts.Servers.RedisAddrs
	if a.opts.Servers.Embedded() {
		if redisAddrs, err = a.startEmbedded(); err != nil {
			return b, err
		}
	}
	if a.JWTKey, err = tokenKey(&a.opts); err != nil {
		return b, err
	}
	if err = a.openMigrated(ctx); err != nil {
		return b, err
	}
	if a.opts.Lock.Lock == "redis" || a.opts.IDs.IDs == "redis-segment" {
		if b.redis, err = a.openRedis(redisAddrs); err != nil {
			return b, err
		}
		a.observer.addRedis(b.redis)
	}
	b.broker, err = a.openBroker()
	return b, err
}

// startEmbedded claims the data directory and starts a Redis in this process if the lock needs one.
func (a *App) startEmbedded() (redisAddrs []string, err error) {
	if err := a.claimData(); err != nil {
		return nil, err
	}
	a.opts.Servers.Migrate = true // no other process can
	if a.opts.Lock.Lock != "redis" {
		return nil, nil
	}
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // by default its keys never expire
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	a.stack.onClose("embedded redis", func(context.Context) error { server.Close(); return nil })
	return []string{server.Addr()}, nil
}

// openMigrated opens the database and makes sure that its tables are up to date.
func (a *App) openMigrated(ctx context.Context) (err error) {
	if a.DB, err = OpenDatabase(ctx, &a.opts, a.log); err != nil {
		return err
	}
	a.stack.onClose("database", func(context.Context) error { return a.DB.Close() })
	a.observer.addDatabase(a.DB)
	if a.opts.Servers.Migrate {
		_, err = a.DB.Migrate(ctx)
		return err
	}
	return a.DB.Migrated(ctx)
}

// openRedis opens a client that retries nothing: its users know what may be repeated.
func (a *App) openRedis(addrs []string) (redis.UniversalClient, error) {
	client, err := redislock.NewClient(a.opts.Servers.RedisConfig(addrs))
	if err != nil {
		return nil, err
	}
	a.stack.onClose("redis", func(context.Context) error { return client.Close() })
	return client, nil
}

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
