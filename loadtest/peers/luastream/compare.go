package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

type compareCmd struct {
	Seckill  string        `required:"" type:"existingfile" placeholder:"FILE" help:"Our shop: go build -o FILE ./cmd/seckill"`
	Lab      string        `required:"" type:"existingfile" placeholder:"FILE" help:"The load generator: go build -o FILE ./cmd/lab"`
	MySQLDSN string        `name:"mysql-dsn" required:"" placeholder:"USER:PASS@tcp(HOST:3306)/" help:"Database server; each run gets a new database."`
	Redis    string        `default:"redis-server" placeholder:"FILE" help:"redis-server; each run starts a new one."`
	AOF      string        `name:"appendfsync" enum:"off,no,everysec,always" default:"everysec" help:"Persistence of Redis, the same for both: ${enum}."`
	Rounds   int           `default:"5" help:"Rounds; each runs both, in alternating order."`
	Duration time.Duration `default:"5s" help:"How long the load takes."`
	Clients  int           `default:"256" help:"Clients of the load, closed model."`
	Ours     string        `placeholder:"FLAGS" help:"More flags of seckill serve, such as --commit-batch-max=1."`
	Peer     string        `placeholder:"FLAGS" help:"More flags of luastream serve, such as --plain."`
}

func (compareCmd) Help() string {
	return `Redis, MySQL, the shop and the load generator share this machine, so only ratios within a round mean something.
Our shop uses its Redis lock and answers when the order is committed; the peer answers when Redis has the order.
Every buyer is another user, and there are enough units.`
}

// Run runs all rounds.
func (c *compareCmd) Run(ctx context.Context) error {
	if c.Rounds < 1 || c.Clients < 1 || c.Duration < time.Second {
		return errors.New("--rounds and --clients must be at least 1, --duration at least 1s")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(c.Redis); err != nil {
		return err
	}
	server, err := describe(ctx, c.MySQLDSN)
	if err != nil {
		return err
	}
	fmt.Println(server)
	contestants := []contestant{ours(c), peer(c, self)}
	results := make([]round, c.Rounds)
	t := newTable(os.Stdout)
	for i := range results {
		order := []int{0, 1}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, n := range order {
			r, err := c.run(ctx, &contestants[n])
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", i+1, contestants[n].name, err)
			}
			results[i][n] = r
			t.row(i+1, contestants[n].name, r)
		}
	}
	conclude(os.Stdout, results)
	return nil
}

// contestant is one of the two shops.
type contestant struct {
	name    string
	program string
	args    []string // without the servers, which differ between runs
	servers func(listen, redis, mysql string) []string
	stats   bool // it has /stats
}

// key signs the tokens. It is no secret: the shops listen on loopback, for this command only.
const key = "a key for nothing but a comparison"

func ours(c *compareCmd) contestant {
	return contestant{
		name: "ours", program: c.Seckill,
		args: append([]string{"serve", "--migrate", "--jwt-key", key}, strings.Fields(c.Ours)...),
		servers: func(listen, redis, mysql string) []string {
			return []string{"--listen", listen, "--redis-addrs", redis, "--mysql-dsn", mysql}
		},
	}
}

func peer(c *compareCmd, self string) contestant {
	return contestant{
		name: "peer", program: self, stats: true,
		args: append([]string{"serve", "--jwt-key", key}, strings.Fields(c.Peer)...),
		servers: func(listen, redis, mysql string) []string {
			return []string{"--listen", listen, "--redis-addr", redis, "--mysql-dsn", mysql}
		},
	}
}
