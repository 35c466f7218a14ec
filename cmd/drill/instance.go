package main

import (
	"context"
	"fmt"
	"time"
)

// balancerTime is how long an instance that was killed may be noticed at the load balancer.
const balancerTime = 2 * time.Second

func instanceDrills() []drill {
	return []drill{
		{
			name:  "instance-kill",
			shows: "An instance of the shop is killed, ten times, whichever the seed says: no order is lost, and after a moment no buyer notices.",
			fears: "Orders that were in memory are gone; a lock whose holder is dead keeps its buyer out; ids are given away a second time.",
			locks: everyLock, span: 40 * time.Second, shortSpan: 25 * time.Second,
			do: instanceKill,
		},
		{
			name:  "rolling-restart",
			shows: "Both instances are restarted one after the other, twice, as for a new version: no request fails that a client repeats once.",
			fears: "Every deployment costs some orders.",
			locks: everyLock, span: 30 * time.Second, shortSpan: 25 * time.Second,
			do: rollingRestart, repeat: true,
		},
		{
			name:  "thundering-start",
			shows: "Everything is killed at once and started at once, in no order, with all buyers at the door.",
			fears: "Nothing starts because everything waits for everything, or dies of the rush when it does.",
			locks: everyLock, span: 40 * time.Second, shortSpan: 35 * time.Second,
			do: thunderingStart,
		},
	}
}

func instanceKill(ctx context.Context, r *run) error {
	const times = 10
	least, most := 500*time.Millisecond, 1500*time.Millisecond
	if r.short {
		least, most = 300*time.Millisecond, 600*time.Millisecond
	}
	var longest time.Duration
	noticed := 0
	for range times {
		hit, _ := r.instance()
		before := time.Now()
		if err := r.kill(ctx, hit); err != nil {
			return err
		}
		dead := time.Now()
		if alive, _ := r.ready(hit)(ctx); alive {
			return fmt.Errorf("it does not hold: %s was killed, and says that it is ready", hit)
		}
		if err := r.let(ctx, r.between(least, most)); err != nil {
			return err
		}
		if err := r.start(ctx, hit); err != nil {
			return err
		}
		if err := r.until(ctx, hit+" is ready", r.ready(hit)); err != nil {
			return err
		}
		if err := r.let(ctx, r.between(least, most)); err != nil {
			return err
		}
		n, last := r.load.meter.faultsIn(before, time.Now())
		noticed += n
		longest = max(longest, last.Sub(dead))
	}
	r.note("%d requests failed or were left open, of all that came during %d kills", noticed, times)
	r.measure("the last failure after a kill", longest, balancerTime)
	return nil
}

func rollingRestart(ctx context.Context, r *run) error {
	for range 2 {
		for _, instance := range []string{shop1, shop2} {
			if err := r.stop(ctx, instance); err != nil {
				return err
			}
			if err := r.start(ctx, instance); err != nil {
				return err
			}
			if err := r.until(ctx, instance+" is ready", r.ready(instance)); err != nil {
				return err
			}
			if err := r.let(ctx, r.between(2*time.Second, 3*time.Second)); err != nil {
				return err
			}
		}
	}
	return nil
}

func thunderingStart(ctx context.Context, r *run) error {
	everything := append([]string{gateway, shop1, shop2, eventsConsumer, mysqlServer, broker}, redisServers...)
	everything = append(everything, sentinels...)
	r.rand.Shuffle(len(everything), func(i, j int) { everything[i], everything[j] = everything[j], everything[i] })
	if err := r.kill(ctx, everything...); err != nil {
		return err
	}
	if err := r.nothingSoldFor(ctx, r.between(2*time.Second, 4*time.Second)); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.start(ctx, everything...); err != nil {
		return err
	}
	if err := r.soldAgain(ctx, begin); err != nil {
		return err
	}
	first, _ := r.load.meter.acceptedAfter(begin)
	r.measure("an order after everything was started", first.Sub(begin), 0)
	for _, instance := range []string{shop1, shop2} {
		if err := r.until(ctx, instance+" is ready", r.ready(instance)); err != nil {
			return err
		}
	}
	r.measure("both instances ready after everything was started", time.Since(begin), 0)
	if err := r.let(ctx, 2*time.Second); err != nil {
		return err
	}
	sold := r.load.meter.acceptedIn(first, time.Now())
	return r.assert(sold > 0, "%s", fmt.Sprintf("%d orders were placed since", sold))
}
