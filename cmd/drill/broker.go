package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func brokerDrills() []drill {
	return []drill{
		{
			name:  "broker-down",
			shows: "RabbitMQ is stopped: orders go on, their events wait in the database, and all of them arrive when it is back.",
			fears: "Order and message are two systems: one is written, the other is lost, and nobody ever knows.",
			locks: everyLock, span: 25 * time.Second, shortSpan: 20 * time.Second,
			do: brokerDown,
		},
		{
			name:  "broker-kill",
			shows: "RabbitMQ is killed with messages in hand, twice: what it had not confirmed is sent again, what it delivers twice takes effect once.",
			fears: "A message that was sent was not stored; a message that was stored is sent again.",
			locks: everyLock, span: 35 * time.Second, shortSpan: 30 * time.Second,
			do: brokerKill,
		},
		{
			name:  "consumer-kill",
			shows: "A consumer dies after its effects were committed and before the broker heard of it: the same events come again.",
			fears: "At least once means sometimes twice: points are booked twice.",
			locks: everyLock, span: 30 * time.Second, shortSpan: 30 * time.Second,
			do: consumerKill,
		},
	}
}

func brokerDown(ctx context.Context, r *run) error {
	down := time.Now()
	// It may take half a minute to say goodbye; that is not what this is about.
	if err := r.containerVerb(ctx, "stop --time=8", "stopped", r.start, []string{broker}); err != nil {
		return err
	}
	if err := r.let(ctx, r.between(4*time.Second, 7*time.Second)); err != nil {
		return err
	}
	if err := r.eventsWait(ctx, down); err != nil {
		return err
	}
	if err := r.start(ctx, broker); err != nil {
		return err
	}
	return r.eventsAgain(ctx)
}

func brokerKill(ctx context.Context, r *run) error {
	times := 2
	if r.short { // its start takes longer than all else
		times = 1
	}
	for range times {
		down := time.Now()
		if err := r.kill(ctx, broker); err != nil {
			return err
		}
		if err := r.let(ctx, r.between(2*time.Second, 4*time.Second)); err != nil {
			return err
		}
		if err := r.eventsWait(ctx, down); err != nil {
			return err
		}
		if err := r.start(ctx, broker); err != nil {
			return err
		}
		if err := r.eventsAgain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// eventsWait asserts that the fault took effect, and that orders do not care.
func (r *run) eventsWait(ctx context.Context, down time.Time) error {
	unsent, err := r.db.Unsent(ctx)
	if err != nil {
		return err
	}
	sold, err := r.placedSince(ctx, down)
	if err != nil {
		return err
	}
	return r.assert(sold > 0 && unsent > 0, "%d orders were placed meanwhile, %d events wait in the outbox", sold, unsent)
}

// eventsAgain waits until what had to wait for the broker has been sent, and measures that from the broker's first sign
// of life.
func (r *run) eventsAgain(ctx context.Context) error {
	var now string
	if err := r.root.QueryRowContext(ctx, "SELECT UTC_TIMESTAMP(3)").Scan(&now); err != nil {
		return err
	}
	if err := r.until(ctx, "RabbitMQ answers", func(ctx context.Context) (bool, error) {
		_, err := r.exec(ctx, broker, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/5672")
		return err == nil, err
	}); err != nil {
		return err
	}
	back := time.Now()
	r.note("RabbitMQ answers")
	if err := r.until(ctx, "the events of the outage are sent", func(ctx context.Context) (bool, error) {
		n, err := r.number(ctx, "SELECT COUNT(*) FROM outbox_event WHERE status <> 1 AND created_at < ?", now)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d wait", n)
		}
		return err == nil, err
	}); err != nil {
		return err
	}
	r.measure("the events of the outage sent after RabbitMQ was back", time.Since(back), 0)
	return nil
}

// consumerKill holds the consumer up in the middle of its transactions, cuts its way back to the broker, lets the
// transactions go through, and kills it: effects without acknowledgements.
func consumerKill(ctx context.Context, r *run) error {
	unlock, err := r.lockEffects(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.until(ctx, "the consumer is in the middle of its transactions", func(ctx context.Context) (bool, error) {
		n, err := r.number(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock%'")
		return n > 0, err
	}); err != nil {
		return err
	}
	if err := r.let(ctx, r.between(500*time.Millisecond, 1500*time.Millisecond)); err != nil { // for more of them
		return err
	}
	if err := r.disconnect(ctx, eventsConsumer, "broker"); err != nil {
		return err
	}
	before, err := r.number(ctx, countEffects)
	if err != nil {
		return err
	}
	unlock()
	var after int64
	if err := r.until(ctx, "effects happen that nobody can acknowledge", func(ctx context.Context) (bool, error) {
		after, err = r.number(ctx, countEffects)
		return after > before, err
	}); err != nil {
		return err
	}
	if err := r.kill(ctx, eventsConsumer); err != nil {
		return err
	}
	if after, err = r.number(ctx, countEffects); err != nil {
		return err
	}
	r.note("found: %d effects were committed and not acknowledged", after-before)
	if err := r.connect(ctx, eventsConsumer, "broker"); err != nil {
		return err
	}
	back := time.Now()
	if err := r.start(ctx, eventsConsumer); err != nil {
		return err
	}
	var again float64
	if err := r.until(ctx, "events come a second time", func(ctx context.Context) (bool, error) {
		again, err = r.metric(ctx, eventsConsumer, `seckill_consumed_total{consumer="points",result="duplicate"}`)
		if err == nil && again == 0 {
			err = errors.New("none has")
		}
		return err == nil, err
	}); err != nil {
		return err
	}
	r.note("found: events came a second time, such as %.0f paid orders, and had been consumed before", again)
	r.measure("events again after the consumer was started", time.Since(back), 0)
	return nil
}

const countEffects = "SELECT COUNT(*) FROM points_entry"

// lockEffects keeps everybody from writing effects until unlock is called.
func (r *run) lockEffects(ctx context.Context) (unlock func(), err error) {
	conn, err := r.root.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "LOCK TABLES points_entry READ"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	locked := true
	return func() {
		if locked {
			locked = false
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "UNLOCK TABLES") // if it fails, the session goes, and its locks with it
			_ = conn.Close()
		}
	}, nil
}
