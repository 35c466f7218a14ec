package main

import "time"

// Leases of the shop: of its locks (--lock-lease) and of its worker ids.
const (
	lockLease   = 10 * time.Second
	workerLease = 15 * time.Second
)

func holderDrills() []drill {
	return []drill{{
		name:        "holder-paused",
		expectation: "An instance is paused while it places orders, for longer than its locks last; others get the locks; then it runs on without knowing.",
		risk:        "A garbage collection, a page fault, a migrated machine: the holder wakes up and writes, although the lock belongs to another one now.",
		locks:       allLocks, duration: 45 * time.Second, shortDuration: 30 * time.Second,
		script: holderPaused,
	}}
}

func holderPaused(c *drillCase) {
	target, other := c.pickInstance()
	h := newLockHolders(c)
	defer h.close()
	before := pauseHolder(h, target)
	asleep := lockLease + time.Second
	if !c.short {
		asleep = workerLease + c.between(2*time.Second, 5*time.Second)
	}
	c.sleep(asleep)
	h.block() // waits until the server has ended the session of the paused instance
	grantAgain(h, other, before)
	awake := time.Now()
	c.unpause(target)
	c.note("%s goes on with what it had begun, while %s works on the same", target, other)
	h.finish()
	c.ready(target)
	c.measure("ready again after the instance ran on", time.Since(awake), 0)
}

// pauseHolder pauses an instance while it holds the holders' locks, and then frees the row that its transaction is waiting
// for. It returns the owners of the locks, where they can be read.
func pauseHolder(h *lockHolders, target string) owners {
	h.block()
	h.ask(target, "first")
	before, atWork := h.owned(holders)
	h.c.assert(atWork, "%s is serving %d buyers", target, holders)
	h.c.pause(target)
	h.unblock()
	return before
}

// grantAgain sends the holders' next requests to another instance, and asserts that it is granted the locks of the paused
// one. On a busy machine the requests may give up before; then it sends them again.
func grantAgain(h *lockHolders, other string, before owners) {
	var after owners
	atWork := false
	for _, round := range []string{"second", "third", "fourth"} {
		h.ask(other, round)
		if after, atWork = h.owned(2 * holders); atWork {
			break
		}
	}
	same := 0
	for key, owner := range before {
		if after[key] == owner {
			same++
		}
	}
	h.c.assert(atWork, "%d buyers are being served a second time, while the first requests are still at work", holders)
	if h.c.lock == "redis" {
		h.c.assert(same == 0, "each of the %d locks was granted to another one, and the first holder does not know", holders)
	}
}
