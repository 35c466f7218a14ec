package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository"
	"seckill/repository/ids/redisids"
	"seckill/repository/ids/zkids"
	"seckill/repository/lock/redislock"
	"seckill/service/idgen"
)

// idClock is the clock that order ids take the time from. A drill replaces it; see clock_file.go.
var idClock idgen.Clock = time.Now

// redisIDKey is where Redis counts ids.
const redisIDKey = "ids:seckill"

// openIDs starts the id generator of the options.
func (a *App) openIDs(ctx context.Context, b backends) (idgen.Generator, error) {
	ids, err := a.newIDs(ctx, b)
	if errors.Is(err, idgen.ErrCounterLost) {
		err = fmt.Errorf("%w; if you know why, `seckill ids restore` continues above all ids that were given away", err)
	}
	if err != nil {
		return nil, fmt.Errorf("order ids: %w", err)
	}
	a.stack.onClose("order ids", ids.Close)
	return ids, nil
}

func (a *App) newIDs(ctx context.Context, b backends) (idgen.Generator, error) {
	ranges := a.DB.IDRanges(repository.OrderIDs)
	switch a.opts.IDs.IDs {
	case "leaf":
		return a.newSegment(ctx, ranges)
	case "redis-segment":
		return a.newSegment(ctx, redisids.New(b.redis, redisIDKey, ranges), idgen.WithLoadAt(0.75))
	}
	leases, err := a.openLeases(ctx)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // tells people whose lease it is
	snowflake, err := idgen.NewSnowflake(ctx, leases, idgen.WithOwner(host), idgen.WithObserver(a.observer),
		idgen.WithDataCenter(a.opts.IDs.DataCenter), idgen.WithClock(idClock))
	if err != nil {
		return nil, err
	}
	a.observer.addSnowflake(snowflake)
	return snowflake, nil
}

func (a *App) newSegment(ctx context.Context, store idgen.RangeStore, options ...idgen.SegmentOption) (idgen.Generator, error) {
	segment, err := idgen.NewSegment(ctx, store, append(options, idgen.WithSegmentObserver(a.observer))...)
	if err != nil {
		return nil, err
	}
	a.observer.addSegment(segment)
	return segment, nil
}

// openLeases opens the store of worker ids: the database, or ZooKeeper.
func (a *App) openLeases(ctx context.Context) (idgen.LeaseStore, error) {
	if a.opts.IDs.WorkerLeases == "database" {
		return a.DB.WorkerLeases(), nil
	}
	const session = 10 * time.Second // leases do not depend on it
	conn, events, err := zk.Connect(a.opts.Servers.ZooKeeperAddrs, session, zk.WithLogInfo(false), zk.WithLogger(noLog{}))
	if err != nil {
		return nil, fmt.Errorf("--zookeeper-addrs: %w", err)
	}
	a.stack.onClose("zookeeper", func(context.Context) error { conn.Close(); return nil })
	ctx, cancel := context.WithTimeout(ctx, session)
	defer cancel()
	for conn.State() != zk.StateHasSession { // the first connection may fail and the next succeed
		select {
		case <-events:
		case <-ctx.Done():
			return nil, fmt.Errorf("--zookeeper-addrs: no session within %s", session)
		}
	}
	return zkids.New(conn, "/seckill/ids", zk.WorldACL(zk.PermAll)), nil
}

// noLog keeps the ZooKeeper client from writing to the standard logger; its calls return the errors.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

// RestoreIDs raises Redis's counter of ids to the highest number that the database knows was given away, and returns the
// counter.
func RestoreIDs(ctx context.Context, servers Servers, log *slog.Logger) (counter int64, err error) {
	if servers.Embedded() || len(servers.RedisAddrs) == 0 {
		return 0, errors.New("--mysql-dsn and --redis-addrs are needed: the record is in one, the counter in the other")
	}
	db, err := OpenDatabase(ctx, &Options{Servers: servers}, log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := redislock.NewClient(servers.RedisConfig(servers.RedisAddrs))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return redisids.New(client, redisIDKey, db.IDRanges(repository.OrderIDs)).Restore(ctx)
}
