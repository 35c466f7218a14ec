package main

import (
	"errors"
	"strings"
	"time"

	"seckill/cmd/internal/cli"
)

// lockSession is the session time-out of the lock in these drills. The servers round it to seconds.
const lockSession = 4 * time.Second

func zookeeperDrills() []drill {
	all := []drill{
		{
			name:        "zookeeper-leader",
			expectation: "The leader of ZooKeeper is killed while buyers hold locks: the others elect a new one, and it knows every lock.",
			risk:        "What the leader had promised is gone with it, or all sessions and their locks are lost at the same time.",
			script:      zookeeperLeader,
		},
		{
			name:        "zookeeper-session",
			expectation: "An instance is cut off from ZooKeeper while it places orders: its session ends and others get its locks. Two requests are at work, and there is one order.",
			risk:        "The session expires in the middle of the work, and its owner is the last to know.",
			script:      zookeeperSession,
		},
		{
			name:        "zookeeper-majority",
			expectation: "Two of three are killed: no lock is granted, and the shop sells with its database alone until they are back.",
			risk:        "A consistent lock is not always available: the shop stops with it.",
			script:      func(c *drillCase) { killLockServers(c, zookeeperServers, 2) },
		},
	}
	for i := range all {
		all[i].fixedLock, all[i].duration, all[i].shortDuration = "zookeeper", 25*time.Second, 20*time.Second
		all[i].needs = needs{env: map[string]string{
			"SECKILL_COMMIT_TIMEOUT": longCommit, "SECKILL_LOCK_SESSION": lockSession.String(), "SECKILL_LOCK_TIMEOUT": "500ms",
		}}
	}
	return all
}

func zookeeperLeader(c *drillCase) {
	tryWithHolders(c, func(h *lockHolders) (shown bool) {
		old := currentLeader(c)
		h.block()
		h.ask(shop1, "first")
		c.sleep(grantTime)
		loseLeader(c, old)
		shown = h.stillHeld("the locks outlived the leader: each of the %d second requests was refused")
		h.finish()
		c.start(old)
		c.until(old+" follows", func() error {
			mode := zookeeperMode(c, old)
			return expect(mode == "follower", "its mode is %q", mode)
		})
		return shown
	})
}

// loseLeader kills the leader and waits until both instances get their locks under a new one.
func loseLeader(c *drillCase, old string) {
	killed := time.Now()
	c.kill(old)
	granted := c.granted()
	var leader string
	c.until("another server leads", func() error {
		leader = currentLeader(c)
		return expect(leader != old, "it is still %s", old)
	})
	c.note("found: %s leads, %s after %s was killed", leader, cli.Short(time.Since(killed)), old)
	c.withLocks(granted)
	c.measure("locks again after the leader was killed", time.Since(killed), 0)
}

func zookeeperSession(c *drillCase) {
	target, other := c.pickInstance()
	tryWithHolders(c, func(h *lockHolders) (shown bool) {
		h.block()
		h.ask(target, "first")
		c.sleep(grantTime)
		c.disconnect(target, "zookeeper")
		c.sleep(lockSession + 1500*time.Millisecond) // the servers look for ended sessions once a second
		shown = grantedToOther(h, target, other)
		h.finish()
		granted := c.granted()
		back := time.Now()
		c.reconnect(target, "zookeeper")
		c.withLocks(granted)
		c.measure("locks again after the instance was back on the network", time.Since(back), 0)
		return shown
	})
}

// grantedToOther sends the second requests to the other instance, and reports whether all requests are at work twice. The
// other instance uses its lock, so it was granted the locks that the first one has lost.
func grantedToOther(h *lockHolders, target, other string) bool {
	c := h.c
	c.assert(c.breaker(target, "lock", 1) == nil, "%s has noticed that it gets no locks any more", target)
	h.ask(other, "second")
	c.sleep(grantTime)
	if c.breaker(other, "lock", 0) != nil || !h.atWork(2*holders) {
		return false
	}
	c.note("found: %s was granted each of the %d locks, while %s is still at work", other, holders, target)
	return true
}

// currentLeader returns the server that leads.
func currentLeader(c *drillCase) string {
	var errs []error
	for _, s := range zookeeperServers {
		var mode string
		err := attempt(func() { mode = zookeeperMode(c, s) })
		if mode == "leader" {
			return s
		}
		errs = append(errs, err)
	}
	check(errors.Join(append(errs, errors.New("no server of ZooKeeper leads"))...))
	return ""
}

// zookeeperMode returns the mode of a server, such as leader or follower; "" while it has none.
func zookeeperMode(c *drillCase, server string) string {
	text := c.exec(server, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/2181 && echo srvr >&3 && cat <&3")
	for line := range strings.Lines(text) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode)
		}
	}
	return ""
}
