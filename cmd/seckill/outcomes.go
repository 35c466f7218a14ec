package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/loadtest"
)

// meanings explain outcomes in a table.
var meanings = map[loadtest.Outcome]string{
	loadtest.Placed:      "a new order, durable",
	loadtest.Replayed:    "the order that an earlier copy of the request placed",
	loadtest.Done:        "as asked",
	"sold-out":           "no unit was left",
	"in-progress":        "another copy of the request was being served",
	"already-ordered":    "the user has an order already",
	"sale-not-started":   "too early",
	"sale-ended":         "too late",
	"busy":               "too many were waiting; nothing was done",
	"unavailable":        "a server was away; nothing was done",
	"rate-limited":       "too many requests; nothing was done",
	"outcome-unknown":    "to be settled by the same request again",
	loadtest.Timeout:     "no answer in time; to be settled by the same request again",
	loadtest.Broken:      "the connection broke; to be settled by the same request again",
	loadtest.Gateway:     "something in between answered; to be settled by the same request again",
	loadtest.Unreachable: "no connection; nothing was sent",
	loadtest.Unexpected:  "an answer that the API does not have",
}

// printOutcomes writes a line for each kind of answer.
func printOutcomes(w io.Writer, r *loadtest.Report) {
	t := newTable(0, 4)
	t.row("answer", "requests", "p50", "p99", "")
	for _, o := range r.Outcomes {
		name := string(o.Outcome)
		if o.Op != loadtest.OpPlace {
			name = string(o.Op) + ": " + name
		}
		t.row(name, humanize.Comma(o.Count), short(o.P50), short(o.P99), meanings[o.Outcome])
	}
	t.print(w)
}

// times says how often in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times at once", n)
}

// short rounds a duration to three digits or so.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d >= 100*unit:
			return d.Round(unit).String()
		case d >= 10*unit:
			return d.Round(unit / 10).String()
		case d >= unit:
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// perSecond rounds a rate to what is worth reading.
func perSecond(rate float64) string {
	if rate < 100 {
		return fmt.Sprintf("%.1f", rate)
	}
	return humanize.Comma(int64(rate + 0.5))
}
