package ids

import (
	"fmt"
	"strconv"
	"time"

	"seckill/cmd/internal/report"
)

// sections returns the results as tables and charts.
func (r *Result) sections() (sections []report.Section) {
	if r.Refill != nil {
		sections = append(sections, r.Refill.section())
	}
	if r.Keys != nil {
		sections = append(sections, r.Keys.section())
	}
	if r.Step != nil {
		sections = append(sections, r.Step.section())
	}
	return sections
}

func (r *RefillResult) section() report.Section {
	table := [][]string{{"way", "ids/s at most", "waits", "p50 µs", "p99 µs", "p999 µs", "max µs"}}
	chart := report.Chart{Title: "The slowest call", Unit: "µs, logarithmic", Log: true}
	for _, run := range r.Runs {
		table = append(table, []string{run.Way, whole(run.Throughput), count(run.Waits),
			tenth(run.Overall.P50), tenth(run.Overall.P99), tenth(run.Overall.P999), whole(run.Overall.Max)})
		line := report.Series{Name: run.Way}
		for _, p := range run.Series {
			line.Points = append(line.Points, report.Point{At: millis(p.At), Value: p.Max})
		}
		chart.Series = append(chart.Series, line)
	}
	return report.Section{
		Title:  fmt.Sprintf("Taking ids from a store: %d ids/s, %d ids a load", r.Rate, r.Step),
		Charts: []report.Chart{chart}, Table: table,
	}
}

func (r *KeysResult) section() report.Section {
	table := [][]string{{"key", "rows/s", "page splits", "table MB", "secondary index MB"}}
	for _, run := range r.Runs {
		table = append(table, []string{run.Key, whole(run.RowsPerS), count(run.Splits),
			tenth(float64(run.TableBytes) / 1e6), tenth(float64(run.IndexBytes) / 1e6)})
	}
	return report.Section{Title: fmt.Sprintf("Primary keys: %d rows each, %s", r.Rows, r.Server), Table: table}
}

func (r *StepResult) section() report.Section {
	table := [][]string{{"step", "loads", "waits", "lost at a restart: at low load", "at worst", "at the end"}}
	chart := report.Chart{Title: "Step", Unit: "ids, logarithmic", Log: true}
	for _, run := range r.Runs {
		table = append(table, []string{run.Way, count(run.Loads), count(run.Waits), count(run.Quiet), count(run.Most), count(run.AtEnd)})
		line := report.Series{Name: run.Way}
		for _, p := range run.Series {
			line.Points = append(line.Points, report.Point{At: millis(p.At), Value: float64(p.Step)})
		}
		chart.Series = append(chart.Series, line)
	}
	return report.Section{
		Title:  fmt.Sprintf("The step of a segment: from %d to %d ids/s and back, a segment to last %s ms", r.Low, r.High, whole(r.Target)),
		Charts: []report.Chart{chart}, Table: table,
	}
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
func tenth(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
func count(n int64) string   { return strconv.FormatInt(n, 10) }
