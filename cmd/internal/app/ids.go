package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/repository"
	"seckill/repository/ids/redisids"
	"seckill/service/idgen"
)

// idTag names the ids of this shop among those of others that use the same tables or the same Redis.
const idTag = "seckill"

// openIDs starts the generator that the options name.
func openIDs(ctx context.Context, opts *Options, b backends, m *metrics, log *slog.Logger, s *stack) (idgen.Generator, error) {
	observe := func(e idgen.Event) {
		m.idEvent(e)
		logIDEvent(log, e)
	}
	ids, err := newIDs(ctx, opts, b, m, observe)
	if errors.Is(err, idgen.ErrCounterLost) {
		err = fmt.Errorf("%w; if you know why, `seckill ids restore` goes on above what was given away", err)
	}
	if err != nil {
		return nil, fmt.Errorf("order ids: %w", err)
	}
	s.onClose("order ids", ids.Close)
	return ids, nil
}

func newIDs(ctx context.Context, opts *Options, b backends, m *metrics, observe idgen.Observer) (idgen.Generator, error) {
	switch opts.IDs.IDs {
	case "leaf":
		ranges, err := idRanges(ctx, b.db)
		if err != nil {
			return nil, err
		}
		return watchSegment(m)(idgen.NewSegment(ctx, ranges, idgen.WithSegmentObserver(observe)))
	case "redis-segment":
		ranges, err := idRanges(ctx, b.db)
		if err != nil {
			return nil, err
		}
		store := redisids.New(b.redis, redisIDKey, ranges)
		return watchSegment(m)(idgen.NewSegment(ctx, store, idgen.WithLoadAt(0.75), idgen.WithSegmentObserver(observe)))
	}
	host, _ := os.Hostname() // only to tell people whose lease it is
	snowflake, err := idgen.NewSnowflake(ctx, b.db.WorkerLeases(), idgen.WithOwner(host), idgen.WithObserver(observe),
		idgen.WithDataCenter(opts.IDs.DataCenter))
	if err != nil {
		return nil, err
	}
	m.watchSnowflake(snowflake)
	return snowflake, nil
}

// redisIDKey is where Redis counts.
const redisIDKey = "ids:" + idTag

func idRanges(ctx context.Context, db *repository.DB) (*repository.IDRanges, error) {
	ranges := db.IDRanges(idTag)
	return ranges, ranges.Create(ctx, 1000, "orders, events and vouchers")
}

// watchSegment adds a segment's gauges, if there is one.
func watchSegment(m *metrics) func(s *idgen.Segment, err error) (idgen.Generator, error) {
	return func(s *idgen.Segment, err error) (idgen.Generator, error) {
		if err != nil {
			return nil, err
		}
		gauge := m.gauge
		gauge("ids_segment_remaining", "Ids at hand.", func() float64 { return float64(s.Stats().Remaining) })
		gauge("ids_segment_step", "Ids that the next load asks for.", func() float64 { return float64(s.Stats().Step) })
		gauge("ids_waiting_calls", "Calls that wait for ids.", func() float64 { return float64(s.Stats().Waiting) })
		gauge("ids_segment_load_seconds", "Time that the last load took.", func() float64 { return s.Stats().LastLoad.Seconds() })
		return s, nil
	}
}

func (m *metrics) watchSnowflake(s *idgen.Snowflake) {
	m.gauge("ids_worker", "Worker id in use.", func() float64 { return float64(s.Stats().Worker) })
	m.gauge("ids_ahead_seconds", "How far ids are ahead of the clock.", func() float64 { return s.Stats().Ahead.Seconds() })
	m.gauge("ids_lease_left_seconds", "Time for which ids can be issued without a renewal.", func() float64 { return s.Stats().LeaseLeft.Seconds() })
	m.gauge("ids_waiting_calls", "Calls that wait for ids.", func() float64 { return float64(s.Stats().Waiting) })
}

func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "seckill_" + name, Help: help}, value))
}

func logIDEvent(log *slog.Logger, e idgen.Event) {
	switch e.Kind {
	case idgen.LeaseRenewed, idgen.SegmentLoaded:
		return // all is well, every few seconds
	case idgen.LeaseAcquired:
		log.Info("order ids: a worker id was leased", "worker", e.Worker)
	case idgen.WorkerSwitched:
		log.Warn("order ids: went over to the other worker id of the pair", "worker", e.Worker, "ahead", e.Step)
	case idgen.ClockWait, idgen.ClockAhead:
		log.Warn("order ids: the clock went back", "event", e.Kind.String(), "by", e.Step)
	default:
		log.Error("order ids", "event", e.Kind.String(), "error", e.Err)
	}
}

// RestoreIDs raises Redis's counter of ids to what the database knows to be given away, and returns where it stands.
func RestoreIDs(ctx context.Context, servers Servers, log *slog.Logger) (at int64, err error) {
	if servers.Embedded() || len(servers.RedisAddrs) == 0 {
		return 0, errors.New("--mysql-dsn and --redis-addrs are needed: the record is in one, the counter in the other")
	}
	opts := Options{Servers: servers, IDs: IDs{IDs: "redis-segment"}}
	var opened stack
	defer func() { err = errors.Join(err, opened.close(context.WithoutCancel(ctx))) }()
	db, err := OpenDatabase(ctx, &opts, log)
	if err != nil {
		return 0, err
	}
	opened.onClose("database", func(context.Context) error { return db.Close() })
	client, err := openRedis(&opts, servers.RedisAddrs, &opened)
	if err != nil {
		return 0, err
	}
	ranges, err := idRanges(ctx, db)
	if err != nil {
		return 0, err
	}
	return redisids.New(client, redisIDKey, ranges).Restore(ctx)
}
