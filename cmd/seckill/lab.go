package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"strconv"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/plot"
	"seckill/repository/ids/lab"
)

type labCmd struct {
	IDs labIDsCmd `cmd:"" name:"ids" help:"Measure on real servers why ids are made the way they are."`
}

type labIDsCmd struct {
	app.Servers `embed:"" group:"Servers"`
	Only        []string `enum:"refill,keys,step" default:"refill,keys,step" placeholder:"NAME,…" help:"Which experiments: ${enum}."`
	HTML        string   `name:"html" placeholder:"FILE" help:"Write a page with the tables and plots over time."`
	JSON        bool     `name:"json" help:"Print everything as one JSON object."`
}

func (labIDsCmd) Help() string {
	return `refill: an INCR for each id, a single buffer, a double buffer: what calls wait for, over time.
keys: what the primary key does to InnoDB: auto-increment, snowflake, UUIDv7, UUIDv4 as text and as bytes.
step: a segment's step that follows demand, against fixed ones, under a load that rises a hundredfold and falls again.

It takes about two minutes and all that the servers have. Give it a database of its own: it makes tables there.`
}

// Run measures and prints.
func (c *labIDsCmd) Run(ctx context.Context, out *output) (err error) {
	wanted := map[string]bool{}
	for _, name := range c.Only {
		wanted[name] = true
	}
	fmt.Fprintln(out.stderr, "measuring; this takes a while")
	result, err := app.RunIDLab(ctx, c.Servers, wanted, out.logger(app.Log{LogLevel: "warn"}))
	if err != nil {
		return err
	}
	if c.HTML != "" {
		file, err := os.Create(c.HTML)
		if err != nil {
			return err
		}
		if err := errors.Join(labPage(file, &result), file.Close()); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(out.stdout).Encode(result)
	}
	for _, section := range labSections(&result) {
		fmt.Fprintf(out.stdout, "%s\n\n", section.Title)
		t := newTable(0)
		for _, row := range section.Rows {
			t.row(row...)
		}
		t.print(out.stdout)
		fmt.Fprintln(out.stdout)
	}
	measuredOn := describeMachine()
	measuredOn.Database = result.Server
	fmt.Fprintln(out.stdout, measuredOn.String())
	return nil
}

// labSection is one experiment as people read it.
type labSection struct {
	Title  string
	Rows   [][]string // the first names the columns
	Charts []template.HTML
}

func labSections(r *app.IDLab) (sections []labSection) {
	if r.Refill != nil {
		sections = append(sections, refillSection(r.Refill))
	}
	if r.Keys != nil {
		sections = append(sections, keysSection(r.Keys))
	}
	if r.Step != nil {
		sections = append(sections, stepSection(r.Step))
	}
	return sections
}

func refillSection(r *lab.RefillResult) labSection {
	s := labSection{
		Title: fmt.Sprintf("Getting ids out of a store: at %d ids/s, with a step of %d", r.Rate, r.Step),
		Rows:  [][]string{{"way", "ids/s at most", "waits", "p50 µs", "p99 µs", "p999 µs", "max µs"}},
	}
	c := plot.Chart{Title: "The slowest call", Unit: "µs, logarithmic", Log: true}
	for _, run := range r.Runs {
		s.Rows = append(s.Rows, []string{run.Way, whole(run.Throughput), strconv.FormatInt(run.Waits, 10),
			tenth(run.Overall.P50), tenth(run.Overall.P99), tenth(run.Overall.P999), whole(run.Overall.Max)})
		line := plot.Series{Name: run.Way}
		for _, p := range run.Series {
			line.Points = append(line.Points, plot.Point{At: at(p.At), Value: p.Max})
		}
		c.Series = append(c.Series, line)
	}
	s.Charts = append(s.Charts, c.SVG())
	return s
}

func keysSection(r *lab.KeysResult) labSection {
	s := labSection{
		Title: fmt.Sprintf("Primary keys: %d rows each, %s", r.Rows, r.Server),
		Rows:  [][]string{{"key", "rows/s", "page splits", "table MB", "secondary index MB"}},
	}
	for _, run := range r.Runs {
		s.Rows = append(s.Rows, []string{run.Key, whole(run.RowsPerS), strconv.FormatInt(run.Splits, 10),
			tenth(float64(run.TableBytes) / 1e6), tenth(float64(run.IndexBytes) / 1e6)})
	}
	return s
}

func stepSection(r *lab.StepResult) labSection {
	s := labSection{
		Title: fmt.Sprintf("The step of a segment: from %d to %d ids/s and back, a segment to last %s ms", r.Low, r.High, whole(r.Target)),
		Rows:  [][]string{{"step", "loads", "waits", "lost at a restart: in quiet", "at worst", "at the end"}},
	}
	c := plot.Chart{Title: "Step", Unit: "ids, logarithmic", Log: true}
	for _, run := range r.Runs {
		s.Rows = append(s.Rows, []string{run.Way, strconv.FormatInt(run.Loads, 10), strconv.FormatInt(run.Waits, 10),
			strconv.FormatInt(run.Quiet, 10), strconv.FormatInt(run.Most, 10), strconv.FormatInt(run.AtEnd, 10)})
		line := plot.Series{Name: run.Way}
		for _, p := range run.Series {
			line.Points = append(line.Points, plot.Point{At: at(p.At), Value: float64(p.Step)})
		}
		c.Series = append(c.Series, line)
	}
	s.Charts = append(s.Charts, c.SVG())
	return s
}

func whole(v float64) string      { return strconv.FormatFloat(v, 'f', 0, 64) }
func tenth(v float64) string      { return strconv.FormatFloat(v, 'f', 1, 64) }
func at(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// labPage writes a page that needs nothing but itself.
func labPage(w io.Writer, r *app.IDLab) error {
	t, err := template.New("lab").Parse(labTemplate)
	if err != nil {
		return err
	}
	measuredOn := describeMachine()
	measuredOn.Database = r.Server
	return t.Execute(w, map[string]any{"Style": plot.Style, "Sections": labSections(r), "Machine": measuredOn.String()})
}

const labTemplate = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>seckill lab ids</title>
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.3rem .7rem;text-align:right}
th:first-child,td:first-child{text-align:left}{{.Style}}</style></head><body>
<h1>Why ids are made the way they are</h1>
{{range .Sections}}<h2>{{.Title}}</h2><table>{{range $i, $row := .Rows}}<tr>{{range $row}}{{if eq $i 0}}<th scope="col">{{.}}</th>{{else}}<td>{{.}}</td>{{end}}{{end}}</tr>{{end}}</table>
{{range .Charts}}<p>{{.}}</p>{{end}}{{end}}
<h2>Measured on</h2><p>{{.Machine}}</p></body></html>
`
