package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository"
	"seckill/repository/ids/redisids"
	"seckill/repository/ids/zkids"
	"seckill/service/idgen"
)

// openIDs starts the generator that the options name.
func openIDs(ctx context.Context, opts *Options, b backends, m *metrics, log *slog.Logger, s *stack) (idgen.Generator, error) {
	ids, err := newIDs(ctx, opts, b, m, &idLog{metrics: m, log: log}, s)
	if errors.Is(err, idgen.ErrCounterLost) {
		err = fmt.Errorf("%w; if you know why, `seckill ids restore` goes on above what was given away", err)
	}
	if err != nil {
		return nil, fmt.Errorf("order ids: %w", err)
	}
	s.onClose("order ids", ids.Close)
	return ids, nil
}

func newIDs(ctx context.Context, opts *Options, b backends, m *metrics, observe idgen.Observer, s *stack) (idgen.Generator, error) {
	switch opts.IDs.IDs {
	case "leaf":
		return watchSegment(m)(idgen.NewSegment(ctx, b.db.IDRanges(repository.OrderIDs), idgen.WithSegmentObserver(observe)))
	case "redis-segment":
		store := redisids.New(b.redis, redisIDKey, b.db.IDRanges(repository.OrderIDs))
		return watchSegment(m)(idgen.NewSegment(ctx, store, idgen.WithLoadAt(0.75), idgen.WithSegmentObserver(observe)))
	}
	host, _ := os.Hostname() // only to tell people whose lease it is
	leases, err := openLeases(ctx, opts, b, s)
	if err != nil {
		return nil, err
	}
	snowflake, err := idgen.NewSnowflake(ctx, leases, idgen.WithOwner(host), idgen.WithObserver(observe),
		idgen.WithDataCenter(opts.IDs.DataCenter), idgen.WithClock(idClock()))
	if err != nil {
		return nil, err
	}
	m.watchSnowflake(snowflake)
	return snowflake, nil
}

// openLeases opens the store of worker ids: the database, or ZooKeeper.
func openLeases(ctx context.Context, opts *Options, b backends, s *stack) (idgen.LeaseStore, error) {
	if opts.IDs.WorkerLeases == "database" {
		return b.db.WorkerLeases(), nil
	}
	const session = 10 * time.Second // leases do not depend on it
	conn, events, err := zk.Connect(opts.Servers.ZooKeeperAddrs, session, zk.WithLogInfo(false), zk.WithLogger(noLog{}))
	if err != nil {
		return nil, fmt.Errorf("--zookeeper-addrs: %w", err)
	}
	s.onClose("zookeeper", func(context.Context) error { conn.Close(); return nil })
	ctx, cancel := context.WithTimeout(ctx, session)
	defer cancel()
	for conn.State() != zk.StateHasSession { // a first attempt to connect may fail where the next one gets through
		select {
		case <-events:
		case <-ctx.Done():
			return nil, fmt.Errorf("--zookeeper-addrs: no session within %s", session)
		}
	}
	return zkids.New(conn, "/seckill/ids", zk.WorldACL(zk.PermAll)), nil
}

// noLog keeps the client from the standard logger; its errors come back from its calls.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

// redisIDKey is where Redis counts.
const redisIDKey = "ids:seckill"

// idLog writes down what a generator meets. A failure that is tried again every second is told once.
type idLog struct {
	*metrics
	log     *slog.Logger
	failing atomic.Bool
}

func (l *idLog) IDEvent(e idgen.Event) {
	l.idEvent(e)
	l.meter.IDs(e)
	switch e.Kind {
	case idgen.LeaseRenewed, idgen.SegmentLoaded:
		if l.failing.Swap(false) {
			l.log.Info("order ids: their store is back")
		}
	case idgen.LeaseAcquired:
		l.failing.Store(false)
		l.log.Info("order ids: a worker id was leased", "worker", e.Worker)
	case idgen.LeaseFailed, idgen.SegmentFailed:
		if errors.Is(e.Err, context.Canceled) {
			return // the generator is being closed; time-outs are another error
		}
		if !l.failing.Swap(true) {
			l.log.Error("order ids: their store is away; those at hand are used up meanwhile", "error", e.Err)
		}
	case idgen.LeaseLost:
		l.log.Error("order ids: the worker id is lost; no orders until there is another", "error", e.Err)
	case idgen.WorkerSwitched:
		l.log.Warn("order ids: went over to the other worker id of the pair", "worker", e.Worker, "ahead", e.Step)
	default:
		l.log.Warn("order ids: the clock went back", "event", e.Kind.String(), "by", e.Step)
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
	return redisids.New(client, redisIDKey, db.IDRanges(repository.OrderIDs)).Restore(ctx)
}
