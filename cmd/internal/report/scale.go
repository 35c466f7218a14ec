package report

import (
	"fmt"
	"math"
	"time"
)

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
