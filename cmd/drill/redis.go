package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/cmd/internal/cli"
)

// failoverLimit is how long locks may be away after their master has died.
const failoverLimit = 5 * time.Second

// sentinelMaster is the name that the Sentinels give to the master.
const sentinelMaster = "seckill"

func redisDrills() []drill {
	return []drill{
		{
			name:        "redis-failover",
			expectation: "The master of Redis dies with locks that no replica has received, and a replica becomes master: two holders of one lock, one order.",
			risk:        "Replication is asynchronous: a failover forgets a lock that was granted, and it is granted again (martin.kleppmann.com, 2016).",
			locks:       []string{"redis"}, duration: 20 * time.Second, shortDuration: 12 * time.Second,
			script: redisFailover, control: true,
		},
		{
			name:        "redis-down",
			expectation: "All of Redis is gone: the shop sells with its database alone, and takes locks again when Redis is back.",
			risk:        "A shop that keeps stock or locks in Redis sells nothing without it, or sells units that do not exist.",
			locks:       []string{"redis"}, duration: 20 * time.Second, shortDuration: 12 * time.Second,
			script: redisDown,
		},
	}
}

// redisFailover loses the locks of buyers whose orders wait, and shows that they are granted a second time.
func redisFailover(c *drillCase) {
	tryWithHolders(c, func(h *lockHolders) bool {
		master, replicas := redisRoles(c)
		before, held := holdUnreplicated(h, master, replicas)
		loseMaster(c, master, replicas)
		h.ask(shop2, "second")
		after, promoted, heldTwice := h.redisOwners(2 * holders)
		shown := held && heldTwice
		if shown {
			h.twoHolders(before, after, master, promoted)
		}
		h.finish()
		c.start(master)
		if !shown && !c.guardOff {
			c.until(master+" is a replica", func() error {
				return expect(strings.Contains(c.exec(master, "redis-cli", "info", "replication"), "master_link_status:up"), "it is not")
			})
		}
		return shown || c.guardOff // without the guard only the damage counts, which the verdict finds
	})
}

// holdUnreplicated gives the holders locks that no replica receives. The replicas are paused and their links are cut, so
// that nothing is waiting for them. They keep their addresses, by which Sentinel knows them.
func holdUnreplicated(h *lockHolders, master string, replicas []string) (all owners, shown bool) {
	c := h.c
	h.block()
	c.pause(replicas...)
	cut := c.exec(master, "redis-cli", "client", "kill", "type", "replica")
	c.assert(cut == strconv.Itoa(len(replicas)), "the links of %s to its replicas are cut: %s", master, cut)
	h.ask(shop1, "first")
	c.note("%d buyers ask at %s; their commits wait, so that they keep their locks", holders, shop1)
	all, _, shown = h.redisOwners(holders)
	return all, shown
}

// loseMaster kills the master, and waits until the shop gets its locks from another server, which does not know the old
// locks.
func loseMaster(c *drillCase, master string, replicas []string) {
	killed := time.Now()
	c.kill(master)
	granted := c.granted()
	c.unpause(replicas...)
	var promoted string
	c.until("a replica becomes master", func() error {
		for _, s := range replicas {
			if strings.HasPrefix(c.exec(s, "redis-cli", "role"), "master") {
				promoted = s
				return nil
			}
		}
		return errors.New("the others are replicas")
	})
	c.note("%s is master now, %s after %s was killed", promoted, cli.Short(time.Since(killed)), master)
	c.withLocks(granted)
	c.measure("locks again after the master was killed", time.Since(killed), failoverLimit)
}

func redisDown(c *drillCase) {
	down := time.Now()
	c.kill(redisServers...)
	c.withoutLocks()
	away := c.between(6*time.Second, 9*time.Second)
	if c.short {
		away = 4 * time.Second
	}
	c.sleep(away)
	c.note("%d orders were placed without Redis", c.soldSince(down))
	granted := c.granted()
	back := time.Now()
	c.start(redisServers...)
	c.withLocks(granted)
	c.measure("locks again after Redis was started", time.Since(back), 0)
}

// redisRoles asks a Sentinel which server is the master.
func redisRoles(c *drillCase) (master string, replicas []string) {
	var errs []error
	for _, s := range sentinels {
		text, err := c.Exec(c.ctx, s, "redis-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", sentinelMaster)
		if err == nil {
			master, _, _ = strings.Cut(text, "\n")
			master = strings.TrimSpace(master)
			break
		}
		errs = append(errs, err)
	}
	for _, s := range redisServers {
		if s != master {
			replicas = append(replicas, s)
		}
	}
	if len(replicas) != len(redisServers)-1 {
		check(errors.Join(fmt.Errorf("the Sentinels name a master %q that is none of %s", master, strings.Join(redisServers, ", ")), errors.Join(errs...)))
	}
	return master, replicas
}
