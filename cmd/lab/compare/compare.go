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
	Lock           []string      `default:"none,redis" placeholder:"NAME" help:"Locks to compare, as serve --lock knows them."`
	CommitBatchMax []int         `default:"1,256" placeholder:"N" help:"Batch sizes to compare. 1 is the classic pattern: a transaction for each order."`
	Rounds         int           `default:"3" help:"How often each combination has its turn."`
	Duration       time.Duration `default:"5s" help:"How long orders are placed at full rate, in each turn."`
	Orders         int64         `placeholder:"N" help:"Place this many orders at full rate in each turn, instead of placing for --duration."`
	Clients        int           `default:"256" help:"Buyers who are served at the same time."`
	SellOut        int64         `default:"1000" help:"Units of the sale that ends each turn: five buyers come for each unit, and send every request twice at once."`
	HTML           string        `name:"html" type:"path" placeholder:"FILE" help:"Also write a page with table and plots, which needs no network."`
	JSON           bool          `name:"json" help:"Print the result as one JSON object."`

	Program      string `type:"existingfile" placeholder:"FILE" help:"The seckill program. Without it, the program is built with go build."`
	app.Servers  `embed:"" group:"Servers"`
	RedlockAddrs []string `placeholder:"HOST:6379" group:"Servers" help:"Independent Redis servers, for --lock=redlock."`
}

func (Command) Help() string {
	return `Every combination of --lock and --commit-batch-max has a turn in each round: a shop in a process of its own, on an
empty database that is made next to the configured one and dropped afterwards. Buyers, each for one unit, place orders
as fast as they are answered; then a small voucher is sold out; then the shop ends, and what the clients were told is
held against its database, and the database against every invariant. Every second round goes the other way, so that
what warms up or wears out favours nobody. Figures are medians over the rounds.

Other options of serve can be given as variables, such as SECKILL_COMMIT_CONCURRENCY. Without --mysql-dsn the shops are
embedded: that shows the differences, but not what a server's durable commits cost.`
}

// combination is one way to run the shop.
type combination struct {
	Lock     string `json:"lock"`
	BatchMax int    `json:"commit_batch_max"`
}

func (c combination) String() string {
	return fmt.Sprintf("--lock=%s --commit-batch-max=%d", c.Lock, c.BatchMax)
}

// Validate refuses what cannot be.
func (c *Command) Validate() error {
	switch {
	case len(c.Lock) == 0 || len(c.CommitBatchMax) == 0:
		return errors.New("--lock and --commit-batch-max need at least one value each")
	case c.Rounds < 1 || c.Clients < 1 || c.SellOut < 1:
		return errors.New("--rounds, --clients and --sell-out must be at least 1")
	case c.Clients > cli.MaxClients || c.SellOut > cli.MaxRequests || c.Orders > cli.MaxRequests:
		return fmt.Errorf("--clients must be at most %d, --sell-out and --orders %d: each takes memory here", cli.MaxClients, cli.MaxRequests)
	case c.Orders < 0 || (c.Orders == 0 && c.Duration <= 0):
		return errors.New("--orders or --duration must be positive")
	case !c.Embedded() && slices.Contains(c.Lock, "redis") && len(c.RedisAddrs) == 0:
		return errors.New("--lock=redis needs --redis-addrs; to compare without it, say --lock=none")
	}
	return nil
}

// combinations lists every lock with every batch size.
func (c *Command) combinations() (all []combination) {
	for _, lock := range c.Lock {
		for _, batch := range c.CommitBatchMax {
			all = append(all, combination{lock, batch})
		}
	}
	return all
}

// Run compares and prints.
func (c *Command) Run(ctx context.Context, out *cli.Output) error {
	b, err := newBench(ctx, c, out)
	if err != nil {
		return err
	}
	defer b.close()
	turns, err := c.turns(ctx, b, out)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before there was a result")
		}
		return err
	}
	result := summarize(c, turns, b.machine)
	if c.HTML != "" {
		if err := result.page().WriteFile(c.HTML); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := out.JSON(result); err != nil {
			return err
		}
	} else {
		result.print(out.Stdout)
	}
	if !result.OK {
		return cli.ErrFailed
	}
	return nil
}

// turns gives every combination its turn in every round.
func (c *Command) turns(ctx context.Context, b *bench, out *cli.Output) (turns []turn, err error) {
	order := c.combinations()
	for round := range c.Rounds {
		for _, combination := range order {
			if cli.OnTerminal(out.Stderr) {
				fmt.Fprintf(out.Stderr, "\r\033[Kround %d of %d: %s", round+1, c.Rounds, combination)
			}
			t, err := b.turn(ctx, combination)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", combination, err)
			}
			t.Round = round + 1
			turns = append(turns, t)
		}
		slices.Reverse(order)
	}
	if cli.OnTerminal(out.Stderr) {
		fmt.Fprint(out.Stderr, "\r\033[K")
	}
	return turns, nil
}
