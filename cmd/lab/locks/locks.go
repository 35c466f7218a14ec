// Package locks shows what each lock is worth when its holder loses it without knowing: whether two holders existed at
// the same time, and whether a fencing token would have refused the late write. Then it sells a voucher while the buyers'
// locks are broken all the time.
package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

// Command is the experiment's command line.
type Command struct {
	RedisAddrs     []string      `name:"redis-addrs" placeholder:"HOST:6379,…" help:"Redis for the Redis lock. Without it, an in-process one."`
	RedlockAddrs   []string      `name:"redlock-addrs" placeholder:"HOST:6379,…" help:"Independent Redis servers for Redlock. Without them, five in-process ones."`
	ZooKeeperAddrs []string      `name:"zookeeper-addrs" placeholder:"HOST:2181,…" help:"ZooKeeper. Without it, its lock is left out."`
	Pause          time.Duration `default:"1s" help:"Lease of the holder that is paused."`
}

// Help describes the experiment.
func (Command) Help() string {
	return `Runs two cases with each lock. In the first, the lock is deleted under its holder, as by a failover to a server
that never saw it. In the second, the holder is paused longer than its lease. The output tells for how long two
holders existed, and whether a fencing token would have refused the late write. Then a voucher is sold while the
buyers' locks are deleted all the time, and the audit checks the sale.`
}

// Run runs the experiment and prints its results.
func (c *Command) Run(ctx context.Context, out *cli.Output) (err error) {
	if c.Pause < 200*time.Millisecond || c.Pause > time.Minute {
		return errors.New("--pause must be from 200ms to 1m")
	}
	data, err := os.MkdirTemp("", "seckill-locks-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	log := out.Logger("error", "text")
	db, err := app.OpenDatabase(ctx, &app.Options{Servers: app.Servers{Data: data}}, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	subjects, stop, err := c.subjects()
	if err != nil {
		return err
	}
	defer stop()
	failed := false
	for _, s := range subjects {
		r, err := s.run(ctx, db, c.Pause, log)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.print(out.Stdout, s)
		failed = failed || !r.sale.ok()
	}
	if len(c.ZooKeeperAddrs) == 0 {
		fmt.Fprintln(out.Stdout, "zookeeper was left out: --zookeeper-addrs names a server")
	}
	if failed {
		return cli.ErrFailed
	}
	return nil
}

// result is what one lock was worth.
type result struct {
	cases []finding
	cost  cost
	sale  sale
}

func (r *result) print(w io.Writer, s subject) {
	fmt.Fprintf(w, "%s (%s)\n\n", s.name, s.where)
	for _, f := range r.cases {
		fmt.Fprintf(w, "  %s\n", f)
	}
	fmt.Fprintf(w, "  acquire and release: %s, %.1f requests\n", r.cost.pair.Round(time.Microsecond), r.cost.requests)
	verdict := "and the audit finds that every invariant holds"
	if !r.sale.audit.OK {
		verdict = "AND THE AUDIT FINDS: " + r.sale.audit.Err().Error()
	}
	fmt.Fprintf(w, "  a sale whose locks were deleted all the time (%d times): %d of %d units sold, %s\n\n",
		r.sale.broken, r.sale.sold, r.sale.stock, verdict)
}
