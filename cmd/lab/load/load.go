package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// Command is the experiment's command line.
type Command struct {
	URL      string `name:"url" default:"http://127.0.0.1:8080" help:"The shop, or what stands before it."`
	Scenario string `enum:"sale,duplicates,soldout,lifecycle,soak" default:"sale" help:"What is played: ${enum}."`
	Voucher  string `placeholder:"ID" help:"What is bought. Without it, an admin puts a voucher on sale first."`
	Stock    int64  `placeholder:"N" help:"Units of that voucher."`

	Clients    int           `default:"256" help:"Arrivals that are served at the same time, at most."`
	Rate       float64       `placeholder:"N" help:"Arrivals a second, whatever the shop does; those for whom no client is free are dropped and counted. Without it, each client goes on as soon as it has its answer."`
	Requests   int64         `placeholder:"N" help:"Arrivals in all."`
	Duration   time.Duration `placeholder:"TIME" help:"How long they come."`
	Users      int64         `placeholder:"N" help:"How many users take turns."`
	FirstUser  int64         `default:"2" help:"Number of the first of them."`
	Duplicates int           `placeholder:"N" help:"How often a request is sent at the same time."`
	DupShare   *float64      `name:"duplicate-share" placeholder:"N" help:"Share of the arrivals that send duplicates, from 0 to 1."`
	NoKeys     bool          `help:"Send no Idempotency-Key."`
	Timeout    time.Duration `default:"15s" help:"How long to wait for an answer."`

	Settle  time.Duration `default:"30s" help:"How long to repeat requests whose outcome is unknown; 0: not at all."`
	Journal string        `type:"path" placeholder:"FILE" help:"Write down every request and its answer, for audit --journal."`
	Audit   bool          `default:"true" negatable:"" help:"Ask the shop for its audit at the end, if there is an admin's token."`
	JSON    bool          `name:"json" help:"Print the result as one JSON object."`

	loadTokens `embed:""`
}

func (Command) Help() string {
	text := "Scenarios, whose numbers the flags change:\n\n"
	for _, s := range loadtest.Scenarios {
		text += fmt.Sprintf("  %-11s %s\n", s.Name, s.Text)
	}
	return text + `
Status 0 if nothing was oversold, sold twice to a user, answered as no shop should, or left unknown, and the audit is
good. Dropped arrivals are reported, not held against the shop: it, or this machine, is too slow for the rate.`
}

// Validate names the first flag that cannot be.
func (c *Command) Validate() error {
	switch {
	case c.Clients < 1 || c.Rate < 0 || c.Requests < 0 || c.Duration < 0 || c.Users < 0 || c.FirstUser < 1 || c.Stock < 0 || c.Duplicates < 0:
		return errors.New("--clients and --first-user must be at least 1, other numbers must not be negative")
	case c.Clients > cli.MaxClients || c.Duplicates > cli.MaxDuplicates || c.Requests > cli.MaxRequests || c.Users > cli.MaxRequests:
		return fmt.Errorf("--clients must be at most %d, --duplicates %d, --requests and --users %d: each takes memory here", cli.MaxClients, cli.MaxDuplicates, cli.MaxRequests)
	case c.DupShare != nil && (*c.DupShare < 0 || *c.DupShare > 1):
		return errors.New("--duplicate-share must be from 0 to 1")
	case c.Voucher != "" && c.Stock != 0:
		return errors.New("--stock is for a new voucher; --voucher has its own")
	}
	return nil
}

// scenario returns the chosen one, with what the flags say.
func (c *Command) scenario() (loadtest.Scenario, error) {
	s, err := loadtest.ScenarioNamed(c.Scenario)
	if err != nil {
		return s, err
	}
	if c.Requests != 0 || c.Duration != 0 { // one bound takes the place of the other
		s.Arrivals, s.Duration = c.Requests, c.Duration
	}
	if c.Rate != 0 {
		s.Rate = c.Rate
	}
	if c.Stock != 0 {
		s.Stock = c.Stock
	}
	if c.Users != 0 {
		s.Users = c.Users
	}
	if c.Duplicates != 0 {
		s.Copies = c.Duplicates
	}
	switch {
	case c.DupShare != nil:
		s.CopyShare = *c.DupShare
	case c.Duplicates != 0: // whoever names a number means everybody
		s.CopyShare = 1
	}
	return s, nil
}

