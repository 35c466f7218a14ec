package main

import (
	"context"
	"time"

	"seckill/cmd/internal/cli"
)

// databaseLimit is how long the first order may take after MySQL answers again.
const databaseLimit = 10 * time.Second

func mysqlDrills() []drill {
	return []drill{
		{
			name:        "mysql-kill",
			expectation: "MySQL is killed while it commits, and recovers from its logs: acknowledged orders exist, and repeating a request resolves an unknown outcome.",
			risk:        "An answer is lost: the order exists and its buyer was told that it failed, or the other way round.",
			locks:       allLocks, duration: 20 * time.Second, shortDuration: 15 * time.Second,
			script: mysqlKill,
		},
		{
			name:        "mysql-freeze",
			expectation: "MySQL stops in the middle of everything and comes back 20 s later, with every connection still open.",
			risk:        "No error and no answer: requests pile up until the shop dies of them, and what timed out was committed all the same.",
			locks:       allLocks, duration: 40 * time.Second, shortDuration: 20 * time.Second,
			script: mysqlFreeze,
		},
		{
			name:        "mysql-full",
			expectation: "Reads go on and every write is refused, as with a full disk or a server that became a replica.",
			risk:        "A shop that looks healthy and sells nothing, or accepts orders that it cannot store.",
			locks:       allLocks, duration: 20 * time.Second, shortDuration: 15 * time.Second,
			script: mysqlFull,
		},
	}
}

func mysqlKill(c *drillCase) {
	c.kill(mysqlServer)
	c.sellsNothing(c.between(2*time.Second, 4*time.Second))
	c.start(mysqlServer)
	databaseRecovers(c)
}

func mysqlFreeze(c *drillCase) {
	c.pause(mysqlServer)
	frozen := 20 * time.Second
	if c.short {
		frozen = 6 * time.Second
	}
	c.sellsNothing(frozen)
	c.unpause(mysqlServer)
	databaseRecovers(c)
}

func mysqlFull(c *drillCase) {
	const what = "mysql accepts writes"
	c.repairs[what] = func() { acceptWrites(c) }
	must(c.root.ExecContext(c.ctx, "SET GLOBAL super_read_only = ON"))
	c.event(fault, "mysql refuses every write")
	c.sellsNothing(c.between(4*time.Second, 6*time.Second))
	acceptWrites(c)
	delete(c.repairs, what)
	databaseRecovers(c)
}

func acceptWrites(c *drillCase) {
	must(c.root.ExecContext(c.ctx, "SET GLOBAL super_read_only = OFF"))
	must(c.root.ExecContext(c.ctx, "SET GLOBAL read_only = OFF")) // super_read_only had set it too
	c.event(healed, "mysql accepts writes again")
}

// databaseRecovers waits until MySQL answers, and measures the time from there to the first order.
func databaseRecovers(c *drillCase) {
	begin := time.Now()
	c.until("MySQL answers", func() error {
		ctx, cancel := context.WithTimeout(c.ctx, time.Second)
		defer cancel()
		return c.root.PingContext(ctx)
	})
	back := time.Now()
	c.note("MySQL answers, %s later", cli.Short(back.Sub(begin)))
	c.measure("an order after MySQL was back", c.sells(back).Sub(back), databaseLimit)
}
