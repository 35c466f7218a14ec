package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func sample(log bool) Chart {
	var fast, slow Series
	fast.Name, slow.Name = `fast <&">`, "slow"
	for i := range 50 {
		at := time.Duration(i) * 100 * time.Millisecond
		fast.Points = append(fast.Points, Point{at, 10000 + 10*float64(i)})
		slow.Points = append(slow.Points, Point{at, float64(i)})
	}
	return Chart{
		Title: "Orders <b>", Unit: "orders/s", Log: log, Series: []Series{fast, slow, {Name: "dot", Points: []Point{{time.Second, 5}}}, {Name: "none"}},
		Marks: []Mark{{At: 2 * time.Second, Text: "killed <the> database"}},
	}
}

func TestChart_WellFormedAndInside(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := sample(log)
		svg := string(c.SVG())
		if err := wellFormed(svg); err != nil {
			t.Errorf("%v:\n%s", err, svg)
		}
		if strings.Contains(svg, "<b>") || strings.Contains(svg, "<the>") {
			t.Error("text was not escaped")
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Error("a place that is no number")
		}
		for _, points := range regexp.MustCompile(`points="([^"]*)"`).FindAllStringSubmatch(svg, -1) {
			for _, p := range strings.Fields(points[1]) {
				x, y, _ := strings.Cut(p, ",")
				px, _ := strconv.ParseFloat(x, 64)
				py, _ := strconv.ParseFloat(y, 64)
				if px < left-1 || px > width-right+1 || py < top-1 || py > height-bottom+1 {
					t.Errorf("log %v: point %s is outside", log, p)
				}
			}
		}
	}
}

func wellFormed(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestChart_Empty(t *testing.T) {
	for _, c := range []Chart{{}, {Log: true}, {Log: true, Series: []Series{{Name: "x", Points: []Point{{0, 0}, {time.Second, 0}}}}}} {
		svg := string(c.SVG())
		if err := wellFormed(svg); err != nil || strings.Contains(svg, "NaN") {
			t.Errorf("%v:\n%s", err, svg)
		}
	}
}

func TestScale_TicksCoverValues(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.2: 2, 2.1: 5, 7: 10, 99: 100, 1234: 2000} {
		if got := niceStep(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("niceStep(%v) = %v, want %v", v, got, want)
		}
	}
	for _, most := range []float64{0.001, 0.7, 3, 42, 999, 15021, 1e7} {
		c := Chart{Series: []Series{{Points: []Point{{time.Second, most}}}}}
		s := c.scale()
		ticks := s.ticks()
		if last := ticks[len(ticks)-1]; last < most*(1-1e-9) || len(ticks) < 3 || len(ticks) > 12 {
			t.Errorf("%v: ticks %v", most, ticks)
		}
		if y := s.y(most); y < top-0.01 {
			t.Errorf("%v is drawn at %v, above the picture", most, y)
		}
	}
}
