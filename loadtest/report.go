package loadtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what a load came to.
type Report struct {
	Elapsed  time.Duration `json:"elapsed_ns"`
	Requests int64         `json:"requests"` // sent, and answered or failed to be
	Dropped  int64         `json:"dropped"`  // arrivals of the open model for which nobody was free
	PerSec   float64       `json:"requests_per_second"`

	Outcomes []OutcomeReport `json:"outcomes"` // most frequent first
	Accepted Latency         `json:"accepted"` // of requests to place an order
	Refused  Latency         `json:"refused"`  // of requests to place an order
	All      Latency         `json:"all"`
	Timeline []Slot          `json:"timeline"`
}

// OutcomeReport is what became of some of the requests.
type OutcomeReport struct {
	Op      Op      `json:"op"`
	Outcome Outcome `json:"outcome"`
	Class   Class   `json:"class"`
	Latency
}

// Latency sums up a number of latencies.
type Latency struct {
	Count int64         `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

func summarize(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	return Latency{
		Count: h.TotalCount(), Mean: time.Duration(h.Mean() * float64(time.Microsecond)),
		P50: quantile(h, 50), P90: quantile(h, 90), P99: quantile(h, 99), Max: time.Duration(h.Max()) * time.Microsecond,
	}
}

// Report sums up what was recorded until now.
func (r *Recorder) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed := time.Since(r.begin)
	report := Report{
		Elapsed: elapsed, Requests: r.sent, Dropped: r.dropped, PerSec: float64(r.sent) / elapsed.Seconds(),
		Timeline: r.timeline.report(elapsed),
	}
	all, accepted, refused := newHistogram(), newHistogram(), newHistogram()
	for k, h := range r.times {
		class := k.outcome.Class()
		report.Outcomes = append(report.Outcomes, OutcomeReport{Op: k.op, Outcome: k.outcome, Class: class, Latency: summarize(h)})
		all.Merge(h)
		switch {
		case k.op != OpPlace:
		case class == Accepted:
			accepted.Merge(h)
		case class == Refused:
			refused.Merge(h)
		}
	}
	report.All, report.Accepted, report.Refused = summarize(all), summarize(accepted), summarize(refused)
	slices.SortFunc(report.Outcomes, func(a, b OutcomeReport) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Outcome, b.Outcome))
	})
	return report
}

// Count returns how many requests of the kind had one of the outcomes.
func (r *Report) Count(op Op, outcomes ...Outcome) (n int64) {
	for _, o := range r.Outcomes {
		if o.Op == op && slices.Contains(outcomes, o.Outcome) {
			n += o.Count
		}
	}
	return n
}

// CountClass returns how many requests of the kind ended in the class.
func (r *Report) CountClass(op Op, class Class) (n int64) {
	for _, o := range r.Outcomes {
		if o.Op == op && o.Class == class {
			n += o.Count
		}
	}
	return n
}
