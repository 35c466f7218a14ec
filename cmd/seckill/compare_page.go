package main

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"seckill/cmd/internal/plot"
	"seckill/loadtest"
)

//go:embed compare.html
var comparePage string

// page writes the result as a page that needs nothing but itself.
func (r *comparison) page(w io.Writer) error {
	t, err := template.New("compare").Parse(comparePage)
	if err != nil {
		return err
	}
	rows := r.table()
	return t.Execute(w, map[string]any{
		"Style": plot.Style, "Words": r.Words, "Verdict": r.verdict(), "OK": r.OK, "Broken": r.Broken, "Notes": r.Notes,
		"Head": rows[0], "Rows": rows[1:], "Legend": r.legend(), "Machine": r.Machine.String(),
		"Charts": []template.HTML{
			r.chart("Orders placed at full rate", "orders/s, logarithmic", func(s *loadtest.Slot) float64 { return float64(s.Accepted) / s.Width.Seconds() }),
			r.chart("Half of the accepted orders were answered within", "ms, logarithmic", func(s *loadtest.Slot) float64 { return milliseconds(s.AcceptedP50) }),
			r.chart("99 % of the accepted orders were answered within", "ms, logarithmic", func(s *loadtest.Slot) float64 { return milliseconds(s.AcceptedP99) }),
		},
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// chart draws a figure over time, a line for each combination's turn in the last round.
func (r *comparison) chart(title, unit string, figure func(*loadtest.Slot) float64) template.HTML {
	c := plot.Chart{Title: title, Unit: unit, Log: true}
	for _, t := range r.Turns {
		if t.Round != r.Rounds {
			continue
		}
		c.Series = append(c.Series, plot.Over(t.String(), t.Timeline, figure).Positive())
	}
	return c.SVG()
}
