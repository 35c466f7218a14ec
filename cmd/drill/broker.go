package main

import (
	"context"
	"errors"
	"time"
)

func brokerDrills() []drill {
	return []drill{
		{
			name:        "broker-down",
			expectation: "RabbitMQ is stopped: orders go on, their events wait in the database, and all of them arrive when it is back.",
			risk:        "Order and message are in two systems: one is written, the other is lost, and nobody ever knows.",
			locks:       allLocks, duration: 25 * time.Second, shortDuration: 20 * time.Second,
			script: brokerDown,
		},
		{
			name:        "broker-kill",
			expectation: "RabbitMQ is killed twice while it holds messages: what it had not confirmed is sent again, and what it delivers twice takes effect once.",
			risk:        "A message that was sent was not stored; a message that was stored is sent again.",
			locks:       allLocks, duration: 35 * time.Second, shortDuration: 30 * time.Second,
			script: brokerKill,
		},
		{
			name:        "consumer-kill",
			expectation: "A consumer dies after its effects were committed and before the broker got the acknowledgements: the same events are delivered again.",
			risk:        "At least once means sometimes twice: points are booked twice.",
			locks:       allLocks, duration: 30 * time.Second, shortDuration: 30 * time.Second,
			script: consumerKill,
		},
	}
}

func brokerDown(c *drillCase) {
	down := time.Now()
	c.stopWithin(8, broker) // its own shutdown may take half a minute
	c.sleep(c.between(4*time.Second, 7*time.Second))
	eventsWait(c, down)
	c.start(broker)
	eventsSent(c)
}

func brokerKill(c *drillCase) {
	times := 2
	if c.short { // the start takes longer than everything else
		times = 1
	}
	for range times {
		down := time.Now()
		c.kill(broker)
		c.sleep(c.between(2*time.Second, 4*time.Second))
		eventsWait(c, down)
		c.start(broker)
		eventsSent(c)
	}
}

// eventsWait asserts that orders were placed without the broker, and that their events wait.
func eventsWait(c *drillCase, down time.Time) {
	unsent := must(c.db.Unsent(c.ctx))
	sold := c.soldSince(down)
	c.assert(sold > 0 && unsent > 0, "%d orders were placed meanwhile, %d events wait in the outbox", sold, unsent)
}

// eventsSent waits until the events of the outage are sent, and measures that from the moment at which the broker answers.
func eventsSent(c *drillCase) {
	var now string
	check(c.root.QueryRowContext(c.ctx, "SELECT UTC_TIMESTAMP(3)").Scan(&now))
	c.until("RabbitMQ answers", func() error {
		c.exec(broker, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/5672")
		return nil
	})
	back := time.Now()
	c.note("RabbitMQ answers")
	c.until("the events of the outage are sent", func() error {
		n := must(c.number(c.ctx, "SELECT COUNT(*) FROM outbox_event WHERE status <> 1 AND created_at < ?", now))
		return expect(n == 0, "%d wait", n)
	})
	c.measure("the events of the outage sent after RabbitMQ was back", time.Since(back), 0)
}

// consumerKill lets the consumer commit effects that it cannot acknowledge: it blocks its transactions, cuts it off from
// the broker, lets the transactions commit, and kills it.
func consumerKill(c *drillCase) {
	unlock := lockEffects(c)
	defer unlock()
	c.until("the consumer is in the middle of its transactions", func() error {
		n := must(c.number(c.ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock%'"))
		return expect(n > 0, "no transaction waits")
	})
	c.sleep(c.between(500*time.Millisecond, 1500*time.Millisecond)) // for more of them
	c.disconnect(eventsConsumer, "broker")
	before := countEffects(c)
	unlock()
	c.until("effects happen that cannot be acknowledged", func() error {
		return expect(countEffects(c) > before, "none has")
	})
	c.kill(eventsConsumer)
	c.note("found: %d effects were committed and not acknowledged", countEffects(c)-before)
	c.reconnect(eventsConsumer, "broker")
	back := time.Now()
	c.start(eventsConsumer)
	const duplicates = `seckill_consumed_total{consumer="points",result="duplicate"}`
	var again float64
	c.until("events are delivered a second time", func() error {
		again = c.counts(duplicates, eventsConsumer)[eventsConsumer]
		return expect(again > 0, "none was")
	})
	c.note("found: events were delivered a second time (%.0f paid orders so far), and had been consumed before", again)
	c.measure("events again after the consumer was started", time.Since(back), 0)
}

func countEffects(c *drillCase) int64 {
	return must(c.number(c.ctx, "SELECT COUNT(*) FROM points_entry"))
}

// lockEffects blocks all writes of effects until unlock is called.
func lockEffects(c *drillCase) (unlock func()) {
	conn := must(c.root.Conn(c.ctx))
	if _, err := conn.ExecContext(c.ctx, "LOCK TABLES points_entry READ"); err != nil {
		check(errors.Join(err, conn.Close()))
	}
	locked := true
	return func() {
		if locked {
			locked = false
			_, _ = conn.ExecContext(context.WithoutCancel(c.ctx), "UNLOCK TABLES") // if it fails, the session ends, and its locks too
			_ = conn.Close()
		}
	}
}
