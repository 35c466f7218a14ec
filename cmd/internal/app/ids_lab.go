package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"seckill/repository"
	"seckill/repository/ids/lab"
	"seckill/repository/ids/redisids"
	"seckill/service/idgen"
)

// IDLab is what the experiments about ids have shown.
type IDLab struct {
	Server string            `json:"server"` // the database's version
	Refill *lab.RefillResult `json:"refill,omitempty"`
	Keys   *lab.KeysResult   `json:"keys,omitempty"`
	Step   *lab.StepResult   `json:"step,omitempty"`
}

// RunIDLab runs the experiments named: "refill" on Redis, "keys" and "step" on the database, which is used up by it: it
// migrates it and makes tables in it. It takes about two minutes in all.
func RunIDLab(ctx context.Context, servers Servers, experiments map[string]bool, log *slog.Logger) (result IDLab, err error) {
	if servers.Embedded() || len(servers.RedisAddrs) == 0 {
		return result, errors.New("--mysql-dsn and --redis-addrs are needed: this is about real servers")
	}
	opts := Options{Servers: servers, IDs: IDs{IDs: "redis-segment"}}
	var s stack
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	db, err := OpenDatabase(ctx, &opts, log)
	if err != nil {
		return result, err
	}
	s.onClose("database", func(context.Context) error { return db.Close() })
	if _, err := db.Migrate(ctx); err != nil {
		return result, err
	}
	result.Server = db.Version()
	ranges := db.IDRanges(repository.OrderIDs)
	if experiments["refill"] {
		if result.Refill, err = refillLab(ctx, &opts, ranges, &s); err != nil {
			return result, fmt.Errorf("refill: %w", err)
		}
	}
	if experiments["keys"] {
		if result.Keys, err = keysLab(ctx, db, servers.MySQLDSN, &s); err != nil {
			return result, fmt.Errorf("keys: %w", err)
		}
	}
	if experiments["step"] {
		step, err := lab.Step(ctx, lab.StepConfig{Ranges: ranges})
		if err != nil {
			return result, fmt.Errorf("step: %w", err)
		}
		result.Step = &step
	}
	return result, nil
}

func refillLab(ctx context.Context, opts *Options, ranges *repository.IDRanges, s *stack) (*lab.RefillResult, error) {
	client, err := openRedisClient(opts, opts.Servers.RedisAddrs, s)
	if err != nil {
		return nil, err
	}
	const key = "ids:lab"
	store := redisids.New(client, key, ranges)
	if _, err := store.Restore(ctx); err != nil {
		return nil, err
	}
	s.onClose("lab's keys", func(ctx context.Context) error { return client.Del(ctx, key, key+":single").Err() })
	result, err := lab.Refill(ctx, lab.RefillConfig{
		Incr:   func(ctx context.Context) error { return client.Incr(ctx, key+":single").Err() },
		Ranges: store,
	})
	return &result, err
}

func keysLab(ctx context.Context, db *repository.DB, dsn string, s *stack) (*lab.KeysResult, error) {
	snowflake, err := idgen.NewSnowflake(ctx, db.WorkerLeases())
	if err != nil {
		return nil, err
	}
	s.onClose("ids", snowflake.Close)
	pool, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	s.onClose("lab's connections", func(context.Context) error { return pool.Close() })
	result, err := lab.Keys(ctx, lab.KeysConfig{DB: pool, Snowflake: snowflake})
	return &result, err
}
