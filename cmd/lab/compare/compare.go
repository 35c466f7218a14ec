// Package compare runs the same sale with several locks and batch sizes, and prints how fast and how correct each was.
package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

// Command is the experiment's command line.
type Command struct {
	Lock           []string      `default:"none,redis" placeholder:"NAME" help:"Locks to compare; see seckill serve --lock."`
	CommitBatchMax []int         `default:"1,256" placeholder:"N" help:"Batch sizes to compare. 1 is one transaction for each order."`
	Rounds         int           `default:"3" help:"Number of trials of each combination."`
	Duration       time.Duration `default:"5s" help:"How long a trial places orders at full rate."`
	Orders         int64         `placeholder:"N" help:"Number of orders of a trial, instead of --duration."`
	Clients        int           `default:"256" help:"Most buyers at the same time."`
	SellOut        int64         `default:"1000" help:"Units of the sale that ends each trial. Five buyers come for each unit, and send their requests twice at once."`
	HTML           string        `name:"html" type:"path" placeholder:"FILE" help:"Also write a page with table and charts."`
	JSON           bool          `name:"json" help:"Print the result as one JSON object."`

	Program      string `type:"existingfile" placeholder:"FILE" help:"The seckill program. Without it, the program is built with go build."`
	app.Servers  `embed:"" group:"Servers"`
	RedlockAddrs []string `placeholder:"HOST:6379" group:"Servers" help:"Independent Redis servers, for --lock=redlock."`
}

// Help describes the experiment.
func (Command) Help() string {
	return `Every combination of --lock and --commit-batch-max has a trial in each round: a separate shop process, on an
empty database that is created on the configured server and later dropped. Buyers place orders as fast as the shop
answers, each order by another user. Then a small voucher is sold out. Then the shop ends, and the clients' answers and
every invariant are checked against its database. Every second round runs in reverse order. Figures are medians.

Set other options of seckill serve as variables, for example SECKILL_COMMIT_CONCURRENCY. The shops run with GOGC=400, as
in docker-compose.yml, unless the variable GOGC is set. Without --mysql-dsn the shops are embedded: that shows the
differences, but not the cost of a server's durable commits.`
}

// combination is one way to run the shop.
type combination struct {
	Lock     string `json:"lock"`
	BatchMax int    `json:"commit_batch_max"`
}

func (c combination) String() string {
	return fmt.Sprintf("--lock=%s --commit-batch-max=%d", c.Lock, c.BatchMax)
}

// Validate names the first invalid flag.
func (c *Command) Validate() error {
	switch {
	case len(c.Lock) == 0 || len(c.CommitBatchMax) == 0:
		return errors.New("--lock and --commit-batch-max need at least one value each")
	case c.Rounds < 1 || c.Clients < 1 || c.SellOut < 1:
		return errors.New("--rounds, --clients and --sell-out must be at least 1")
	case c.Clients > cli.MaxClients || c.SellOut > cli.MaxRequests || c.Orders > cli.MaxRequests:
		return fmt.Errorf("--clients must be at most %d, --sell-out and --orders %d: they take memory", cli.MaxClients, cli.MaxRequests)
	case c.Orders < 0 || (c.Orders == 0 && c.Duration <= 0):
		return errors.New("--orders or --duration must be positive")
	case !c.Embedded() && slices.Contains(c.Lock, "redis") && len(c.RedisAddrs) == 0:
		return errors.New("--lock=redis requires --redis-addrs; use --lock=none to compare without Redis")
	}
	return nil
}

// combinations returns every lock with every batch size.
func (c *Command) combinations() (all []combination) {
	for _, lock := range c.Lock {
		for _, batch := range c.CommitBatchMax {
			all = append(all, combination{lock, batch})
		}
	}
	return all
}

// Run runs all trials and prints the comparison.
func (c *Command) Run(ctx context.Context, out *cli.Output) error {
	b, err := newBench(ctx, c, out)
	if err != nil {
		return err
	}
	defer b.close()
	trials, err := c.trials(ctx, b, out)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before there was a result")
		}
		return err
	}
	result := summarize(c, trials, b.measuredOn)
	if c.HTML != "" {
		if err := result.page().WriteFile(c.HTML); err != nil {
			return err
		}
	}
	return out.Finish(c.JSON, result, result.print, result.OK)
}

// trials runs every combination in every round. Every second round has the reverse order, so that slow changes of the
// machine favour none.
func (c *Command) trials(ctx context.Context, b *bench, out *cli.Output) (trials []trial, err error) {
	order := c.combinations()
	for round := range c.Rounds {
		for _, combination := range order {
			if cli.OnTerminal(out.Stderr) {
				fmt.Fprintf(out.Stderr, "\r\033[Kround %d of %d: %s", round+1, c.Rounds, combination)
			}
			t, err := b.run(ctx, combination)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", combination, err)
			}
			t.Round = round + 1
			trials = append(trials, t)
		}
		slices.Reverse(order)
	}
	if cli.OnTerminal(out.Stderr) {
		fmt.Fprint(out.Stderr, "\r\033[K")
	}
	return trials, nil
}
