package main

import (
	"strings"
	"time"
)

// longCommit is SECKILL_COMMIT_TIMEOUT where orders have to wait longer than usual, since Docker needs some seconds.
const longCommit = "15s"

// redlockNeeds give locks more time than usual, so that a busy machine does not take slow servers for dead ones.
var redlockNeeds = needs{env: map[string]string{"SECKILL_COMMIT_TIMEOUT": longCommit, "SECKILL_LOCK_TIMEOUT": "500ms"}}

func redlockDrills() []drill {
	all := []drill{
		{
			name:        "redlock-minority",
			expectation: "Two of the five Redis of a Redlock are killed: the other three go on granting locks, and no order goes without one.",
			risk:        "Five servers fail more often than one, and each request waits for the slowest of them.",
			script:      redlockMinority,
		},
		{
			name:        "redlock-majority",
			expectation: "Three of the five are killed: no lock is granted, and the shop sells with its database alone until they are back.",
			risk:        "Without a majority the shop stops, or accepts two votes as enough.",
			script:      func(c *drillCase) { killLockServers(c, redlockServers, 3) },
		},
		{
			name:        "redlock-restart",
			expectation: "A lock has three votes of five, and one of the three servers restarts empty. The two others are free, but nobody else gets the lock: a server does not count until it has been up for a lease.",
			risk:        "A server that comes back empty votes a second time: two majorities, two holders (redis.io on Redlock: \"delayed restarts\").",
			script:      redlockRestart,
		},
		{
			name:        "redlock-clock",
			expectation: "A lock has three votes of five, and one of the three servers loses its vote early, as if its clock jumped ahead. Another request gets three votes: two holders of one lock, one order.",
			risk:        "Redlock depends on clocks: one that jumps allows a second majority (martin.kleppmann.com, 2016).",
			script:      redlockClock,
		},
	}
	for i := range all {
		all[i].fixedLock, all[i].needs = "redlock", redlockNeeds
		all[i].duration, all[i].shortDuration = 30*time.Second, 25*time.Second
	}
	return all
}

func redlockMinority(c *drillCase) {
	dead, left := c.pickServers(redlockServers, 2)
	before := c.granted()
	c.kill(dead...)
	for _, s := range dead {
		c.assert(!must(c.Running(c.ctx, s)), "%s does not run", s)
	}
	c.withLocks(before)
	before = c.granted()
	c.sleep(c.between(3*time.Second, 6*time.Second))
	after := c.granted()
	n := after[shop1] + after[shop2] - before[shop1] - before[shop2]
	c.assert(after[shop1] > before[shop1] && after[shop2] > before[shop2], "%.0f locks were granted by %s alone", n, strings.Join(left, ", "))
	begin := time.Now()
	c.start(dead...)
	redlockAsks(c, dead)
	c.measure("all five counted again after their start, which takes a lease at least", time.Since(begin), 0)
}

// killLockServers kills n servers of a lock, too many for it, and starts them again.
func killLockServers(c *drillCase, servers []string, n int) {
	dead, _ := c.pickServers(servers, n)
	c.kill(dead...)
	c.withoutLocks()
	without := time.Now()
	c.sleep(c.between(3*time.Second, 6*time.Second))
	c.note("%d orders were placed without a lock", c.soldSince(without))
	granted := c.granted()
	back := time.Now()
	c.start(dead...)
	c.withLocks(granted)
	c.measure("locks again after the servers were started", time.Since(back), 0)
}

func redlockRestart(c *drillCase) {
	tryWithHolders(c, func(h *lockHolders) (shown bool) {
		three, _, ok := threeVotes(h)
		if !ok {
			return false
		}
		empty := three[2]
		c.kill(empty)
		c.start(empty)
		forgets(h, empty)
		shown = h.stillHeld("of the five servers two know these locks, one has forgotten them, two never knew them; each of the %d requests was refused")
		h.finish()
		return shown
	})
}

func redlockClock(c *drillCase) {
	tryWithHolders(c, func(h *lockHolders) (shown bool) {
		three, two, ok := threeVotes(h)
		if !ok {
			return false
		}
		fast := three[2]
		before := h.readOwners(three[0], redlockOwner)
		expireKeys(c, fast)
		forgets(h, fast)
		h.ask(shop2, "second")
		if voted(h, 2*holders, append(two, fast)) {
			after := h.readOwners(fast, redlockOwner)
			if shown = h.atWork(2 * holders); shown {
				h.twoHolders(before, after, three[0], fast)
			}
		}
		h.finish()
		return shown
	})
}

// threeVotes gives the holders their locks while two of the servers are cut off, and connects these again. It returns the
// three servers that have the locks and the two that do not. If ok is false, the holders did not get all locks in time.
func threeVotes(h *lockHolders) (three, two []string, ok bool) {
	c := h.c
	two, three = c.pickServers(redlockServers, 2)
	granted := c.granted()
	for _, s := range two {
		c.disconnect(s, "redis")
		// Otherwise requests that are waiting could arrive later, by a connection that outlives the cut.
		c.exec(s, "redis-cli", "client", "kill", "type", "normal")
	}
	c.withLocks(granted) // they may have been away for a moment
	h.block()
	h.ask(shop1, "first")
	ok = voted(h, holders, three)
	for _, s := range two {
		c.reconnect(s, "redis")
	}
	if !ok {
		h.finish()
		return nil, nil, false
	}
	c.note("%d buyers hold their locks by the votes of %s alone; their commits wait", holders, strings.Join(three, ", "))
	redlockAsks(c, two)
	return three, two, true
}

// voted waits until each server has every holder's lock. It returns false if fewer than n requests are at work before.
func voted(h *lockHolders, n int64, servers []string) (voted bool) {
	h.c.until("the holders have their locks, or their answers", func() error {
		if !h.atWork(n) {
			return nil
		}
		for _, s := range servers {
			if known := len(h.readOwners(s, redlockOwner)); known < holders {
				return expect(false, "%s: %d of %d", s, known, holders)
			}
		}
		voted = true
		return nil
	})
	return voted
}

// forgets waits until a server does not know the holders' locks.
func forgets(h *lockHolders, server string) {
	h.c.until(server+" has forgotten the locks", func() error {
		known := len(h.readOwners(server, redlockOwner))
		return expect(known == 0, "it knows %d", known)
	})
	h.c.note("found: %s does not know these locks any more", server)
}

// redlockAsks waits until the shop asks each of the servers for locks.
func redlockAsks(c *drillCase, servers []string) {
	for _, s := range servers {
		c.until("the shop asks "+s+" for locks", func() error {
			keys := c.exec(s, "redis-cli", "dbsize")
			return expect(keys != "" && keys != "0", "it has no keys")
		})
	}
}

// expireKeys does what a clock that jumps ahead does to a server: its keys with a time to live expire, and Redlock uses
// clocks for nothing else. (Containers share the machine's clock, and libfaketime does not work with Redis's allocator.)
func expireKeys(c *drillCase, server string) {
	n := c.exec(server, "redis-cli", "--raw", "eval",
		"local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', k) >= 0 then redis.call('PEXPIRE', k, 0) n = n + 1 end end return n", "0")
	c.event(fault, "%s behaves as if its clock jumped ahead by more than a lease: its %s keys with a time to live expire", server, n)
}
