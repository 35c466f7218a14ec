// Command drill brings the shop up with docker compose, breaks it while buyers keep coming, and shows what each layer did
// and what became of every order. `go run ./cmd/drill list` has the drills.
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

// cli is the command line.
type cli struct {
	Names     []string `arg:"" name:"drill" help:"Drills, or all, or list."`
	Seed      int64    `help:"Chooses what is left to chance: moments, instances, buyers. Without it, any; it is printed."`
	Orders    int64    `default:"20000" help:"Units on sale; a drill ends when all of them are sold."`
	Short     bool     `help:"Short faults and 2,500 orders, for CI: the limits on times only inform then."`
	Rate      float64  `placeholder:"N" help:"Buyers a second. Without it, so many that half of the units are sold by the drill's end."`
	Lock      []string `default:"redis" placeholder:"LOCK" help:"What stands in front of the database: none, redis, redlock, zookeeper, or several of them; all for each that a drill applies to."`
	Again     int64    `placeholder:"N" help:"Play a drill up to so often again that came through but could not show what it is about. None that did harm is played again."`
	NoControl bool     `help:"Leave out the negative control, a shop that was built without its guard."`
	JSON      bool     `name:"json" help:"Print the results as one JSON array; what else there is to say goes to stderr."`
	HTML      string   `name:"html" type:"path" placeholder:"FILE" help:"Write a page with plots of each drill."`
	Keep      bool     `help:"Leave the last project up, and journals where they are."`
}

const description = `Failover drills: breaks the shop on purpose and holds the books against the database.

  go run ./cmd/drill list              what there is
  go run ./cmd/drill redis-failover    one of them
  go run ./cmd/drill all --lock all    everything, with every lock

It needs Docker with the compose plugin, and runs in the root of the repository. Status 0 if every drill passed, 1 if one
failed, 2 if something could not be started. Ctrl-C takes down what is up.`

// Validate names the first flag that cannot be. kong calls it.
func (c *cli) Validate() error {
	const most, least = manyUsers * 4 / 10, 100 // every unit has a buyer of its own, and some come in vain
	if c.Orders < least || c.Orders > most {
		return fmt.Errorf("--orders must be from %d to %d", least, most)
	}
	if c.Rate < 0 || c.Again < 0 {
		return errors.New("--rate and --again must not be negative")
	}
	if slices.Contains(c.Lock, "all") {
		c.Lock = everyLock
	}
	for _, lock := range c.Lock {
		if !slices.Contains(everyLock, lock) {
			return fmt.Errorf("--lock %q: there are %s, all", lock, strings.Join(everyLock, ", "))
		}
	}
	_, err := choose(slices.DeleteFunc(slices.Clone(c.Names), func(name string) bool { return name == "list" }))
	return err
}

// shortOrders is how many units a short drill has: enough for a verdict.
const shortOrders = 2500

// settings are what the drills are played with.
func (c *cli) settings(ordersGiven bool) settings {
	s := settings{seed: c.Seed, units: c.Orders, rate: c.Rate, short: c.Short}
	if s.seed == 0 {
		s.seed = rand.Int64N(1_000_000) + 1 //nolint:gosec // it has to be printed and typed, no more
	}
	if c.Short && !ordersGiven {
		s.units = shortOrders
	}
	return s
}

func main() {
	// The second Ctrl-C changes nothing: everything is being taken down already, and leaving now would leave it up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// start is main with its surroundings passed in. It returns the exit status.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("drill"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	if err != nil {
		fmt.Fprintln(stderr, "drill:", err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
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
	return c.play(ctx, c.settings(ordersGiven), stdout, stderr)
}

// play plays the drills and reports.
func (c *cli) play(ctx context.Context, set settings, stdout, stderr io.Writer) int {
	out := stdout
	if c.JSON {
		out = stderr
	}
	results, err := c.playAll(ctx, set, out)
	if len(results) > 1 {
		table(out, results)
	}
	if c.JSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(results))
	}
	if c.HTML != "" {
		err = errors.Join(err, writePage(c.HTML, results))
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

// playAll plays one drill after the other. It ends early only if something cannot be brought up, or ctx ends; what was
// brought up is taken down in any case.
func (c *cli) playAll(ctx context.Context, set settings, out io.Writer) (results []*result, err error) {
	chosen, err := choose(c.Names)
	if err != nil {
		return nil, err
	}
	all, skipped := turns(chosen, c.Lock)
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
		if c.NoControl {
			t.control = nil
		}
		st, err := s.stageFor(ctx, t)
		if err != nil {
			return results, err
		}
		r := s.play(ctx, st, t, set)
		for n := int64(1); n <= c.Again && r.notShown() && ctx.Err() == nil; n++ {
			if st, r, err = s.playAgain(ctx, t, set, n, r); err != nil {
				return results, err
			}
		}
		if ctx.Err() != nil {
			return results, nil
		}
		r.print(out)
		results = append(results, r)
		if t.control != nil && r.OK {
			if err := s.playControl(ctx, st, t, set, r); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}
