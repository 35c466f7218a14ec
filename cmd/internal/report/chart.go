package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"seckill/loadtest"
)

// Point is a value at a time since the beginning of a run.
type Point struct {
	At    time.Duration
	Value float64
}

// Series is one line of a chart.
type Series struct {
	Name   string
	Points []Point // sorted by time
}

// Mark is a vertical line at the moment of an event, such as a fault.
type Mark struct {
	At   time.Duration
	Text string
}

// Chart draws series over the same time. A logarithmic chart leaves out values that are not positive.
type Chart struct {
	Title  string
	Unit   string // of the values
	Log    bool   // logarithmic values, for series that differ by orders of magnitude
	Series []Series
	Marks  []Mark
}

// Timeline returns a series of one figure of a load's timeline. It leaves out a last slot of less than half a width.
func Timeline(name string, slots []loadtest.Slot, figure func(*loadtest.Slot) float64) Series {
	line := Series{Name: name}
	for i := range slots {
		if s := &slots[i]; s.Width > slots[0].Width/2 {
			line.Points = append(line.Points, Point{At: s.At + s.Width/2, Value: figure(s)})
		}
	}
	return line
}

// Rate returns a figure for Timeline: a count per second.
func Rate(count func(*loadtest.Slot) int64) func(*loadtest.Slot) float64 {
	return func(s *loadtest.Slot) float64 { return float64(count(s)) / s.Width.Seconds() }
}

// Millis returns a figure for Timeline: a duration in milliseconds.
func Millis(d func(*loadtest.Slot) time.Duration) func(*loadtest.Slot) float64 {
	return func(s *loadtest.Slot) float64 { return float64(d(s)) / float64(time.Millisecond) }
}

// Size and margins of the picture, in SVG units.
const (
	width, height            = 760, 300
	left, right, top, bottom = 64, 12, 30, 34
	legendRow                = 18 // two series share a row of the legend
	colours                  = 6  // that the style sheet tells apart
)

// SVG draws the chart without scripts. It escapes names and titles.
func (c *Chart) SVG() template.HTML {
	var b strings.Builder
	s := c.scale()
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height+(len(c.Series)+1)/2*legendRow, escape(c.Title))
	fmt.Fprintf(&b, `<text class="title" x="%d" y="16">%s</text>`, left, escape(c.Title+" ("+c.Unit+")"))
	drawAxes(&b, s)
	for i, series := range c.Series {
		c.drawLine(&b, s, i, series)
		drawLegend(&b, i, series.Name)
	}
	for _, m := range c.Marks {
		x := s.x(m.At)
		fmt.Fprintf(&b, `<line class="mark" x1="%.1f" y1="%d" x2="%.1f" y2="%d"><title>%s</title></line>`, x, top, x, height-bottom, escape(m.Text))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, x+4, top+10, escape(m.Text))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all text in it was escaped above
}

func escape(s string) string { return template.HTMLEscapeString(s) }

// drawLine draws one series; a single point becomes a dot.
func (c *Chart) drawLine(b *strings.Builder, s scale, i int, series Series) {
	var points []string
	for _, p := range series.Points {
		if !c.Log || p.Value > 0 {
			points = append(points, fmt.Sprintf("%.1f,%.1f", s.x(p.At), s.y(p.Value)))
		}
	}
	if len(points) == 1 {
		x, y, _ := strings.Cut(points[0], ",")
		fmt.Fprintf(b, `<circle class="s%d" cx="%s" cy="%s" r="3"><title>%s</title></circle>`, i%colours, x, y, escape(series.Name))
		return
	}
	fmt.Fprintf(b, `<polyline class="line s%d" points="%s"><title>%s</title></polyline>`, i%colours, strings.Join(points, " "), escape(series.Name))
}

func drawAxes(b *strings.Builder, s scale) {
	for _, v := range s.ticks() {
		y := s.y(v)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, y, width-right, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-6, y+4, tickLabel(v))
	}
	step := niceStep(s.end.Seconds() / 8)
	for t := 0.0; t <= s.end.Seconds()+step/1000; t += step {
		x := s.x(time.Duration(t * float64(time.Second)))
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s s</text>`, x, height-bottom+18, tickLabel(t))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, height-bottom, width-right, height-bottom)
}

func drawLegend(b *strings.Builder, i int, name string) {
	x, y := left+i%2*(width-left)/2, height+i/2*legendRow
	fmt.Fprintf(b, `<rect class="s%d" x="%d" y="%d" width="14" height="4"/>`, i%colours, x, y+2)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, x+20, y+9, escape(name))
}

// scale maps times and values to coordinates.
type scale struct {
	end       time.Duration
	low, high float64 // of the values; logarithms of them if log
	log       bool
}

func (c *Chart) scale() scale {
	s := scale{end: time.Second, log: c.Log}
	least, most := math.Inf(1), 0.0
	for _, series := range c.Series {
		for _, p := range series.Points {
			s.end = max(s.end, p.At)
			most = max(most, p.Value)
			if p.Value > 0 {
				least = min(least, p.Value)
			}
		}
	}
	if most <= 0 {
		most, least = 1, 1
	}
	if !s.log {
		step := niceStep(most / 5)
		s.high = math.Ceil(most/step) * step
		return s
	}
	s.low, s.high = math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	if s.low == s.high {
		s.high++
	}
	return s
}

func (s scale) x(at time.Duration) float64 {
	return left + float64(width-left-right)*at.Seconds()/s.end.Seconds()
}

func (s scale) y(v float64) float64 {
	if s.log {
		v = max(s.low, math.Log10(max(v, math.SmallestNonzeroFloat64)))
	}
	return height - bottom - float64(height-bottom-top)*(v-s.low)/(s.high-s.low)
}

// ticks are the values that get a grid line.
func (s scale) ticks() (ticks []float64) {
	if s.log {
		for e := s.low; e <= s.high; e++ {
			ticks = append(ticks, math.Pow(10, e))
		}
		return ticks
	}
	step := niceStep(s.high / 5)
	for v := 0.0; v <= s.high+step/1000; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// niceStep returns the least of 1, 2 and 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// tickLabel writes a value next to its grid line.
func tickLabel(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", round(v/1e6))
	case v >= 1e4:
		return fmt.Sprintf("%gk", round(v/1e3))
	}
	return fmt.Sprintf("%g", round(v))
}

func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }
