package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// demoResult is the outcome of a demo.
type demoResult struct {
	OK       bool             `json:"ok"`
	Verdict  *verdict.Verdict `json:"verdict"`
	Backends string           `json:"backends"`
	Buyers   int64            `json:"buyers"`
	Stock    int64            `json:"stock"`
	Copies   int              `json:"duplicates_sent"` // how often each request was sent
	Sold     int64            `json:"sold"`            // live orders at the end

	Sale            loadtest.Report  `json:"sale"`
	SellingTime     time.Duration    `json:"selling_ns"` // from the opening to the last order
	OrdersPerSecond float64          `json:"orders_per_second"`
	Settled         loadtest.Settled `json:"settled"`

	Paid            int64         `json:"paid"`
	Cancelled       int64         `json:"cancelled"`
	Pending         int64         `json:"pending"`
	Resalable       int64         `json:"resalable"` // cancelled units for which a buyer was left
	Resold          int64         `json:"resold"`
	ResoldIn        time.Duration `json:"resold_in_ns"`
	ShortStock      int64         `json:"short_stock"`
	ShortPaid       int64         `json:"short_paid"`
	Expired         int64         `json:"expired"`
	ExpiredResold   int64         `json:"expired_resold"`
	ExpiredResoldIn time.Duration `json:"expired_resold_in_ns"`
}

// judge adds to the verdict what the demo itself expects.
func (r *demoResult) judge() {
	if r.SellingTime > 0 {
		r.OrdersPerSecond = float64(r.Sale.Count(loadtest.OpPlace, loadtest.Placed)) / r.SellingTime.Seconds()
	}
	v := r.Verdict
	v.RequireSold(max(0, min(r.Stock, r.Buyers)-r.Cancelled+r.Resalable-r.Sold))
	v.Require("oversold", "no more units were sold than were on sale", max(0, r.Sold-r.Stock))
	v.Require("not-resold", "every cancelled unit was sold again within two seconds", r.Resalable-r.Resold)
	v.Require("expired-not-resold", "every expired unit was sold again within two seconds", r.Expired-r.ExpiredResold)
	v.Require("request-failed", "no request failed", r.Sale.CountClass(loadtest.OpPlace, loadtest.Failed))
	r.OK = v.OK
}

// print writes the result for people: the conclusion first, then its reasons.
func (r *demoResult) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s of %s sold, %s.\n", humanize.Comma(r.Sold), humanize.Comma(r.Stock), r.Verdict.Summary())
	fmt.Fprintf(w, "\nThe sale: %s buyers for %s units, each sending its request %s (%s)\n\n",
		humanize.Comma(r.Buyers), humanize.Comma(r.Stock), times(r.Copies), r.Backends)
	_ = cli.PrintOutcomes(w, &r.Sale)
	fmt.Fprintf(w, "\n  %s requests in %s, %s/s; the last order after %s, %s orders/s\n",
		humanize.Comma(r.Sale.Requests), cli.Short(r.Sale.Elapsed), cli.PerSecond(r.Sale.PerSec), cli.Short(r.SellingTime), cli.PerSecond(r.OrdersPerSecond))
	if r.Settled.Unknown > 0 {
		fmt.Fprintf(w, "  %d outcomes were unknown at first; repeating the requests settled %d of them\n", r.Settled.Unknown, r.Settled.Settled)
	}

	fmt.Fprintf(w, "\nAfterwards\n\n  %s paid, %s cancelled, %s left to be paid; sold again: %s of %s cancelled units, in %s\n",
		humanize.Comma(r.Paid), humanize.Comma(r.Cancelled), humanize.Comma(r.Pending), humanize.Comma(r.Resold), humanize.Comma(r.Resalable), cli.Short(r.ResoldIn))
	fmt.Fprintf(w, "  %d units to be paid within a second: %d paid, %d expired; sold again: %d of %d expired units, in %s\n",
		r.ShortStock, r.ShortPaid, r.Expired, r.ExpiredResold, r.Expired, cli.Short(r.ExpiredResoldIn))
	fmt.Fprintf(w, "\nThe proof\n\n")
	r.Verdict.Print(w, false)
}

// times says in words how often a request is sent.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times at once", n)
}
