package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/repository"
	"seckill/repository/lock/redislock"
	"seckill/service/outbox"
)

// backends are the servers of a shop. Nothing but openBackends knows whether they are real or embedded.
type backends struct {
	db     *repository.DB
	redis  redis.UniversalClient // nil if nothing needs it
	broker outbox.Broker
	jwtKey []byte
}

// openBackends opens what the options name, and registers its release.
func openBackends(ctx context.Context, opts *Options, log *slog.Logger, s *stack) (b backends, err error) {
	if opts.Servers.Embedded() {
		return openEmbedded(ctx, opts, log, s)
	}
	b.jwtKey = []byte(opts.API.JWTKey)
	if b.db, err = openMigrated(ctx, opts, log, s); err != nil {
		return b, err
	}
	if b.redis, err = openRedis(opts, opts.Servers.RedisAddrs, s); err != nil {
		return b, err
	}
	b.broker, err = openBroker(opts, log, s)
	return b, err
}

// openMigrated opens the database and sees to it that its tables are up to date.
func openMigrated(ctx context.Context, opts *Options, log *slog.Logger, s *stack) (*repository.DB, error) {
	db, err := OpenDatabase(ctx, opts, log)
	if err != nil {
		return nil, err
	}
	s.onClose("database", func(context.Context) error { return db.Close() })
	if opts.Servers.Migrate {
		_, err = db.Migrate(ctx)
	} else {
		err = db.Migrated(ctx)
	}
	return db, err
}

// openEmbedded fills the backends with an SQLite file, a Redis and a broker in this process.
func openEmbedded(ctx context.Context, opts *Options, log *slog.Logger, s *stack) (b backends, err error) {
	if err = claimData(opts, s); err != nil {
		return b, err
	}
	if b.jwtKey, err = TokenKey(opts); err != nil {
		return b, err
	}
	opts.Servers.Migrate = true // nobody else would
	if b.db, err = openMigrated(ctx, opts, log, s); err != nil {
		return b, err
	}
	if opts.Lock.Lock == "redis" {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true) // by default its keys never expire
		if err = mini.Start(); err != nil {
			return b, fmt.Errorf("embedded redis: %w", err)
		}
		s.onClose("embedded redis", func(context.Context) error { mini.Close(); return nil })
		if b.redis, err = openRedis(opts, []string{mini.Addr()}, s); err != nil {
			return b, err
		}
	}
	b.broker, err = openBroker(opts, log, s)
	return b, err
}

// OpenDatabase opens the database alone, as it is. The caller closes it.
func OpenDatabase(ctx context.Context, opts *Options, log *slog.Logger) (*repository.DB, error) {
	if !opts.Servers.Embedded() {
		return repository.OpenMySQL(ctx, opts.Servers.MySQLDSN, repository.PoolOptions{MaxOpen: opts.Servers.MySQLConns}, log)
	}
	if err := makeData(opts); err != nil {
		return nil, err
	}
	return repository.OpenSQLite(filepath.Join(opts.Servers.Data, dataFile), log)
}

func openRedis(opts *Options, addrs []string, s *stack) (redis.UniversalClient, error) {
	if opts.Lock.Lock != "redis" && opts.IDs.IDs != "redis-segment" {
		return nil, nil
	}
	return openRedisClient(opts, addrs, s)
}

// openRedisClient opens a client that repeats nothing by itself: who uses it knows what may be repeated.
func openRedisClient(opts *Options, addrs []string, s *stack) (redis.UniversalClient, error) {
	client, err := redislock.NewClient(opts.Servers.RedisConfig(addrs))
	if err != nil {
		return nil, err
	}
	s.onClose("redis", func(context.Context) error { return client.Close() })
	return client, nil
}

// errNoKey tells how to come by a key.
var errNoKey = errors.New("--jwt-key is needed to sign tokens for a shop with --mysql-dsn")
