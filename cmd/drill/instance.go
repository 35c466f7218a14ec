package main

import (
	"net/http"
	"slices"
	"time"
)

// balancerLimit is how long a killed instance may cause failures at the load balancer.
const balancerLimit = 2 * time.Second

func instanceDrills() []drill {
	return []drill{
		{
			name:        "instance-kill",
			expectation: "An instance of the shop is killed, ten times, chosen by the seed: no order is lost, and after a moment buyers notice nothing.",
			risk:        "Orders in memory are gone; the lock of a dead holder keeps its buyer out; ids are used a second time.",
			locks:       allLocks, duration: 40 * time.Second, shortDuration: 25 * time.Second,
			script: instanceKill,
		},
		{
			name:        "rolling-restart",
			expectation: "Both instances are restarted one after the other, twice, as for a new version: no request fails that its client repeats once.",
			risk:        "Every deployment costs some orders.",
			locks:       allLocks, duration: 30 * time.Second, shortDuration: 25 * time.Second,
			script: rollingRestart, repeat: true,
		},
		{
			name:        "thundering-start",
			expectation: "All services are killed and then restarted at the same time, in random order, under full load. The shop recovers automatically.",
			risk:        "Nothing starts because everything waits for everything, or the load kills what has started.",
			locks:       allLocks, duration: 40 * time.Second, shortDuration: 35 * time.Second,
			script: thunderingStart,
		},
	}
}

func instanceKill(c *drillCase) {
	const times = 10
	least, most := 500*time.Millisecond, 1500*time.Millisecond
	if c.short {
		least, most = 300*time.Millisecond, 600*time.Millisecond
	}
	var longest time.Duration
	noticed := 0
	for range times {
		target, _ := c.pickInstance()
		before := time.Now()
		c.kill(target)
		dead := time.Now()
		if c.readiness(target, http.StatusOK) == nil {
			c.assert(false, "%s was killed and is not ready", target)
		}
		c.sleep(c.between(least, most))
		c.start(target)
		c.ready(target)
		c.sleep(c.between(least, most))
		n, last := c.meter.failuresIn(before, time.Now())
		noticed += n
		longest = max(longest, last.Sub(dead))
	}
	c.note("%d requests failed or have an unknown outcome, during %d kills", noticed, times)
	c.measure("the last failure after a kill", longest, balancerLimit)
}

func rollingRestart(c *drillCase) {
	for range 2 {
		for _, instance := range instances {
			c.stop(instance)
			c.start(instance)
			c.ready(instance)
			c.sleep(c.between(2*time.Second, 3*time.Second))
		}
	}
}

func thunderingStart(c *drillCase) {
	all := slices.Concat([]string{gateway, shop1, shop2, eventsConsumer, mysqlServer, broker}, redisServers, sentinels)
	all, _ = c.pickServers(all, len(all)) // in random order
	c.kill(all...)
	c.sellsNothing(c.between(2*time.Second, 4*time.Second))
	begin := time.Now()
	c.start(all...)
	first := c.sells(begin)
	c.measure("an order after everything was started", first.Sub(begin), 0)
	c.ready(instances...)
	c.measure("both instances ready after everything was started", time.Since(begin), 0)
	c.sleep(2 * time.Second)
	sold := c.meter.acceptedIn(first, time.Now())
	c.assert(sold > 0, "%d orders were placed since", sold)
}
