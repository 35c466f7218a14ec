package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/repository"
	"seckill/repository/lock/redislock"
	"seckill/repository/lock/redlock"
	"seckill/repository/lock/zklock"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/lock/lesson"
)

// breakable is a Locker whose locks can be taken from their holders.
type breakable interface {
	lock.Locker
	Break(ctx context.Context, key string) error
}

// breakableRedis is the Redis lock with the client that takes it away.
type breakableRedis struct {
	*redislock.Locker
	client redis.UniversalClient
}

func (b breakableRedis) Break(ctx context.Context, key string) error {
	return redislock.Break(ctx, b.client, key)
}

// LockLesson is what one lock was worth.
type LockLesson struct {
	Name     string
	Where    string
	Cost     lesson.Cost
	Findings []lesson.Finding
	Sale     LockSale
}

// LockSale is a sale whose buyers lost their locks all the time.
type LockSale struct {
	Stock, Sold, Broken int64
	Audit               repository.Audit
}

// LockLessons plays the stories of package lesson with every lock for which there is a server, and sells a voucher while
// its locks are taken away. Without addresses, the Redis locks run on servers in this process.
func LockLessons(ctx context.Context, opts Options, nap time.Duration, log *slog.Logger) (lessons []LockLesson, err error) {
	var s stack
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	subjects, err := lessonSubjects(&opts, nap, &s)
	if err != nil {
		return nil, err
	}
	db, err := OpenDatabase(ctx, &opts, log)
	if err != nil {
		return nil, err
	}
	s.onClose("database", func(context.Context) error { return db.Close() })
	if _, err := db.Migrate(ctx); err != nil {
		return nil, err
	}
	for _, subject := range subjects {
		l, err := subject.learn(ctx, db, nap, log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", subject.name, err)
		}
		lessons = append(lessons, l)
	}
	return lessons, nil
}

// lessonSubject is a kind of lock and how to open another Locker of it, as a process of its own would.
type lessonSubject struct {
	name, where string
	open        func() (breakable, error)
}

func lessonSubjects(opts *Options, nap time.Duration, s *stack) ([]lessonSubject, error) {
	var subjects []lessonSubject
	lease := 3 * nap
	redisAddrs, where := opts.Servers.RedisAddrs, "configured"
	if len(redisAddrs) == 0 {
		embedded, err := embeddedRedis(1, s)
		if err != nil {
			return nil, err
		}
		redisAddrs, where = embedded, "in this process"
	}
	subjects = append(subjects, lessonSubject{"redis", where, func() (breakable, error) {
		client, err := openRedisClient(opts, redisAddrs, s)
		if err != nil {
			return nil, err
		}
		return breakableRedis{redislock.New(client, redislock.Options{Lease: lease}), client}, nil
	}})
	nodes, where, quarantine := opts.Lock.RedlockAddrs, "configured", time.Duration(0)
	if len(nodes) == 0 {
		embedded, err := embeddedRedis(5, s)
		if err != nil {
			return nil, err
		}
		nodes, where, quarantine = embedded, "five in this process", -1 // they have just started, and have forgotten nothing
	}
	subjects = append(subjects, lessonSubject{"redlock", where, func() (breakable, error) {
		return redlock.New(redlock.Config{Addrs: nodes, Lease: lease, Quarantine: quarantine, Budget: 500 * time.Millisecond})
	}})
	if zookeeper := opts.Servers.ZooKeeperAddrs; len(zookeeper) > 0 {
		subjects = append(subjects, lessonSubject{"zookeeper", "configured", func() (breakable, error) {
			return zklock.New(zklock.Config{Addrs: zookeeper, Session: max(lease, 4*time.Second)})
		}})
	}
	return subjects, nil
}

// embeddedRedis starts servers in this process.
func embeddedRedis(n int, s *stack) (addrs []string, err error) {
	for range n {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true) // by default its keys never expire
		if err := server.Start(); err != nil {
			return nil, fmt.Errorf("embedded redis: %w", err)
		}
		s.onClose("embedded redis", func(context.Context) error { server.Close(); return nil })
		addrs = append(addrs, server.Addr())
	}
	return addrs, nil
}

func (l lessonSubject) learn(ctx context.Context, db *repository.DB, nap time.Duration, log *slog.Logger) (result LockLesson, err error) {
	result.Name, result.Where = l.name, l.where
	operator, err := l.open() // who takes locks away
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, operator.Close()) }()
	subject := lesson.Subject{
		Name:  l.name,
		New:   func() (lock.Locker, error) { return l.open() },
		Break: operator.Break,
	}
	if result.Findings, err = lesson.Run(ctx, subject, nap); err != nil {
		return result, err
	}
	if result.Cost, err = lesson.Measure(ctx, subject, 500); err != nil {
		return result, err
	}
	locker, err := l.open()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, locker.Close()) }()
	result.Sale, err = sellWhileBreaking(ctx, db, locker, operator, log)
	return result, err
}

// sellWhileBreaking sells a voucher to more buyers than there are units, each asking several times at once, while the
// operator takes their locks away as fast as he can.
func sellWhileBreaking(ctx context.Context, db *repository.DB, locker lock.Locker, operator breakable, log *slog.Logger) (sale LockSale, err error) {
	const stock, buyers, repeats = 50, 100, 4
	ids, err := idgen.NewSnowflake(ctx, db.WorkerLeases())
	if err != nil {
		return sale, err
	}
	defer func() { err = errors.Join(err, ids.Close(context.WithoutCancel(ctx))) }()
	shop := service.New(service.Config{
		Orders: repository.NewOrders(db), Vouchers: repository.NewVouchers(db), IDs: ids, Log: log,
		Locker: lock.Bypass(locker, lock.BypassOptions{Timeout: 2 * time.Second}), // as the shop does
	})
	now := time.Now()
	voucher, err := shop.CreateVoucher(ctx, service.NewVoucher{
		Title: "lesson", Stock: stock, UserLimit: 1, PayWithin: time.Hour, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	})
	if err != nil {
		return sale, err
	}
	var sold, broken atomic.Int64
	breaking, stop := context.WithCancel(ctx)
	var operators, crowd sync.WaitGroup
	operators.Go(func() {
		for user := 0; breaking.Err() == nil; user = (user + 1) % buyers {
			if operator.Break(breaking, fmt.Sprintf("lock:voucher:%d:user:%d", voucher.ID, user+1)) == nil {
				broken.Add(1)
			}
		}
	})
	for user := range buyers {
		for range repeats {
			crowd.Go(func() {
				_, replayed, err := shop.PlaceOrder(ctx, service.PlaceRequest{VoucherID: voucher.ID, UserID: service.UserID(user + 1)})
				if err == nil && !replayed {
					sold.Add(1)
				}
			})
		}
	}
	crowd.Wait()
	stop()
	operators.Wait()
	if err := shop.Close(ctx); err != nil {
		return sale, err
	}
	sale.Stock, sale.Sold, sale.Broken = stock, sold.Load(), broken.Load()
	sale.Audit, err = db.Audit(ctx, repository.AuditOptions{})
	return sale, err
}
