package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// readyTime is how long an instance that cannot reach its database may say that it is ready.
const readyTime = time.Second

func partitionDrills() []drill {
	return []drill{
		{
			name:  "partition-redis",
			shows: "One instance is cut off from Redis: it goes on with the database alone, the other goes on with locks, and buyers who ask both get one order.",
			fears: "Half of the shop locks and half does not: what the locks were for is gone, and nobody sees it.",
			locks: []string{"redis", "redlock"}, span: 20 * time.Second, shortSpan: 15 * time.Second,
			do: partitionRedis,
		},
		{
			name:  "partition-mysql",
			shows: "One instance is cut off from MySQL and says so at once. A transaction that it had open may hold the row that everybody wants: MySQL gives its session up after 10 s, and the other instance sells.",
			fears: "The packets just vanish: connections look alive, requests hang, and a lock in the database is held by somebody who is not there any more.",
			locks: everyLock, span: 30 * time.Second, shortSpan: 25 * time.Second,
			do: partitionMySQL,
		},
		{
			name:  "partition-broker",
			shows: "One instance is cut off from RabbitMQ: its events wait in the database, or the other instance's relay sends them; each takes effect once.",
			fears: "The instance that made the event is the one that cannot send it: the event is stuck, or sent twice.",
			locks: everyLock, span: 25 * time.Second, shortSpan: 20 * time.Second,
			do: partitionBroker,
		},
	}
}

// cut takes an instance off a network while f runs, and puts it back. f gets the time of the cut.
func (r *run) cut(ctx context.Context, instance, network string, f func(at time.Time) error) (back time.Time, err error) {
	at := time.Now()
	if err := r.disconnect(ctx, instance, network); err != nil {
		return back, err
	}
	if err := f(at); err != nil {
		return back, err
	}
	back = time.Now()
	return back, r.connect(ctx, instance, network)
}

func partitionRedis(ctx context.Context, r *run) error {
	hit, other := r.instance()
	var granted map[string]float64
	back, err := r.cut(ctx, hit, "redis", func(at time.Time) (err error) {
		if err := r.until(ctx, hit+" goes without its lock", r.breaker(hit, "lock", 1)); err != nil {
			return err
		}
		r.note("%s has found out and goes on with the database alone, %s later", hit, short(time.Since(at)))
		before, err := r.placedBy(ctx, hit, other)
		if err != nil {
			return err
		}
		if granted, err = r.granted(ctx); err != nil {
			return err
		}
		if err := r.let(ctx, r.between(3*time.Second, 6*time.Second)); err != nil {
			return err
		}
		locked, err := r.granted(ctx)
		if err != nil {
			return err
		}
		after, err := r.placedBy(ctx, hit, other)
		if err != nil {
			return err
		}
		return r.assert(after[hit] > before[hit] && after[other] > before[other] && locked[other] > granted[other],
			"%.0f orders were placed by %s without a lock, %.0f by %s, which was granted %.0f",
			after[hit]-before[hit], hit, after[other]-before[other], other, locked[other]-granted[other])
	})
	if err != nil {
		return err
	}
	if err := r.locksAreBack(ctx, granted); err != nil {
		return err
	}
	r.measure("locks again after the instance was back on the network", time.Since(back), 0)
	return nil
}