// Run plays the scenario.
func (c *Command) Run(ctx context.Context, out *cli.Output) error {
	scenario, err := c.scenario()
	if err != nil {
		return err
	}
	l, err := newLoad(c, scenario, out)
	if err != nil {
		return err
	}
	result, err := l.run(ctx)
	if err := errors.Join(err, l.close()); err != nil {
		return err
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

// loadResult is the outcome of a load.
type loadResult struct {
	OK       bool             `json:"ok"`
	Verdict  *verdict.Verdict `json:"verdict"` // of the shop's own audit, if it was asked, and of what the clients know
	Audited  bool             `json:"audited"`
	Notes    []string         `json:"notes,omitempty"`
	Scenario string           `json:"scenario"`
	Load     loadtest.Report  `json:"load"`
	Settled  loadtest.Settled `json:"settled"`
	Before   loadtest.Voucher `json:"voucher_before"`
	After    loadtest.Voucher `json:"voucher_after"`
	Clients  verdict.Owned    `json:"clients"`
}

// judge adds to the verdict what the clients know.
func (r *loadResult) judge() {
	v, own := r.Verdict, r.Clients
	v.Require("order-two-users", "no order was answered to two users", own.Shared)
	v.Require("outcome-unresolved", "every unknown outcome was resolved", r.Settled.Open)
	failed := int64(0)
	for _, outcome := range r.Load.Outcomes {
		if outcome.Class == loadtest.Failed {
			failed += outcome.Count
		}
	}
	v.Require("request-failed", "no request failed", failed)
	if r.Load.Elapsed < time.Duration(r.Before.PaySeconds)*time.Second {
		r.judgeUnits()
	} else {
		r.Notes = append(r.Notes, "orders may have expired meanwhile: only the audit can say whether too many are live")
	}
	r.OK = v.OK
}

// judgeUnits compares the clients' live orders with the units of the voucher.
func (r *loadResult) judgeUnits() {
	v, own, added := r.Verdict, r.Clients, r.After.Total-r.Before.Total
	oversold := max(0, own.Live-r.Before.Stock-added)
	v.Duplicates, v.Oversold = max(v.Duplicates, own.Duplicates), max(v.Oversold, oversold)
	v.Require("user-limit", "no user was told of more live orders than the limit", own.Duplicates)
	v.Require("oversold", "clients were told of no more live orders than there were units", oversold)
	if sold := r.Before.Stock - r.After.Stock + added; sold != own.Live {
		r.Notes = append(r.Notes, fmt.Sprintf("the shop sold %d units meanwhile and these clients know of %d", sold, own.Live))
	}
}

// print writes the result for people.
func (r *loadResult) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s requests in %s, %s/s; %s orders, %s/s; %s dropped; %s.\n", r.Scenario,
		humanize.Comma(r.Load.Requests), cli.Short(r.Load.Elapsed), cli.PerSecond(r.Load.PerSec), humanize.Comma(r.Clients.Orders),
		cli.PerSecond(float64(r.Load.Count(loadtest.OpPlace, loadtest.Placed))/r.Load.Elapsed.Seconds()), humanize.Comma(r.Load.Dropped), r.Verdict.Summary())
	fmt.Fprintln(w)
	_ = cli.PrintOutcomes(w, &r.Load)
	fmt.Fprintf(w, "\n  voucher %s: %s units on sale, %s left; clients hold %s orders of %s users\n", r.After.ID,
		humanize.Comma(r.After.Total), humanize.Comma(r.After.Stock), humanize.Comma(r.Clients.Live), humanize.Comma(r.Clients.Holders))
	if r.Settled.Unknown > 0 {
		fmt.Fprintf(w, "  %d outcomes were unknown at first; %d were settled\n", r.Settled.Unknown, r.Settled.Settled)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
	if r.Audited {
		r.Verdict.Print(w, false)
		return
	}
	fmt.Fprintln(w, "  the shop was not audited")
	for _, broken := range r.Verdict.Broken() {
		fmt.Fprintf(w, "  BROKEN  %s\n", broken)
	}
}
