package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
	"seckill/repository"
)

// answers count what the buyers of a drill were told.
type answers struct {
	Requests int64 `json:"requests"`
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"`
	Failed   int64 `json:"failed"`   // the shop turned them away or was not reached: nothing was done
	Internal int64 `json:"internal"` // answers that the API does not have
	Dropped  int64 `json:"dropped"`  // arrivals for which this machine had no free client

	Repeated      int64 `json:"repeated,omitempty"`       // failed requests that were sent once more
	RepeatsFailed int64 `json:"repeats_failed,omitempty"` // of them, those that failed again
}

func countAnswers(outcomes map[loadtest.Outcome]int64) (a answers) {
	for outcome, n := range outcomes {
		a.Requests += n
		switch class := outcome.Class(); {
		case outcome == "internal" || outcome == loadtest.Unexpected:
			a.Internal += n
		case turnedAway(outcome), class == loadtest.Failed:
			a.Failed += n
		case class == loadtest.Refused:
			a.Refused += n
		case class == loadtest.Accepted:
			a.Accepted += n
		}
	}
	return a
}

// judge checks what came of the orders. No request may be under way.
func (b *buyers) judge(ctx context.Context, db *repository.DB) (*verdict.Verdict, answers, error) {
	v, err := verdict.Check(ctx, db, b.claims, verdict.Options{Settled: true, Complete: true})
	if err != nil {
		return nil, answers{}, err
	}
	a := countAnswers(v.Answers)
	a.Dropped, a.Repeated, a.RepeatsFailed = b.recorder.Report().Dropped, b.repeated.Load(), b.repeatsFailed.Load()
	a.require(v)
	v.RequireSold(b.voucher.Stock)
	return v, a, nil
}

// require adds the checks of the answers to the verdict.
func (a *answers) require(v *verdict.Verdict) {
	v.Require("answer-internal", "every answer is one that the API has", a.Internal)
	v.Require("repeat-failed", "no request failed twice in a row", a.RepeatsFailed)
}

// lines returns the answers as lines of text.
func (a *answers) lines() []string {
	n := humanize.Comma
	lines := []string{fmt.Sprintf("answers %s requests: %s accepted, %s refused, %s failed", n(a.Requests), n(a.Accepted), n(a.Refused), n(a.Failed+a.Internal))}
	if a.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("        %s more arrivals found no free client on this machine", n(a.Dropped)))
	}
	if a.Repeated > 0 {
		lines = append(lines, fmt.Sprintf("        %s failed and were repeated once; %s of them failed again", n(a.Repeated), n(a.RepeatsFailed)))
	}
	return lines
}
