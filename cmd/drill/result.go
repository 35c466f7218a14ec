package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/loadtest"
)

// result is a drill that is over.
type result struct {
	Name    string          `json:"name"`
	Shows   string          `json:"shows"`
	Fears   string          `json:"fears"`
	Lock    string          `json:"lock"`
	Seed    int64           `json:"seed"`
	OK      bool            `json:"ok"`
	Skipped string          `json:"skipped,omitempty"` // why this machine cannot play it
	Wrong   []string        `json:"wrong,omitempty"`
	Before  []string        `json:"before,omitempty"` // what was wrong at earlier tries, see notShown
	Took    time.Duration   `json:"took_ns"`
	Pause   time.Duration   `json:"longest_pause_ns"` // the longest time without an accepted order
	Figures []figure        `json:"figures,omitempty"`
	Ledger  *ledger         `json:"ledger,omitempty"` // nil: the drill did not get that far
	Control *result         `json:"control,omitempty"`
	Events  []event         `json:"events"`
	Slots   []loadtest.Slot `json:"timeline"`

	guardOff bool // the shop was built without its guard
}

// notShown tells whether the drill failed although no order, unit or event has come to harm: on a machine that does much
// else, a fault may take effect too late to be seen.
func (r *result) notShown() bool { return !r.OK && r.Ledger != nil && len(r.Ledger.defects()) == 0 }

// judge draws the conclusions.
func (r *result) judge(failed error, least int64) {
	if failed != nil {
		r.Wrong = append(r.Wrong, failed.Error())
	}
	if r.Ledger != nil {
		r.Wrong = append(r.Wrong, r.Ledger.defects()...)
		if r.Ledger.Accepted < least {
			r.Wrong = append(r.Wrong, fmt.Sprintf("only %d orders were placed, of %d that a verdict needs", r.Ledger.Accepted, least))
		}
	}
	for _, f := range r.Figures {
		if f.Judged && f.over() {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s took %s, and may take %s", f.Name, short(f.Took), short(f.Limit)))
		}
	}
	r.OK = len(r.Wrong) == 0
}

// judgeControl turns the conclusions round: a shop without its guard has to be found out.
func (r *result) judgeControl(failed error) {
	r.judge(nil, 0)
	found := r.Wrong
	r.Wrong = nil
	switch {
	case failed != nil:
		r.Wrong = append(r.Wrong, failed.Error())
	case r.Ledger == nil || r.Ledger.Oversold == 0 && r.Ledger.Duplicates == 0:
		r.Wrong = append(r.Wrong, "a shop without its guard neither oversold nor sold twice to a user: this drill cannot fail")
	}
	r.OK = len(r.Wrong) == 0
	if r.OK {
		r.Shows = "without the guard: " + strings.Join(found, "; ")
	}
}

// print writes the ledger and the conclusion.
func (r *result) print(w io.Writer) {
	if g := r.Ledger; g != nil {
		n := humanize.Comma
		fmt.Fprintf(w, "\n  buyers  %s requests: %s orders accepted, %s refused, %s failed; %s left open, %s of them settled\n",
			n(g.Sent), n(g.Accepted), n(g.Refused), n(g.Failed+g.Internal), n(g.Unknown), n(g.Settled))
		if g.Dropped > 0 {
			fmt.Fprintf(w, "          %s arrivals more found no client free here\n", n(g.Dropped))
		}
		if g.Repeated > 0 {
			fmt.Fprintf(w, "          %s failed and were repeated once; %s of these failed again\n", n(g.Repeated), n(g.RepeatsFailed))
		}
		fmt.Fprintf(w, "  orders  lost %d, oversold %d, undersold %d, duplicates %d, ids twice %d\n", g.Lost, g.Oversold, g.Undersold, g.Duplicates, g.IDsTwice)
		fmt.Fprintf(w, "  events  %s, not sent %d; effects %s, missing %d, twice %d\n", n(g.Events), g.Unsent, n(g.Effects), g.WithoutEffect, g.EffectsTwice)
		fmt.Fprintf(w, "  audit   %d checks, %d broken\n", g.Checks, len(g.Findings))
		for _, f := range g.Findings {
			fmt.Fprintf(w, "          invariant %d, %s: %d, such as %v\n", f.Invariant, f.Check, f.Broken, first(f.Rows))
		}
	}
	fmt.Fprintf(w, "  times   longest without an order %s", short(r.Pause))
	for _, f := range r.Figures {
		fmt.Fprintf(w, "; %s %s", f.Name, short(f.Took))
		if f.over() {
			fmt.Fprintf(w, " (MORE THAN %s)", short(f.Limit))
		}
	}
	fmt.Fprintln(w)
	for _, wrong := range r.Wrong {
		fmt.Fprintf(w, "  WRONG   %s\n", wrong)
	}
	verdict := "passed"
	switch {
	case !r.OK:
		verdict = "FAILED"
	case r.Skipped != "":
		verdict = "SKIPPED: " + r.Skipped
	case r.guardOff:
		verdict = "passed, since the damage was found"
	}
	fmt.Fprintf(w, "\n  %s --lock %s --seed %d: %s, in %s\n", r.Name, r.Lock, r.Seed, verdict, short(r.Took))
}

// first is a row to show, if there is one.
func first(rows []map[string]any) any {
	if len(rows) == 0 {
		return "none"
	}
	return rows[0]
}
