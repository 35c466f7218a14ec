package main

import (
	"net/http"
	"time"

	"seckill/cmd/internal/cli"
)

// notReadyLimit is how long an instance that cannot reach its database may say that it is ready.
const notReadyLimit = time.Second

func partitionDrills() []drill {
	return []drill{
		{
			name:        "partition-redis",
			expectation: "One instance is cut off from Redis: it goes on with the database alone, the other one goes on with locks, and buyers who ask both get one order.",
			risk:        "Half of the shop locks and the other half does not: the locks are worth nothing, and nobody notices.",
			locks:       []string{"redis", "redlock"}, duration: 20 * time.Second, shortDuration: 15 * time.Second,
			script: partitionRedis,
		},
		{
			name:        "partition-mysql",
			expectation: "One instance is cut off from MySQL and says so at once. Its open transaction may hold the row that everybody wants: MySQL ends the session after 10 s, and the other instance sells.",
			risk:        "Packets are lost without a trace: connections look alive, requests hang, and a vanished client holds a lock in the database.",
			locks:       allLocks, duration: 30 * time.Second, shortDuration: 25 * time.Second,
			script: partitionMySQL,
		},
		{
			name:        "partition-broker",
			expectation: "One instance is cut off from RabbitMQ: its events wait in the database, or the other instance's relay sends them; each of them takes effect once.",
			risk:        "The instance that made the event cannot send it: the event is stuck, or sent twice.",
			locks:       allLocks, duration: 25 * time.Second, shortDuration: 20 * time.Second,
			script: partitionBroker,
		},
	}
}

func partitionRedis(c *drillCase) {
	target, other := c.pickInstance()
	at := time.Now()
	c.disconnect(target, "redis")
	c.until(target+" goes without its lock", func() error { return c.breaker(target, "lock", 1) })
	c.note("%s has noticed and goes on with the database alone, %s later", target, cli.Short(time.Since(at)))
	before, granted := c.placedBy(target, other), c.granted()
	c.sleep(c.between(3*time.Second, 6*time.Second))
	locked, after := c.granted(), c.placedBy(target, other)
	c.assert(after[target] > before[target] && after[other] > before[other] && locked[other] > granted[other],
		"%.0f orders were placed by %s without a lock, %.0f by %s, which was granted %.0f locks",
		after[target]-before[target], target, after[other]-before[other], other, locked[other]-granted[other])
	back := time.Now()
	c.reconnect(target, "redis")
	c.withLocks(granted)
	c.measure("locks again after the instance was back on the network", time.Since(back), 0)
}

func partitionMySQL(c *drillCase) {
	target, other := c.pickInstance()
	c.disconnect(target, "mysql")
	at := time.Now() // Docker has finished; when exactly the link was cut is not known
	c.until(target+" says that it is not ready", func() error { return c.readiness(target, http.StatusServiceUnavailable) })
	c.measure("the cut-off instance says that it is not ready", time.Since(at), notReadyLimit)
	c.places(other, c.placedBy(other)[other])
	c.measure("an order by the other instance after the cut", time.Since(at), 0)
	begin := time.Now()
	c.sleep(c.between(3*time.Second, 5*time.Second))
	sold := c.soldSince(begin)
	c.assert(sold > 0, "%d orders were placed by %s since, while %s is cut off", sold, other, target)
	c.ready(other)
	back := time.Now()
	c.reconnect(target, "mysql")
	before := c.placedBy(target)[target]
	c.ready(target)
	c.measure("ready again after the instance was back on the network", time.Since(back), databaseLimit)
	c.places(target, before)
	c.measure("an order by it after it was back on the network", time.Since(back), databaseLimit)
}

func partitionBroker(c *drillCase) {
	target, other := c.pickInstance()
	at := time.Now()
	c.disconnect(target, "broker")
	c.until(target+" notices that the broker is away", func() error { return c.breaker(target, "broker", 1) })
	c.note("%s has noticed, %s later", target, cli.Short(time.Since(at)))
	sentBefore, placedBefore := countSent(c), c.placedBy(target)[target]
	c.sleep(c.between(3*time.Second, 6*time.Second))
	sent, placed := countSent(c)-sentBefore, c.placedBy(target)[target]-placedBefore
	c.assert(placed > 0 && sent > 0, "%.0f orders were placed by %s, and %d events sent by %s", placed, target, sent, other)
	back := time.Now()
	c.reconnect(target, "broker")
	c.until(target+" reaches the broker again", func() error { return c.breaker(target, "broker", 0) })
	c.measure("the broker reached again after the instance was back on the network", time.Since(back), 0)
}

func countSent(c *drillCase) int64 {
	return must(c.number(c.ctx, "SELECT COUNT(*) FROM outbox_event WHERE status = 1"))
}
