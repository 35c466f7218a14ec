package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// round has the results of our shop and of the peer.
type round [2]result

type table struct{ w io.Writer }

const layout = "%5v  %-5s %14s %12s %9s %8s %9s %9s  %s\n"

func newTable(w io.Writer) table {
	fmt.Fprintf(w, layout, "round", "who", "acknowledged/s", "durable/s", "waiting", "drained", "p50", "p99", "audit")
	return table{w}
}

func (t table) row(n int, who string, r result) {
	verdict := "good"
	if !r.good {
		verdict = "BAD"
	}
	fmt.Fprintf(t.w, layout, n, who, fmt.Sprintf("%.0f", r.acknowledged), fmt.Sprintf("%.0f", r.durable), fmt.Sprint(r.waiting),
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
