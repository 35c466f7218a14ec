package compare

import (
	"slices"
	"time"

	"seckill/cmd/internal/report"
	"seckill/loadtest"
)

// page returns the result as a page.
func (r *comparison) page() *report.Page {
	var warnings []string
	if len(r.Notes) > 0 {
		warnings = append(warnings, "Warnings of the shop:")
	}
	return &report.Page{Title: "seckill: one sale, several ways", Sections: []report.Section{
		{Text: append(slices.Clone(r.Ratios), r.verdict()), Problems: r.Broken},
		{Title: "Figures", Table: r.table(), Notes: []string{r.legend()}},
		{Title: "Over time, in the last round", Charts: []report.Chart{
			r.chart("Orders placed at full rate", "orders/s, logarithmic", report.Rate(func(s *loadtest.Slot) int64 { return s.Accepted })),
			r.chart("Median latency of accepted orders", "ms, logarithmic", report.Millis(func(s *loadtest.Slot) time.Duration { return s.AcceptedP50 })),
			r.chart("p99 latency of accepted orders", "ms, logarithmic", report.Millis(func(s *loadtest.Slot) time.Duration { return s.AcceptedP99 })),
		}},
		{Title: "Measured on", Notes: append(append([]string{r.measuredOn()}, warnings...), r.Notes...)},
	}}
}

// chart draws a figure over time, with a line for each combination in the last round.
func (r *comparison) chart(title, unit string, figure func(*loadtest.Slot) float64) report.Chart {
	c := report.Chart{Title: title, Unit: unit, Log: true}
	for _, t := range r.Trials {
		if t.Round == r.Rounds {
			c.Series = append(c.Series, report.Timeline(t.String(), t.Timeline, figure))
		}
	}
	return c
}
