package shop

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"seckill/service/idgen"
)

// Options say where the servers are. The zero value of a number stands for its default.
type Options struct {
	RedisAddr string
	MySQLDSN  string // go-sql-driver format, naming a database
	BatchMax  int    // most orders that the writer commits together; default 1000
	Plain     bool   // a round trip for each script instead of shared pipelines, to see what those are worth
}

// Shop sells from Redis. It fills handler.Shop, is safe for concurrent use, and is the only instance on its
// stream: the writer goes by one consumer name. Close it.
type Shop struct {
	db     *sql.DB
	redis  *redis.Client
	orders redis.Cmdable // the same client, with shared pipelines unless Options.Plain
	place  *redis.Script
	ids    *idgen.Snowflake
	log    *slog.Logger
	sales  sync.Map // idgen.ID → *sale

	stop    context.CancelFunc // of the writer
	stopped chan struct{}
	closers []func() error
}

// Open connects to the servers, creates the tables if they are not there, and starts the writer.
func Open(ctx context.Context, opts Options, log *slog.Logger) (*Shop, error) {
	s := &Shop{place: redis.NewScript(placeSource), log: log}
	if err := s.open(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.stopped = stop, make(chan struct{})
	w := &writer{shop: s, batchMax: int64(cmp.Or(opts.BatchMax, 1000))}
	go func() {
		defer close(s.stopped)
		w.run(running)
	}()
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
	if s.stop != nil {
		s.stop()
		<-s.stopped
		s.stop = nil
	}
	var errs []error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		errs = append(errs, s.closers[last]())
		s.closers = s.closers[:last]
	}
	return errors.Join(errs...)
}

// pause waits, but not beyond ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
