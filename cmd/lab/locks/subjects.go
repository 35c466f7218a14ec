package locks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/repository"
	"seckill/repository/lock/redislock"
	"seckill/repository/lock/redlock"
	"seckill/repository/lock/zklock"
	"seckill/service/lock"
)

// breakable is a Locker whose locks can be deleted under their holders.
type breakable interface {
	lock.Locker
	Break(ctx context.Context, key string) error
	Requests() int64
}

// subject is a lock to be examined.
type subject struct {
	name  string
	where string // its servers are
	// open returns a Locker that stands for a separate process. The caller closes it.
	open func() (breakable, error)
}

// run runs both cases, measures the cost, and sells a voucher while the lock is broken.
func (s subject) run(ctx context.Context, db *repository.DB, pause time.Duration, log *slog.Logger) (r result, err error) {
	if r.cases, err = s.runCases(ctx, pause); err != nil {
		return r, err
	}
	if r.cost, err = s.measure(ctx, 500); err != nil {
		return r, err
	}
	r.sale, err = s.sellWhileBreaking(ctx, db, log)
	return r, err
}

// subjects returns the locks for which there is a server; stop closes the in-process servers.
func (c *Command) subjects() (subjects []subject, stop func(), err error) {
	var servers []*miniredis.Miniredis
	stop = func() {
		for _, server := range servers {
			server.Close()
		}
	}
	start := func(n int) (addrs []string) {
		for range n {
			server := miniredis.NewMiniRedis()
			server.ClockTTL(true) // by default its keys never expire
			if startErr := server.Start(); startErr != nil {
				err = errors.Join(err, fmt.Errorf("in-process redis: %w", startErr))
				continue
			}
			servers = append(servers, server)
			addrs = append(addrs, server.Addr())
		}
		return addrs
	}
	lease := 3 * c.Pause
	if len(c.RedisAddrs) > 0 {
		subjects = append(subjects, redisSubject("configured", c.RedisAddrs, lease))
	} else {
		subjects = append(subjects, redisSubject("in this process", start(1), lease))
	}
	if len(c.RedlockAddrs) > 0 {
		subjects = append(subjects, redlockSubject("configured", redlock.Config{Addrs: c.RedlockAddrs, Lease: lease}))
	} else { // these servers have just started, so they have forgotten nothing
		subjects = append(subjects, redlockSubject("five in this process", redlock.Config{Addrs: start(5), Lease: lease, Quarantine: -1}))
	}
	if len(c.ZooKeeperAddrs) > 0 {
		subjects = append(subjects, zookeeperSubject(c.ZooKeeperAddrs, max(lease, 4*time.Second)))
	}
	return subjects, stop, err
}

func redisSubject(where string, addrs []string, lease time.Duration) subject {
	return subject{"redis", where, func() (breakable, error) {
		client, err := redislock.NewClient(redislock.Config{Addrs: addrs})
		if err != nil {
			return nil, err
		}
		return breakableRedis{redislock.New(client, redislock.Options{Lease: lease}), client}, nil
	}}
}

// breakableRedis is a Redis lock and its client.
type breakableRedis struct {
	*redislock.Locker
	client redis.UniversalClient
}

func (b breakableRedis) Break(ctx context.Context, key string) error {
	return redislock.Break(ctx, b.client, key)
}

func (b breakableRedis) Close() error { return errors.Join(b.Locker.Close(), b.client.Close()) }

func redlockSubject(where string, config redlock.Config) subject {
	config.Budget = 500 * time.Millisecond
	return subject{"redlock", where, func() (breakable, error) { return redlock.New(config) }}
}

func zookeeperSubject(addrs []string, session time.Duration) subject {
	return subject{"zookeeper", "configured", func() (breakable, error) {
		return zklock.New(zklock.Config{Addrs: addrs, Session: session, Timeout: 10 * time.Second})
	}}
}
