package main

import (
	"context"
	"fmt"
	"slices"

	"seckill/cmd/internal/reconcile"
	"seckill/loadtest"
	"seckill/repository"
)

// ledger is what a drill came to: what the buyers were told, and what the database holds.
type ledger struct {
	Sent     int64 `json:"requests"`
	Dropped  int64 `json:"dropped"`  // arrivals for which no client was free: this machine's failing, not the shop's
	Accepted int64 `json:"accepted"` // orders that buyers know of
	Refused  int64 `json:"refused"`  // requests
	Failed   int64 `json:"failed"`   // requests that the shop turned away, or that did not get to it: nothing was done
	Unknown  int64 `json:"unknown"`  // requests that were left open
	Settled  int64 `json:"settled"`  // of them, those of which it is known now what became
	Internal int64 `json:"internal"` // requests that were answered as no shop should

	Lost          int64 `json:"lost"`       // orders that buyers know of, and the database does not
	Ghosts        int64 `json:"ghosts"`     // orders whose buyers were told that there is none
	Oversold      int64 `json:"oversold"`   // units
	Undersold     int64 `json:"undersold"`  // units that are left although buyers were told that it is sold out
	Duplicates    int64 `json:"duplicates"` // live orders beyond their user's limit
	IDsTwice      int64 `json:"ids_twice"`
	Events        int64 `json:"events"`
	Unsent        int64 `json:"unsent_events"`
	WithoutEffect int64 `json:"events_without_effect"`
	Effects       int64 `json:"effects"`
	EffectsTwice  int64 `json:"effects_twice"`

	Repeated      int64 `json:"repeated,omitempty"`       // requests that were sent once more at once
	RepeatsFailed int64 `json:"repeats_failed,omitempty"` // of them, those that failed again

	Checks   int                  `json:"checks"`             // how many there were, of audit and journal
	Findings []repository.Finding `json:"findings,omitempty"` // those that are broken
}

// The checks that have a line of their own in the ledger, by the names that they have in their packages.
var (
	checkLost          = []string{"every order that a client was told of is in the database"}
	checkGhosts        = []string{"no order stands whose request was refused or failed", "no order stands that its buyer was not told of"}
	checkIDs           = []string{"no id was handed out twice", "no order was answered to two users"}
	checkWithoutEffect = []string{"every paid order has its effect"}
	checkEffectsTwice  = []string{"no effect happened twice"}
)

// draw draws up the ledger: it holds the book against the database and audits it. Nothing may be under way any more.
func draw(ctx context.Context, l *load, db *repository.DB) (*ledger, error) {
	audit, err := db.Audit(ctx, repository.AuditOptions{Settled: true})
	if err != nil {
		return nil, err
	}
	verdict, err := l.book.Check(ctx, db, reconcile.Options{Whole: true})
	if err != nil {
		return nil, err
	}
	report := l.recorder.Report()
	g := newLedger(&audit, &verdict)
	g.Dropped = report.Dropped
	g.Settled = g.Unknown - verdict.Open
	g.Undersold = l.voucher.Stock
	g.Repeated, g.RepeatsFailed = l.repeated.Load(), l.again.Load()
	return g, nil
}

// newLedger takes its figures from both verdicts.
func newLedger(audit *repository.Audit, verdict *reconcile.Verdict) *ledger {
	all := slices.Concat(audit.Findings, verdict.Findings)
	g := &ledger{
		Accepted: verdict.Told, Unknown: verdict.Unknown,
		Oversold: audit.Totals.Oversold, Duplicates: audit.Totals.Excess,
		Events: audit.Totals.Events, Unsent: audit.Totals.Unsent, Effects: audit.Totals.Effects,
		Lost: broken(all, checkLost), Ghosts: broken(all, checkGhosts), IDsTwice: broken(all, checkIDs),
		WithoutEffect: broken(all, checkWithoutEffect), EffectsTwice: broken(all, checkEffectsTwice),
		Checks: len(all),
	}
	for outcome, n := range verdict.Outcomes {
		g.Sent += n
		switch {
		case outcome == "internal" || outcome == loadtest.Unexpected:
			g.Internal += n
		case turnedAway(outcome), outcome.Class() == loadtest.Failed:
			g.Failed += n
		case outcome.Class() == loadtest.Refused:
			g.Refused += n
		}
	}
	for _, f := range all {
		if !f.OK {
			g.Findings = append(g.Findings, f)
		}
	}
	return g
}

// broken adds up how often the checks of these names do not hold.
func broken(all []repository.Finding, names []string) (n int64) {
	for _, f := range all {
		if slices.Contains(names, f.Check) {
			n += f.Broken
		}
	}
	return n
}

// leastOrders is how many orders have to be in the book for a verdict to be worth something, as a share of the units
// that were on sale at first.
const leastOrders = 0.9

// defects says what is wrong. A shop that came through has none.
func (g *ledger) defects() (all []string) {
	check := func(n int64, format string) {
		if n != 0 {
			all = append(all, fmt.Sprintf(format, n))
		}
	}
	check(g.Lost, "%d orders were lost")
	check(g.Ghosts, "%d orders stand although their buyers were told otherwise")
	check(g.Oversold, "%d units were oversold")
	check(g.Undersold, "%d units were left, although buyers were told that it was sold out")
	check(g.Duplicates, "%d orders are beyond their user's limit")
	check(g.IDsTwice, "%d ids were given away twice")
	check(g.Unknown-g.Settled, "%d outcomes are still unknown")
	check(g.Unsent, "%d events were not sent")
	check(g.WithoutEffect, "%d events had no effect")
	check(g.EffectsTwice, "%d effects happened twice")
	check(g.Internal, "%d requests were answered as no shop should")
	check(g.RepeatsFailed, "%d requests failed although they were repeated once")
	named := slices.Concat(checkLost, checkGhosts, checkIDs, checkWithoutEffect, checkEffectsTwice)
	for _, f := range g.Findings {
		if !slices.Contains(named, f.Check) {
			all = append(all, fmt.Sprintf("invariant %d, %q: broken %d times", f.Invariant, f.Check, f.Broken))
		}
	}
	return all
}
