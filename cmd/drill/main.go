// Command drill runs failover drills: it brings the shop up with docker compose, breaks it while buyers keep coming, and
// shows what happened to every order. `go run ./cmd/drill list` prints the drills.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// command is the command line.
type command struct {
	Names     []string `arg:"" name:"drill" help:"Drills, or all, or list."`
	Seed      int64    `help:"Chooses everything random: moments, instances, buyers. Without it, a random one, which is printed."`
	Orders    int64    `default:"20000" help:"Units on sale; a drill ends when all of them are sold."`
	Short     bool     `help:"Short faults and 2,500 orders, for CI. A time beyond its limit does not fail the drill then."`
	Rate      float64  `placeholder:"N" help:"Buyers a second. By default half of the units are sold by the drill's end."`
	Lock      []string `default:"redis" placeholder:"LOCK" help:"The shop's lock: none, redis, redlock, zookeeper, or several of them; all for each that a drill applies to."`
	Again     int64    `placeholder:"N" help:"Run a drill up to N times again if it did no harm but could not show what it is about."`
	NoControl bool     `help:"Leave out the negative control, a shop that was built without its guard."`
	JSON      bool     `name:"json" help:"Print the results as one JSON array; everything else goes to stderr."`
	HTML      string   `name:"html" type:"path" placeholder:"FILE" help:"Write a page with charts of each drill."`
	Keep      bool     `help:"Leave the last project up, and keep the journals."`
}

const description = `Failover drills: break the shop on purpose, and check every order afterwards.

  go run ./cmd/drill list              what there is
  go run ./cmd/drill redis-failover    one of them
  go run ./cmd/drill all --lock all    everything, with every lock

Drills need Docker with the compose plugin, and run in the root of the repository. Status 0 if every drill passed, 1 if one
failed, 2 if something could not be started. Ctrl-C takes everything down.`

// Validate reports the first invalid flag. kong calls it.
func (c *command) Validate() error {
	const most, least = maxUsers * 4 / 10, 100 // every unit has its own buyer, and some buyers come too late
	if c.Orders < least || c.Orders > most {
		return fmt.Errorf("--orders must be from %d to %d", least, most)
	}
	if c.Rate < 0 || c.Again < 0 {
		return errors.New("--rate and --again must not be negative")
	}
	if slices.Contains(c.Lock, "all") {
		c.Lock = allLocks
	}
	for _, lock := range c.Lock {
		if !slices.Contains(allLocks, lock) {
			return fmt.Errorf("--lock %q: there are %s, all", lock, strings.Join(allLocks, ", "))
		}
	}
	_, err := choose(slices.DeleteFunc(slices.Clone(c.Names), func(name string) bool { return name == "list" }))
	return err
}

// shortOrders is the number of units of a short drill: enough for a verdict.
const shortOrders = 2500

func (c *command) settings(ordersGiven bool) settings {
	s := settings{seed: c.Seed, units: c.Orders, rate: c.Rate, short: c.Short}
	if s.seed == 0 {
		s.seed = rand.Int64N(1_000_000) + 1 //nolint:gosec // it only has to be short
	}
	if c.Short && !ordersGiven {
		s.units = shortOrders
	}
	return s
}

func main() {
	// A second Ctrl-C has no effect: it would interrupt the shutdown, and leave containers running.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// start parses the command line and runs the command. It returns the exit status.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c command
	parser, err := kong.New(&c, kong.Name("drill"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	if err == nil && len(args) == 0 {
		args = []string{"--help"}
	}
	var k *kong.Context
	if err == nil {
		k, err = parser.Parse(args)
	}
	if err != nil {
		fmt.Fprintln(stderr, "drill:", err)
		return 2
	}
	if k == nil { // help was printed
		return 0
	}
	if slices.Contains(c.Names, "list") {
		list(stdout)
		return 0
	}
	ordersGiven := slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "orders" })
	return c.run(ctx, c.settings(ordersGiven), stdout, stderr)
}

// run runs the drills and reports.
func (c *command) run(ctx context.Context, set settings, stdout, stderr io.Writer) int {
	out := stdout
	if c.JSON {
		out = stderr
	}
	results, err := c.runAll(ctx, set, out)
	if len(results) > 1 {
		table(out, results)
	}
	if c.JSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(results))
	}
	if c.HTML != "" {
		err = errors.Join(err, page(results).WriteFile(c.HTML))
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "drill:", err)
		return 2
	case slices.ContainsFunc(results, func(r *result) bool { return !r.OK }):
		return 1
	}
	return 0
}

// runAll runs one drill after the other, and takes everything down. It ends early only if something cannot be brought up,
// or ctx ends.
func (c *command) runAll(ctx context.Context, set settings, out io.Writer) (results []*result, err error) {
	chosen, err := choose(c.Names)
	if err != nil {
		return nil, err
	}
	all, skipped := drillRuns(chosen, c.Lock)
	for _, s := range skipped {
		fmt.Fprintf(out, "%s\n", s)
	}
	s, err := newSession(ctx, out, c.Keep)
	if err != nil {
		return nil, err
	}
	defer func() {
		if ctx.Err() != nil {
			fmt.Fprintf(out, "\ninterrupted: taking everything down, which takes some seconds\n")
			err = errors.Join(err, errors.New("interrupted"))
		}
		err = errors.Join(err, s.close())
	}()
	for i := range all {
		t := &all[i]
		t.control = t.control && !c.NoControl
		r, err := s.run(ctx, t, set, c.Again)
		if err != nil || ctx.Err() != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}
