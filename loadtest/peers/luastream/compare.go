package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	server, err := describe(ctx, c.MySQLDSN)
	if err != nil {
		return err
	}
	fmt.Println(server)
	contestants := c.contestants(self)
	results := make([]round, c.Rounds)
	printTitles(os.Stdout)
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
			printRow(os.Stdout, i+1, contestants[n].name, r)
		}
	}
	conclude(os.Stdout, results)
	return nil
}

// contestant is one of the two shops.
type contestant struct {
	name    string
	program string
	args    []string // without the addresses, which differ between runs
	stats   bool     // it has /stats
}

// key signs the tokens. It is not secret: the shops listen on loopback, for this command only.
const key = "a key for nothing but a comparison"

// contestants returns our shop and the peer.
func (c *compareCmd) contestants(self string) [2]contestant {
	ours := append([]string{"serve", "--migrate", "--jwt-key", key}, strings.Fields(c.Ours)...)
	peer := append([]string{"serve", "--jwt-key", key}, strings.Fields(c.Peer)...)
	return [2]contestant{{name: "ours", program: c.Seckill, args: ours}, {name: "peer", program: self, args: peer, stats: true}}
}

// round has the results of our shop and of the peer.
type round [2]result

const layout = "%5v  %-5s %14s %12s %9s %8s %9s %9s  %s\n"

func printTitles(w io.Writer) {
	fmt.Fprintf(w, layout, "round", "who", "acknowledged/s", "durable/s", "waiting", "drained", "p50", "p99", "audit")
}

func printRow(w io.Writer, n int, who string, r result) {
	verdict := "good"
	if !r.good {
		verdict = "BAD"
	}
	fmt.Fprintf(w, layout, n, who, fmt.Sprintf("%.0f", r.acknowledged), fmt.Sprintf("%.0f", r.durable), fmt.Sprint(r.waiting),
		r.drain.Round(10*time.Millisecond), r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond), verdict)
}

// conclude prints the ratios.
func conclude(w io.Writer, rounds []round) {
	fmt.Fprintf(w, "\nOf %d rounds, medians:\n", len(rounds))
	fmt.Fprintf(w, "  Our shop acknowledges %.2f times as many orders a second as the peer, and all of them are durable.\n",
		ratio(rounds, func(r *round) float64 { return r[0].acknowledged / r[1].acknowledged }))
	fmt.Fprintf(w, "  Our shop makes %.2f times as many orders a second durable.\n",
		ratio(rounds, func(r *round) float64 { return r[0].durable / r[1].durable }))
	fmt.Fprintf(w, "  When the load ended, %.0f %% of the peer's acknowledged orders were in Redis only.\n",
		100*ratio(rounds, func(r *round) float64 { return float64(r[1].waiting) / float64(r[1].orders) }))
}

// ratio is the median of a figure over all rounds.
func ratio(rounds []round, of func(*round) float64) float64 {
	all := make([]float64, len(rounds))
	for i := range rounds {
		all[i] = of(&rounds[i])
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
