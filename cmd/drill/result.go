package main

import (
	"fmt"
	"io"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// result is the outcome of a drill.
type result struct {
	Name        string           `json:"name"`
	Expectation string           `json:"expectation"`
	Risk        string           `json:"risk"`
	Lock        string           `json:"lock"`
	Seed        int64            `json:"seed"`
	OK          bool             `json:"ok"`
	Skipped     string           `json:"skipped,omitempty"` // why this machine cannot run it
	Wrong       []string         `json:"wrong,omitempty"`
	Before      []string         `json:"before,omitempty"` // what was wrong in earlier tries, see notShown
	Took        time.Duration    `json:"took_ns"`
	Pause       time.Duration    `json:"longest_pause_ns"` // the longest time without an accepted order
	Figures     []figure         `json:"figures,omitempty"`
	Answers     answers          `json:"answers"`
	Verdict     *verdict.Verdict `json:"verdict,omitempty"` // nil: the drill did not get that far
	Control     *result          `json:"control,omitempty"`
	Events      []event          `json:"events"`
	Slots       []loadtest.Slot  `json:"timeline"`

	guardOff bool // the shop was built without its guard
}

func newResult(t drillRun, seed int64) *result {
	return &result{Name: t.name, Expectation: t.expectation, Risk: t.risk, Lock: t.lock, Seed: seed}
}

// notShown reports whether the drill failed although nothing is wrong with the orders: on a busy machine a fault may take
// effect too late to be seen.
func (r *result) notShown() bool { return !r.OK && r.Verdict != nil && r.Verdict.OK }

// judge decides whether the drill passed. failed is the error of its script, least the number of orders that it needs.
func (r *result) judge(failed error, least int64) {
	if failed != nil {
		r.Wrong = append(r.Wrong, failed.Error())
	}
	if r.Verdict != nil {
		r.Wrong = append(r.Wrong, r.Verdict.Broken()...)
		if r.Verdict.Acknowledged < least {
			r.Wrong = append(r.Wrong, fmt.Sprintf("only %d orders were placed, of %d that a verdict needs", r.Verdict.Acknowledged, least))
		}
	}
	for _, f := range r.Figures {
		if f.Judged && f.over() {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s took %s, and may take %s", f.Name, cli.Short(f.Took), cli.Short(f.Limit)))
		}
	}
	r.OK = len(r.Wrong) == 0
}

// judgeControl decides whether the verdict has found the damage that a shop without its guard does.
func (r *result) judgeControl(failed error) {
	r.Wrong = nil
	switch {
	case failed != nil:
		r.Wrong = append(r.Wrong, failed.Error())
	case r.Verdict == nil || r.Verdict.Oversold == 0 && r.Verdict.Duplicates == 0:
		r.Wrong = append(r.Wrong, "a shop without its guard neither oversold nor sold twice to a user: this drill cannot fail")
	}
	r.OK = len(r.Wrong) == 0
	if r.OK {
		r.Expectation = "Without the guard: " + r.Verdict.Summary()
	}
}

// minOrders is the share of the units that must have been ordered for a verdict to mean something.
const minOrders = 0.9

// print writes the counts and the conclusion.
func (r *result) print(w io.Writer) {
	fmt.Fprintln(w)
	if r.Verdict != nil {
		for _, line := range r.Answers.lines() {
			fmt.Fprintf(w, "  %s\n", line)
		}
		r.Verdict.Print(w, false)
	}
	fmt.Fprintf(w, "  times   longest without an order %s", cli.Short(r.Pause))
	for _, f := range r.Figures {
		fmt.Fprintf(w, "; %s %s", f.Name, cli.Short(f.Took))
		if f.over() {
			fmt.Fprintf(w, " (MORE THAN %s)", cli.Short(f.Limit))
		}
	}
	fmt.Fprintln(w)
	for _, wrong := range r.Wrong {
		fmt.Fprintf(w, "  WRONG   %s\n", wrong)
	}
	fmt.Fprintf(w, "\n  %s --lock %s --seed %d: %s, in %s\n", r.Name, r.Lock, r.Seed, r.conclusion(), cli.Short(r.Took))
}

func (r *result) conclusion() string {
	switch {
	case !r.OK:
		return "FAILED"
	case r.Skipped != "":
		return "SKIPPED: " + r.Skipped
	case r.guardOff:
		return "passed, since the damage was found"
	}
	return "passed"
}
