// Package plot draws lines over time as SVG that stands in a page by itself: no script, no network, and colours that
// follow the reader's choice of light or dark.
package plot

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// Point is a value at a time.
type Point struct {
	At    time.Duration
	Value float64
}

// Series is one line.
type Series struct {
	Name   string
	Points []Point // in order of time
}

// Mark is a moment worth knowing, such as that of a fault.
type Mark struct {
	At   time.Duration
	Text string
}

// Chart is a picture of some series over the same time.
type Chart struct {
	Title  string
	Unit   string // of the values
	Log    bool   // the scale of the values is logarithmic, for series that differ by orders of magnitude
	Series []Series
	Marks  []Mark
}

// The picture's measures, in units of its own.
const (
	width, height            = 760, 300
	left, right, top, bottom = 64, 12, 30, 34
)

// Style is what a page with charts needs in its style element. Colours are those of Okabe and Ito, which people with
// any kind of colour vision can tell apart.
const Style = template.CSS(`
.chart{width:100%;height:auto;font:12px system-ui,sans-serif;color:inherit}
.chart text{fill:currentColor}.chart .title{font-weight:600;font-size:13px}
.chart .axis{stroke:currentColor;stroke-opacity:.35}.chart .grid{stroke:currentColor;stroke-opacity:.12}
.chart .line{fill:none;stroke-width:2}.chart .mark{stroke:currentColor;stroke-dasharray:4 3;stroke-opacity:.7}
.chart .s0{stroke:#0072b2;fill:#0072b2}.chart .s1{stroke:#d55e00;fill:#d55e00}.chart .s2{stroke:#009e73;fill:#009e73}
.chart .s3{stroke:#cc79a7;fill:#cc79a7}.chart .s4{stroke:#e69f00;fill:#e69f00}.chart .s5{stroke:#56b4e9;fill:#56b4e9}
.chart .line{fill:none}`)

// colours is how many series the style tells apart.
const colours = 6

// SVG draws the chart. Names and titles are escaped.
func (c *Chart) SVG() template.HTML {
	var b strings.Builder
	s := c.scale()
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height+c.legendHeight(), esc(c.Title))
	fmt.Fprintf(&b, `<text class="title" x="%d" y="16">%s</text>`, left, esc(c.Title+" ("+c.Unit+")"))
	c.axes(&b, s)
	for i, series := range c.Series {
		c.line(&b, s, i, series)
	}
	for _, m := range c.Marks {
		x := s.x(m.At)
		fmt.Fprintf(&b, `<line class="mark" x1="%.1f" y1="%d" x2="%.1f" y2="%d"><title>%s</title></line>`, x, top, x, height-bottom, esc(m.Text))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, x+4, top+10, esc(m.Text))
	}
	c.legend(&b)
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // every text in it was escaped above
}

func esc(s string) string { return template.HTMLEscapeString(s) }

// line draws one series, a dot where it is a single point.
func (c *Chart) line(b *strings.Builder, s scale, i int, series Series) {
	if len(series.Points) == 1 {
		p := series.Points[0]
		fmt.Fprintf(b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, i%colours, s.x(p.At), s.y(p.Value), esc(series.Name))
		return
	}
	fmt.Fprintf(b, `<polyline class="line s%d" points="`, i%colours)
	for _, p := range series.Points {
		fmt.Fprintf(b, "%.1f,%.1f ", s.x(p.At), s.y(p.Value))
	}
	fmt.Fprintf(b, `"><title>%s</title></polyline>`, esc(series.Name))
}

func (c *Chart) axes(b *strings.Builder, s scale) {
	for _, v := range s.ticks() {
		y := s.y(v)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, y, width-right, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-6, y+4, number(v))
	}
	step := niceStep(s.end.Seconds() / 8)
	for t := 0.0; t <= s.end.Seconds()+step/1000; t += step {
		x := s.x(time.Duration(t * float64(time.Second)))
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s s</text>`, x, height-bottom+18, number(t))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, height-bottom, width-right, height-bottom)
}

// legendRow is the height of a line of the legend; two series share one.
const legendRow = 18

func (c *Chart) legendHeight() int { return (len(c.Series) + 1) / 2 * legendRow }

func (c *Chart) legend(b *strings.Builder) {
	for i, series := range c.Series {
		x, y := left+i%2*(width-left)/2, height+i/2*legendRow
		fmt.Fprintf(b, `<rect class="s%d" x="%d" y="%d" width="14" height="4"/>`, i%colours, x, y+2)
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, x+20, y+9, esc(series.Name))
	}
}

// number writes a tick's label.
func number(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", round(v/1e6))
	case v >= 1e4:
		return fmt.Sprintf("%gk", round(v/1e3))
	}
	return fmt.Sprintf("%g", round(v))
}

func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }
