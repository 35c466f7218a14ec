package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"seckill/cmd/internal/app"
)

type locksCmd struct {
	RedisAddrs     []string      `name:"redis-addrs" placeholder:"HOST:6379,…" help:"Redis for the Redis lock. Without it, one in this process."`
	RedlockAddrs   []string      `name:"redlock-addrs" placeholder:"HOST:6379,…" help:"Independent Redis servers for Redlock. Without them, five in this process."`
	ZooKeeperAddrs []string      `name:"zookeeper-addrs" placeholder:"HOST:2181,…" help:"ZooKeeper. Without it, its lock is left out."`
	Nap            time.Duration `default:"1s" help:"Lease of the holder that falls asleep."`
}

func (locksCmd) Help() string {
	return `Plays two stories with each lock: it is taken away under its holder, as by a failover to a server that never saw
it; and its holder sleeps past its lease. Tells whether two believed in the lock at once, for how long, and whether
a fencing token would have refused the late write. Then a voucher is sold while the buyers' locks are taken away all
the time, and the audit judges.`
}

// Run tells the lesson.
func (c *locksCmd) Run(ctx context.Context, out *output) error {
	if c.Nap < 200*time.Millisecond || c.Nap > time.Minute {
		return fmt.Errorf("--nap must be from 200ms to 1m")
	}
	data, err := os.MkdirTemp("", "seckill-locks-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	opts := app.Options{
		Servers: app.Servers{Data: data, RedisAddrs: c.RedisAddrs, ZooKeeperAddrs: c.ZooKeeperAddrs},
		Lock:    app.Lock{Lock: "redis", RedlockAddrs: c.RedlockAddrs},
	}
	lessons, err := app.LockLessons(ctx, opts, c.Nap, out.logger(app.Log{LogLevel: "error"}))
	if err != nil {
		return err
	}
	bad := false
	for _, l := range lessons {
		fmt.Fprintf(out.stdout, "%s (%s)\n\n", l.Name, l.Where)
		for _, f := range l.Findings {
			fmt.Fprintf(out.stdout, "  %s\n", strings.ReplaceAll(f.String(), "\n", "\n  "))
		}
		fmt.Fprintf(out.stdout, "  acquire and release: %s, %.1f requests\n", l.Cost.Pair.Round(time.Microsecond), l.Cost.Requests)
		verdict := "and the audit finds every invariant to hold"
		bad = bad || l.Sale.Broken == 0 || l.Sale.Sold != l.Sale.Stock
		if !l.Sale.Audit.OK {
			bad = true
			verdict = "AND THE AUDIT FINDS: " + l.Sale.Audit.Err().Error()
		}
		fmt.Fprintf(out.stdout, "  a sale whose locks were being taken away all the time (%d tries): %d of %d units sold, %s\n\n", l.Sale.Broken, l.Sale.Sold, l.Sale.Stock, verdict)
	}
	if len(c.ZooKeeperAddrs) == 0 {
		fmt.Fprintln(out.stdout, "zookeeper was left out: --zookeeper-addrs names a server")
	}
	if bad {
		return errVerdict
	}
	return nil
}
