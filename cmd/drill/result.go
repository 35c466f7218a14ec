package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// result is a drill that is over.
type result struct {
	Name    string           `json:"name"`
	Shows   string           `json:"shows"`
	Fears   string           `json:"fears"`
	Lock    string           `json:"lock"`
	Seed    int64            `json:"seed"`
	OK      bool             `json:"ok"`
	Skipped string           `json:"skipped,omitempty"` // why this machine cannot play it
	Wrong   []string         `json:"wrong,omitempty"`
	Before  []string         `json:"before,omitempty"` // what was wrong at earlier tries, see notShown
	Took    time.Duration    `json:"took_ns"`
	Pause   time.Duration    `json:"longest_pause_ns"` // the longest time without an accepted order
	Figures []figure         `json:"figures,omitempty"`
	Answers answers          `json:"answers"`
	Verdict *verdict.Verdict `json:"verdict,omitempty"` // nil: the drill did not get that far
	Control *result          `json:"control,omitempty"`
	Events  []event          `json:"events"`
	Slots   []loadtest.Slot  `json:"timeline"`

	guardOff bool // the shop was built without its guard
}

// notShown tells whether the drill failed although no order, unit or event has come to harm: on a machine that does much
// else, a fault may take effect too late to be seen.
func (r *result) notShown() bool { return !r.OK && r.Verdict != nil && r.Verdict.OK }

// judge draws the conclusions.
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
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s took %s, and may take %s", f.Name, short(f.Took), short(f.Limit)))
		}
	}
	r.OK = len(r.Wrong) == 0
}

// judgeControl turns the conclusions round: a shop without its guard has to be found out.
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
		r.Shows = "Without the guard: " + r.Verdict.Summary()
	}
}

// minOrders is the share of the units that must have been ordered for a verdict to mean something.
const minOrders = 0.9

// counts describes what the buyers were told and what the verdict found.
func (r *result) counts() string {
	if r.Verdict == nil {
		return ""
	}
	var b strings.Builder
	r.Answers.print(&b)
	r.Verdict.Print(&b, false)
	return b.String()
}

// print writes the counts and the conclusion.
func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s", r.counts())
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
