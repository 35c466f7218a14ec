// Package shop is the flash sale that is copied most: one Lua script in Redis checks the stock, remembers the buyer and
// appends the order to a stream, the buyer is answered at once, and a worker writes the stream to MySQL later. It is
// here to be measured against, so it is written as well as the pattern allows, and it answers over the same HTTP
// handler as the shop that it is compared with: routing, tokens, decoding and encoding are the same code, and what
// differs is what happens between the request and its answer.
//
// # The way of an order
//
//  1. place.lua, sent in pipelines that concurrent requests share: stock > 0 and the user not in the set of buyers →
//     DECR, SADD, XADD. The answer is 201.
//  2. A consumer group hands the stream to a writer, which inserts up to a thousand orders in one transaction together
//     with the update of the stock row, commits, and only then acknowledges and deletes the entries. What is delivered
//     twice changes nothing, because orders have their ids and a unique index.
//
// # What it is good at
//
// No buyer waits for a disk, and Redis alone decides: there is no hot row between the buyer and the answer. As long as
// Redis keeps what it was told, every acknowledged order reaches MySQL, each once, and nothing is oversold.
//
// # What can go wrong
//
// The answer says that Redis has the order, in memory. From there until the writer's commit, it is only there.
//
//   - Redis fails over after the answer: replication is asynchronous, so the replica that takes over may lack the last
//     orders, however often the master synced its file. Those were acknowledged and exist nowhere.
//   - Redis crashes without a replica. Without persistence, all that the writer has not committed is gone. With
//     appendfsync everysec, a crash of the machine loses the last second or two; a crash of the process alone loses
//     nothing that Redis has handed to the operating system, which it does before it answers, unless a sync is slow.
//   - The stock is counted twice, and a failover makes the two counters differ. Where Redis went back in time by orders
//     that MySQL has, it sells those units again; buyers get a 201 and the database refuses them later (Stats
//     calls these Refused). Where Redis took a unit and lost the order, nothing gives it back.
//   - Whoever reads an order right after the 201 may not find it: the backlog is as long as the sale is faster than the
//     writer.
//
// WAIT and appendfsync always narrow the first two at a cost in speed; neither makes the pair of stores one (Redis says
// of WAIT that it does not make it a strongly consistent store). The tests in lost_test.go show each of these, and also
// the crash that loses nothing.
package shop

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"seckill/handler"
	"seckill/service/idgen"
)

// Options say where the servers are.
type Options struct {
	RedisAddr string
	MySQLDSN  string // go-sql-driver format, naming a database
	BatchMax  int    // most orders that the writer commits together; default 1000
	Plain     bool   // a round trip for each script instead of shared pipelines, to see what those are worth
}

// Shop sells from Redis. It is safe for concurrent use, and must be the only instance on its stream: the writer uses one
// consumer name. Close it.
type Shop struct {
	handler.Shop // nil: a request that is not about placing orders panics, and the handler answers it with 500

	db      *sql.DB
	redis   *redis.Client
	orders  redis.Cmdable // the same client, with shared pipelines unless Options.Plain
	place   *redis.Script
	ids     *idgen.Snowflake
	log     *slog.Logger
	sales   sync.Map // idgen.ID → *sale
	closers []func() error
}

// Open connects to the servers, creates the tables if they are not there, and starts the writer.
func Open(ctx context.Context, opts Options, log *slog.Logger) (*Shop, error) {
	s := &Shop{place: redis.NewScript(placeSource), log: log}
	if err := s.open(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &writer{shop: s, batchMax: int64(cmp.Or(opts.BatchMax, 1000))}
	var writing sync.WaitGroup
	writing.Go(func() { w.run(running) })
	s.closers = append(s.closers, func() error {
		stop()
		writing.Wait()
		return nil
	})
	return s, nil
}

func (s *Shop) open(ctx context.Context, opts Options) (err error) {
	if s.db, err = openTables(ctx, opts.MySQLDSN); err != nil {
		return err
	}
	s.closers = append(s.closers, s.db.Close)
	s.redis = redis.NewClient(&redis.Options{
		Addr: opts.RedisAddr, ContextTimeoutEnabled: true, DialerRetries: 1,
		MaxRetries: -1, // a script that is sent twice finds that its buyer has bought
		// Shared pipelines need few connections; without them each waiting request needs one.
		PoolSize:                 512,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.closers = append(s.closers, s.redis.Close)
	if err := s.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	s.orders = s.redis
	if !opts.Plain {
		shared, err := s.redis.AutoPipeline()
		if err != nil {
			return err
		}
		s.closers = append(s.closers, shared.Close)
		s.orders = shared
	}
	if s.ids, err = idgen.NewSnowflake(ctx, idgen.NewStatic(0)); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { return s.ids.Close(context.Background()) })
	return nil
}

// Ready reports whether both servers answer.
func (s *Shop) Ready(ctx context.Context) error {
	return errors.Join(s.redis.Ping(ctx).Err(), s.db.PingContext(ctx))
}

// Close stops the writer after the batch in hand and closes the connections. What is in the stream stays there for the
// next Open.
func (s *Shop) Close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// pause waits, but not beyond ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
