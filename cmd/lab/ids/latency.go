package ids

import (
	"slices"
	"time"
)

// Latency summarizes latencies, in microseconds.
type Latency struct {
	Calls int     `json:"calls"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
	Max   float64 `json:"max_us"`
}

// Point is the latency of the calls that began in one interval.
type Point struct {
	At float64 `json:"at_ms"` // beginning of the interval, since the beginning of the run
	Latency
}

// sample is one call.
type sample struct {
	at, took time.Duration
}

func summarize(took []time.Duration) Latency {
	if len(took) == 0 {
		return Latency{}
	}
	slices.Sort(took)
	quantile := func(q float64) float64 {
		return micros(took[min(int(q*float64(len(took))), len(took)-1)])
	}
	return Latency{Calls: len(took), P50: quantile(0.5), P99: quantile(0.99), P999: quantile(0.999), Max: quantile(1)}
}

// overTime splits samples into intervals.
func overTime(samples []sample, interval time.Duration) []Point {
	parts := map[time.Duration][]time.Duration{}
	for _, s := range samples {
		at := s.at.Truncate(interval)
		parts[at] = append(parts[at], s.took)
	}
	points := make([]Point, 0, len(parts))
	for at, took := range parts {
		points = append(points, Point{At: float64(at.Milliseconds()), Latency: summarize(took)})
	}
	slices.SortFunc(points, func(a, b Point) int { return int(a.At - b.At) })
	return points
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
