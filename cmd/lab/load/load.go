// Package load sends load to a running shop and checks its answers.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/loadtest"
)

// Command is the experiment's command line.
type Command struct {
	URL      string `name:"url" default:"http://127.0.0.1:8080" help:"Address of the shop, or of its load balancer."`
	Scenario string `enum:"sale,duplicates,soldout,lifecycle,soak" default:"sale" help:"What the buyers do: ${enum}."`
	Voucher  string `placeholder:"ID" help:"The voucher to buy. Without it, an admin puts a new one on sale."`
	Stock    int64  `placeholder:"N" help:"Units of the new voucher."`

	Clients    int           `default:"256" help:"Most arrivals at the same time."`
	Rate       float64       `placeholder:"N" help:"Arrivals a second, however slow the shop is; an arrival that finds no free client is dropped and counted. Without it, each client starts its next arrival after the answer to the last one."`
	Requests   int64         `placeholder:"N" help:"Number of arrivals."`
	Duration   time.Duration `placeholder:"TIME" help:"How long arrivals come."`
	Users      int64         `placeholder:"N" help:"Number of users; after the last one, the first comes again."`
	FirstUser  int64         `default:"2" help:"Number of the first user."`
	Duplicates int           `placeholder:"N" help:"How often a request is sent at the same time."`
	DupShare   *float64      `name:"duplicate-share" placeholder:"N" help:"Share of the arrivals that send duplicates, from 0 to 1."`
	NoKeys     bool          `help:"Send no Idempotency-Key."`
	Timeout    time.Duration `default:"15s" help:"How long to wait for an answer."`

	Settle  time.Duration `default:"30s" help:"How long to repeat requests whose outcome is unknown; 0: never."`
	Journal string        `type:"path" placeholder:"FILE" help:"Write every request and its answer to this file, for seckill audit --journal."`
	Audit   bool          `default:"true" negatable:"" help:"Ask the shop for its audit at the end, if there is an admin's token."`
	JSON    bool          `name:"json" help:"Print the result as one JSON object."`

	tokenFlags `embed:""`
}

// Help describes the scenarios and the exit status.
func (Command) Help() string {
	text := "Scenarios; flags change their numbers:\n\n"
	for _, s := range loadtest.Scenarios {
		text += fmt.Sprintf("  %-11s %s\n", s.Name, s.Text)
	}
	return text + `
Status 0 if nothing was oversold, no user got too many orders, no request failed, no outcome is unknown, and the audit
is good. Dropped arrivals are only reported: the shop, or this machine, is too slow for the rate.`
}

// Validate names the first invalid flag.
func (c *Command) Validate() error {
	switch {
	case c.Clients < 1 || c.Rate < 0 || c.Requests < 0 || c.Duration < 0 || c.Users < 0 || c.FirstUser < 1 || c.Stock < 0 || c.Duplicates < 0:
		return errors.New("--clients and --first-user must be at least 1, other numbers must not be negative")
	case c.Clients > cli.MaxClients || c.Duplicates > cli.MaxDuplicates || c.Requests > cli.MaxRequests || c.Users > cli.MaxRequests:
		return fmt.Errorf("--clients must be at most %d, --duplicates %d, --requests and --users %d: they take memory", cli.MaxClients, cli.MaxDuplicates, cli.MaxRequests)
	case c.DupShare != nil && (*c.DupShare < 0 || *c.DupShare > 1):
		return errors.New("--duplicate-share must be from 0 to 1")
	case c.Voucher != "" && c.Stock != 0:
		return errors.New("--stock is for a new voucher; it does not change the one of --voucher")
	}
	return nil
}

// scenario returns the chosen scenario with the numbers of the flags.
func (c *Command) scenario() (loadtest.Scenario, error) {
	s, err := loadtest.ScenarioNamed(c.Scenario)
	if err != nil {
		return s, err
	}
	if c.Requests != 0 || c.Duration != 0 { // one limit replaces the other
		s.Arrivals, s.Duration = c.Requests, c.Duration
	}
	s.Rate, s.Stock, s.Users = cmp.Or(c.Rate, s.Rate), cmp.Or(c.Stock, s.Stock), cmp.Or(c.Users, s.Users)
	if c.Duplicates != 0 {
		s.Copies, s.CopyShare = c.Duplicates, 1
	}
	if c.DupShare != nil {
		s.CopyShare = *c.DupShare
	}
	return s, nil
}

// Run sends the load and prints the result.
func (c *Command) Run(ctx context.Context, out *cli.Output) error {
	scenario, err := c.scenario()
	if err != nil {
		return err
	}
	r, err := newRun(c, scenario, out)
	if err != nil {
		return err
	}
	result, err := r.send(ctx)
	if err := errors.Join(err, r.close()); err != nil {
		return err
	}
	return out.Finish(c.JSON, result, result.print, result.Verdict.OK)
}
