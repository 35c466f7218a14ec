package main

import (
	_ "embed"
	"errors"
	"html/template"
	"io"
	"os"
	"time"

	"seckill/cmd/internal/plot"
	"seckill/loadtest"
)

//go:embed page.html
var pageText string

// writePage writes the results as a page that needs nothing but itself.
func writePage(path string, results []*result) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return page(file, results)
}

func page(w io.Writer, results []*result) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"short": short, "seconds": func(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() },
		"throughput": (*result).throughput, "latency": (*result).latency, "counts": (*result).counts,
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Style": plot.Style, "Results": results})
}

// throughput draws what was answered over time, with the faults marked.
func (r *result) throughput() template.HTML {
	c := plot.Chart{Title: "Answers", Unit: "per second", Marks: r.marks(), Series: []plot.Series{
		plot.Over("orders accepted", r.Slots, func(s *loadtest.Slot) float64 { return float64(s.Accepted) / s.Width.Seconds() }),
		plot.Over("failed or left open", r.Slots, func(s *loadtest.Slot) float64 { return float64(s.Faults) / s.Width.Seconds() }),
		plot.Over("refused", r.Slots, func(s *loadtest.Slot) float64 { return float64(s.Refused) / s.Width.Seconds() }),
	}}
	return c.SVG()
}

// latency draws how long accepted orders took.
func (r *result) latency() template.HTML {
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	c := plot.Chart{Title: "Time to accept an order", Unit: "ms, logarithmic", Log: true, Marks: r.marks(), Series: []plot.Series{
		plot.Over("half within", r.Slots, func(s *loadtest.Slot) float64 { return milliseconds(s.AcceptedP50) }).Positive(),
		plot.Over("99 % within", r.Slots, func(s *loadtest.Slot) float64 { return milliseconds(s.AcceptedP99) }).Positive(),
	}}
	return c.SVG()
}

// marks are where something was broken or put right.
func (r *result) marks() (marks []plot.Mark) {
	for _, e := range r.Events {
		switch e.Kind {
		case fault:
			marks = append(marks, plot.Mark{At: e.At, Text: "✗"})
		case healed:
			marks = append(marks, plot.Mark{At: e.At, Text: "✓"})
		}
	}
	return marks
}
