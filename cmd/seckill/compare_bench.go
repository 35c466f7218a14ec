package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/lock/redislock"
)

// bench is what all turns share.
type bench struct {
	cmd     *compareCmd
	program string // this one
	key     string
	tokens  *tokens
	redis   map[string][]redis.UniversalClient // the servers of each lock that has any
	machine machine
	log     *slog.Logger
}

func newBench(ctx context.Context, c *compareCmd, out *output) (b *bench, err error) {
	b = &bench{cmd: c, key: rand.Text() + rand.Text(), machine: describeMachine(), log: slog.New(slog.NewTextHandler(out.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if b.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.tokens, err = newTokens([]byte(b.key), 24*time.Hour); err != nil {
		return nil, err
	}
	users := int64(mostPrepared)
	if c.Orders > 0 {
		users = c.Orders
	}
	b.tokens.prepare(firstBuyer, users)
	if c.Embedded() {
		return b, nil
	}
	if err := b.openRedis(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// openRedis opens the servers of the locks, to read what they count.
func (b *bench) openRedis(ctx context.Context) error {
	c := b.cmd
	b.redis = map[string][]redis.UniversalClient{}
	config := redislock.Config{
		Addrs: c.RedisAddrs, SentinelMaster: c.RedisSentinelMaster, Cluster: c.RedisCluster, Username: c.RedisUsername,
		Password: c.RedisPassword, SentinelPassword: c.RedisSentinelPassword, DB: c.RedisDB,
	}
	if slices.Contains(c.Lock, "redis") {
		if err := b.addRedis(ctx, "redis", config); err != nil {
			return err
		}
	}
	if slices.Contains(c.Lock, "redlock") {
		for _, addr := range c.RedlockAddrs {
			if err := b.addRedis(ctx, "redlock", redislock.Config{Addrs: []string{addr}, Username: c.RedisUsername, Password: c.RedisPassword}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) addRedis(ctx context.Context, lock string, config redislock.Config) error {
	client, err := redislock.NewClient(config)
	if err != nil {
		return err
	}
	b.redis[lock] = append(b.redis[lock], client)
	b.machine.Redis, err = describeRedis(ctx, client)
	return err
}

func (b *bench) close() {
	for _, clients := range b.redis {
		for _, client := range clients {
			_ = client.Close() // it was only read from
		}
	}
}
