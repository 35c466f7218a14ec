package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/report"
	"seckill/loadtest"
)

// table prints a line for each drill.
func table(w io.Writer, results []*result) {
	fmt.Fprintln(w)
	_ = cli.PrintTable(w, rows(results)) // an error of the terminal is visible there
}

// rows returns a table of the results, for text and page.
func rows(results []*result) [][]string {
	all := [][]string{{"drill", "lock", "orders", "unknown", "lost", "over", "under", "dupl.", "ids", "events", "effects", "longest pause", "recovery", "verdict"}}
	for _, r := range results {
		all = append(all, r.row(r.Name))
		if r.Control != nil {
			all = append(all, r.Control.row("… guard off"))
		}
	}
	return all
}

func (r *result) row(name string) []string {
	recovery, conclusion := "–", r.conclusion()
	if len(r.Figures) > 0 {
		recovery = cli.Short(r.Figures[0].Took)
	}
	switch {
	case r.OK && r.guardOff:
		conclusion = "damage found"
	case r.OK && r.Skipped != "":
		conclusion = "SKIPPED"
	}
	row := []string{name, r.Lock}
	if v := r.Verdict; v != nil {
		for _, n := range []int64{
			v.Acknowledged, v.Unresolved, v.Lost, v.Oversold, v.Undersold, v.Duplicates, v.DuplicateIDs, v.Events, v.Effects,
		} {
			row = append(row, humanize.Comma(n))
		}
	} else {
		row = append(row, "–", "–", "–", "–", "–", "–", "–", "–", "–")
	}
	return append(row, cli.Short(r.Pause), recovery, conclusion)
}

// page returns a page with the results.
func page(results []*result) *report.Page {
	p := &report.Page{Title: "Failover drills", Sections: []report.Section{{Table: rows(results)}}}
	for _, r := range results {
		p.Sections = append(p.Sections, r.sections(fmt.Sprintf("%s --lock %s --seed %d", r.Name, r.Lock, r.Seed), false)...)
		if r.Control != nil {
			p.Sections = append(p.Sections, r.Control.sections("The same without the guard", true)...)
		}
	}
	return p
}

// sections shows a drill: charts, what the verdict counts, measured times and events.
func (r *result) sections(title string, sub bool) []report.Section {
	main := report.Section{Title: title, Sub: sub, Text: []string{r.Expectation}, Problems: r.Wrong, Charts: []report.Chart{r.throughput(), r.latency()}}
	if r.Risk != "" {
		main.Text = append(main.Text, "Risk: "+r.Risk)
	}
	times := report.Section{Table: [][]string{{"time", "took", "limit"}}}
	for _, f := range r.Figures {
		limit := ""
		if f.Limit > 0 {
			limit = cli.Short(f.Limit)
		}
		times.Table = append(times.Table, []string{f.Name, cli.Short(f.Took), limit})
	}
	events := report.Section{Table: [][]string{{"at", "event"}}, Notes: []string{"✗ something was broken, ✓ something was repaired"}}
	for _, e := range r.Events {
		events.Table = append(events.Table, []string{fmt.Sprintf("%.1f s", e.At.Seconds()), e.mark() + e.Text})
	}
	if r.Verdict != nil {
		times.Text = append(r.Answers.lines(), r.Verdict.Lines()...)
	}
	return []report.Section{main, times, events}
}

// throughput draws the answers over time.
func (r *result) throughput() report.Chart {
	return report.Chart{Title: "Answers", Unit: "per second", Marks: r.marks(), Series: []report.Series{
		report.Timeline("orders accepted", r.Slots, report.Rate(func(s *loadtest.Slot) int64 { return s.Accepted })),
		report.Timeline("failed or unknown", r.Slots, report.Rate(func(s *loadtest.Slot) int64 { return s.Faults })),
		report.Timeline("refused", r.Slots, report.Rate(func(s *loadtest.Slot) int64 { return s.Refused })),
	}}
}

// latency draws the latency of accepted orders.
func (r *result) latency() report.Chart {
	return report.Chart{Title: "Latency of accepted orders", Unit: "ms, logarithmic", Log: true, Marks: r.marks(), Series: []report.Series{
		report.Timeline("p50", r.Slots, report.Millis(func(s *loadtest.Slot) time.Duration { return s.AcceptedP50 })),
		report.Timeline("p99", r.Slots, report.Millis(func(s *loadtest.Slot) time.Duration { return s.AcceptedP99 })),
	}}
}

// marks are the moments of faults and repairs.
func (r *result) marks() (marks []report.Mark) {
	for _, e := range r.Events {
		if e.Kind != noted {
			marks = append(marks, report.Mark{At: e.At, Text: e.mark()[:len("✗")]})
		}
	}
	return marks
}
