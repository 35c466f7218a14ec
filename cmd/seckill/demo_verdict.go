package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/reconcile"
	"seckill/loadtest"
	"seckill/repository"
)

// demoVerdict is what the demo came to.
type demoVerdict struct {
	OK       bool     `json:"ok"`
	Broken   []string `json:"broken,omitempty"` // what does not hold, for people
	Backends string   `json:"backends"`

	Buyers int64 `json:"buyers"`
	Stock  int64 `json:"stock"`
	Copies int   `json:"duplicates_sent"` // how often each request was sent

	Sold            int64 `json:"sold"` // live orders at the end
	Oversold        int64 `json:"oversold"`
	Undersold       int64 `json:"undersold"`
	DuplicateOrders int64 `json:"duplicates"`
	Unknown         int64 `json:"unknown"` // requests that nobody knows the outcome of, after settling
	Events          int64 `json:"events"`
	Undelivered     int64 `json:"events_undelivered"`
	Effects         int64 `json:"effects"`

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

	Clients reconcile.Verdict `json:"clients"`
	Audit   repository.Audit  `json:"audit"`
}

// judge draws the conclusions from what was measured.
func (v *demoVerdict) judge() {
	t := v.Audit.Totals
	v.Events, v.Undelivered, v.Effects, v.Unknown = t.Events, t.Unsent, t.Effects, v.Clients.Open
	v.Oversold = max(0, v.Sold-v.Stock)
	v.Undersold = max(0, min(v.Stock, v.Buyers)-v.Cancelled+v.Resalable-v.Sold)
	if v.SellingTime > 0 {
		v.OrdersPerSecond = float64(v.Sale.Count(loadtest.OpPlace, loadtest.Placed)) / v.SellingTime.Seconds()
	}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			v.Broken = append(v.Broken, fmt.Sprintf(format, args...))
		}
	}
	check(v.Oversold == 0, "%d units oversold", v.Oversold)
	check(v.Undersold == 0, "%d units were not sold although buyers wanted them", v.Undersold)
	check(v.DuplicateOrders == 0, "%d orders beyond one a user", v.DuplicateOrders)
	check(v.Unknown == 0, "%d outcomes are unknown", v.Unknown)
	check(v.Resold == v.Resalable, "only %d of %d cancelled units were sold again within two seconds", v.Resold, v.Resalable)
	check(v.ExpiredResold == v.Expired, "only %d of %d expired units were sold again within two seconds", v.ExpiredResold, v.Expired)
	check(v.Sale.CountClass(loadtest.OpPlace, loadtest.Failed) == 0, "%d requests failed", v.Sale.CountClass(loadtest.OpPlace, loadtest.Failed))
	for _, f := range append(v.Clients.Findings, v.Audit.Findings...) {
		check(f.OK, "invariant %d, %q: broken %d times, such as by %v", f.Invariant, f.Check, f.Broken, f.Rows)
	}
	v.OK = len(v.Broken) == 0
}

// print writes the verdict for people: the conclusion first, then what it rests on.
func (v *demoVerdict) print(w io.Writer) {
	conclusion := "everything holds."
	if !v.OK {
		conclusion = "NOT EVERYTHING HOLDS."
	}
	fmt.Fprintf(w, "\n%s of %s sold, %d oversold, %d undersold, %d duplicates, %d unknown: %s\n",
		humanize.Comma(v.Sold), humanize.Comma(v.Stock), v.Oversold, v.Undersold, v.DuplicateOrders, v.Unknown, conclusion)
	for _, broken := range v.Broken {
		fmt.Fprintf(w, "  BROKEN  %s\n", broken)
	}
	fmt.Fprintf(w, "\nThe sale: %s buyers for %s units, each sending its request %s (%s)\n\n",
		humanize.Comma(v.Buyers), humanize.Comma(v.Stock), times(v.Copies), v.Backends)
	_ = cli.PrintOutcomes(w, &v.Sale)
	fmt.Fprintf(w, "\n  %s requests in %s, %s/s; the last order after %s, %s orders/s\n",
		humanize.Comma(v.Sale.Requests), cli.Short(v.Sale.Elapsed), cli.PerSecond(v.Sale.PerSec), cli.Short(v.SellingTime), cli.PerSecond(v.OrdersPerSecond))
	if v.Settled.Unknown > 0 {
		fmt.Fprintf(w, "  %d outcomes were unknown at first; repeating the requests settled %d of them\n", v.Settled.Unknown, v.Settled.Settled)
	}

	fmt.Fprintf(w, "\nAfterwards\n\n  %s paid, %s cancelled, %s left to be paid; sold again: %s of %s cancelled units, in %s\n",
		humanize.Comma(v.Paid), humanize.Comma(v.Cancelled), humanize.Comma(v.Pending), humanize.Comma(v.Resold), humanize.Comma(v.Resalable), cli.Short(v.ResoldIn))
	fmt.Fprintf(w, "  %d units to be paid within a second: %d paid, %d expired; sold again: %d of %d expired units, in %s\n",
		v.ShortStock, v.ShortPaid, v.Expired, v.ExpiredResold, v.Expired, cli.Short(v.ExpiredResoldIn))
	v.printProof(w)
}

// times says in words how often a request is sent.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times at once", n)
}

func (v *demoVerdict) printProof(w io.Writer) {
	orders, live := int64(0), int64(0)
	for _, s := range v.Clients.Sales {
		orders, live = orders+s.Orders, live+s.Live
	}
	t := v.Audit.Totals
	fmt.Fprintf(w, "\nThe proof\n\n")
	line := func(ok bool, format string, args ...any) {
		mark := "ok    "
		if !ok {
			mark = "BROKEN"
		}
		fmt.Fprintf(w, "  %s  %s\n", mark, fmt.Sprintf(format, args...))
	}
	line(v.Clients.OK, "clients were told of %s orders; the database holds %s, %s live and %s closed (%d checks)",
		humanize.Comma(v.Clients.Told), humanize.Comma(orders), humanize.Comma(live), humanize.Comma(orders-live), len(v.Clients.Findings))
	line(v.Audit.OK, "the audit finds every invariant over the whole database to hold (%d checks)", len(v.Audit.Findings))
	line(v.Undelivered == 0 && v.Effects == t.Paid, "%s events, %s of them delivered; %s paid orders, %s effects",
		humanize.Comma(v.Events), humanize.Comma(v.Events-v.Undelivered), humanize.Comma(t.Paid), humanize.Comma(v.Effects))
}
