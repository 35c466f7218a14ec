package load

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// result is the result of a run.
type result struct {
	Verdict  *verdict.Verdict `json:"verdict"`
	Audited  bool             `json:"audited"` // the verdict includes the shop's audit
	Notes    []string         `json:"notes,omitempty"`
	Scenario string           `json:"scenario"`
	Load     loadtest.Report  `json:"load"`
	Settled  loadtest.Settled `json:"settled"`
	Before   loadtest.Voucher `json:"voucher_before"`
	After    loadtest.Voucher `json:"voucher_after"`
	Clients  verdict.Owned    `json:"clients"`
}

// addAnswers adds what the clients' answers show to the verdict.
func (r *result) addAnswers() {
	v, own := r.Verdict, r.Clients
	failed := int64(0)
	for _, outcome := range r.Load.Outcomes {
		if outcome.Class == loadtest.Failed {
			failed += outcome.Count
		}
	}
	v.Require("request-failed", "no request failed", failed)
	v.Unresolved = r.Settled.Open
	v.Require("outcome-unresolved", "every unknown outcome was resolved", r.Settled.Open)
	v.Require("order-two-users", "no order was answered to two users", own.Shared)
	if r.Load.Elapsed >= time.Duration(r.Before.PaySeconds)*time.Second {
		r.Notes = append(r.Notes, "orders may have expired meanwhile, so only the audit can show how many are live")
		return
	}
	added := r.After.Total - r.Before.Total
	oversold := max(0, own.Live-r.Before.Stock-added)
	v.Duplicates, v.Oversold = max(v.Duplicates, own.Duplicates), max(v.Oversold, oversold)
	v.Require("user-limit", "no user has more live orders than the limit", own.Duplicates)
	v.Require("oversold", "no more units were sold than were on sale", oversold)
	if sold := r.Before.Stock + added - r.After.Stock; sold != own.Live {
		r.Notes = append(r.Notes, fmt.Sprintf("the shop sold %d units meanwhile, and these clients hold %d orders", sold, own.Live))
	}
}

// print writes the result for people.
func (r *result) print(w io.Writer) {
	placed := float64(r.Load.Count(loadtest.OpPlace, loadtest.Placed))
	fmt.Fprintf(w, "\n%s: %s requests in %s, %s/s; %s orders, %s/s; %s dropped; %s.\n", r.Scenario,
		humanize.Comma(r.Load.Requests), cli.Short(r.Load.Elapsed), cli.PerSecond(r.Load.PerSec), humanize.Comma(r.Clients.Orders),
		cli.PerSecond(placed/r.Load.Elapsed.Seconds()), humanize.Comma(r.Load.Dropped), r.Verdict.Summary())
	for _, broken := range r.Verdict.Broken() {
		fmt.Fprintf(w, "  BROKEN  %s\n", broken)
	}
	fmt.Fprintln(w)
	_ = cli.PrintOutcomes(w, &r.Load)
	fmt.Fprintf(w, "\n  voucher %s: %s units on sale, %s left; clients hold %s orders of %s users\n", r.After.ID,
		humanize.Comma(r.After.Total), humanize.Comma(r.After.Stock), humanize.Comma(r.Clients.Live), humanize.Comma(r.Clients.Holders))
	if r.Settled.Unknown > 0 {
		fmt.Fprintf(w, "  %d outcomes were unknown at first; %d were resolved\n", r.Settled.Unknown, r.Settled.Settled)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
	if r.Audited {
		fmt.Fprintf(w, "  checked the answers and the shop's audit (%d checks)\n", len(r.Verdict.Findings))
	} else {
		fmt.Fprintln(w, "  checked only the answers: without an admin's token, the shop was not audited")
	}
}