func partitionMySQL(ctx context.Context, r *run) error {
	hit, other := r.instance()
	back, err := r.cut(ctx, hit, "mysql", func(time.Time) error {
		at := time.Now() // docker has done it by now; when exactly it did is not known
		if err := r.until(ctx, hit+" says that it is not ready", r.notReady(hit)); err != nil {
			return err
		}
		r.measure("the cut-off instance says that it is not ready", time.Since(at), readyTime)
		before, err := r.placedBy(ctx, other)
		if err != nil {
			return err
		}
		if err := r.placesAgain(ctx, other, before[other]); err != nil {
			return err
		}
		r.measure("an order by the other instance after the cut", time.Since(at), 0)
		begin := time.Now()
		if err := r.let(ctx, r.between(3*time.Second, 5*time.Second)); err != nil {
			return err
		}
		sold, err := r.placedSince(ctx, begin)
		if err != nil {
			return err
		}
		if err := r.assert(sold > 0, "%d orders were placed by %s since, while %s is cut off", sold, other, hit); err != nil {
			return err
		}
		return r.until(ctx, other+" is ready", r.ready(other))
	})
	if err != nil {
		return err
	}
	before, err := r.placedBy(ctx, hit)
	if err != nil {
		return err
	}
	if err := r.until(ctx, hit+" is ready", r.ready(hit)); err != nil {
		return err
	}
	r.measure("ready again after the instance was back on the network", time.Since(back), databaseBack)
	if err := r.placesAgain(ctx, hit, before[hit]); err != nil {
		return err
	}
	r.measure("an order by it after it was back on the network", time.Since(back), databaseBack)
	return nil
}

func partitionBroker(ctx context.Context, r *run) error {
	hit, other := r.instance()
	back, err := r.cut(ctx, hit, "broker", func(at time.Time) error {
		if err := r.until(ctx, hit+" has found out that the broker is away", r.breaker(hit, "broker", 1)); err != nil {
			return err
		}
		r.note("%s has found out, %s later", hit, short(time.Since(at)))
		before, err := r.number(ctx, countSent)
		if err != nil {
			return err
		}
		placed, err := r.placedBy(ctx, hit)
		if err != nil {
			return err
		}
		if err := r.let(ctx, r.between(3*time.Second, 6*time.Second)); err != nil {
			return err
		}
		after, err := r.number(ctx, countSent)
		if err != nil {
			return err
		}
		now, err := r.placedBy(ctx, hit)
		if err != nil {
			return err
		}
		return r.assert(now[hit] > placed[hit] && after > before, "%.0f orders were placed by %s, and %d events sent by %s",
			now[hit]-placed[hit], hit, after-before, other)
	})
	if err != nil {
		return err
	}
	if err := r.until(ctx, hit+" reaches the broker again", r.breaker(hit, "broker", 0)); err != nil {
		return err
	}
	r.measure("the broker reached again after the instance was back on the network", time.Since(back), 0)
	return nil
}

const countSent = "SELECT COUNT(*) FROM outbox_event WHERE status = 1"

// ordersPlaced counts the orders that an instance has placed.
const ordersPlaced = `seckill_orders_total{outcome="placed"}`

// placedBy counts the orders that each of the instances has placed since it was started.
func (r *run) placedBy(ctx context.Context, instances ...string) (map[string]float64, error) {
	n := map[string]float64{}
	var errs []error
	for _, instance := range instances {
		value, err := r.metric(ctx, instance, ordersPlaced)
		n[instance] = value
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// placesAgain waits until an instance has placed more orders than it had.
func (r *run) placesAgain(ctx context.Context, instance string, before float64) error {
	return r.until(ctx, instance+" places orders", func(ctx context.Context) (bool, error) {
		now, err := r.placedBy(ctx, instance)
		return now[instance] > before, err
	})
}

// breaker is the condition that a breaker of an instance stands as wanted.
func (r *run) breaker(instance, name string, want float64) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		value, err := r.metric(ctx, instance, fmt.Sprintf("seckill_breaker_open{breaker=%q}", name))
		if err == nil && value != want {
			err = fmt.Errorf("it is %v", value)
		}
		return err == nil, err
	}
}

// notReady is the condition that an instance says that it cannot serve. To say nothing is not enough.
func (r *run) notReady(instance string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		status, _, err := get(ctx, "http://"+r.ports[instance]+"/readyz")
		if err == nil && status != 503 {
			err = fmt.Errorf("/readyz answers %d", status)
		}
		return err == nil, err
	}
}
