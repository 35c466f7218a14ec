package loadtest

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Recorder counts and times the answers to a load. It is safe for concurrent use. One mutex is enough: a record takes less
// than a microsecond.
type Recorder struct {
	begin   time.Time
	journal func(*Entry) // nil: none

	mu       sync.Mutex
	times    map[opOutcome]*hdrhistogram.Histogram
	timeline timeline
	sent     int64
	dropped  int64
	unknown  []Entry // requests to place an order that have to be settled
}

type opOutcome struct {
	op      Op
	outcome Outcome
}

// Histograms hold latencies in microseconds, up to five minutes, with three digits.
const (
	leastLatency = 1
	mostLatency  = int64(5 * time.Minute / time.Microsecond)
	digits       = 3
)

// NewRecorder returns a recorder whose time begins now. journal may be nil. It is called with every entry, by many
// goroutines, and must not keep the entry.
func NewRecorder(journal func(*Entry)) *Recorder {
	return &Recorder{
		begin: time.Now(), journal: journal, times: map[opOutcome]*hdrhistogram.Histogram{},
		timeline: timeline{width: 250 * time.Millisecond},
	}
}

// Record records a request and its answer. Its latency counts from since: the time when it was due, which may be before it
// was sent.
func (r *Recorder) Record(op Op, user int64, voucher, key string, a *Answer, since time.Time) {
	entry := Entry{
		At: a.Start.UTC(), Took: a.Took, Op: op, User: user, Voucher: voucher, Key: key,
		Outcome: a.Outcome, Status: a.Status, Order: a.Order,
	}
	if a.Err != nil {
		entry.Error = a.Err.Error()
	}
	if key == "" {
		entry.Key = a.RequestID // the shop's id for a request without a key
	}
	done := a.Start.Add(a.Took)
	r.count(&entry, done.Sub(since), done.Sub(r.begin))
	if r.journal != nil {
		r.journal(&entry)
	}
	if op == OpPlace && a.Outcome.Class() == Unknown {
		r.mu.Lock()
		r.unknown = append(r.unknown, entry)
		r.mu.Unlock()
	}
}

func (r *Recorder) count(e *Entry, latency, at time.Duration) {
	us := min(max(latency.Microseconds(), leastLatency), mostLatency)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	h := r.times[opOutcome{e.Op, e.Outcome}]
	if h == nil {
		h = newHistogram()
		r.times[opOutcome{e.Op, e.Outcome}] = h
	}
	_ = h.RecordValue(us) // cannot be out of range
	r.timeline.add(at, e.Outcome.Class(), us)
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(leastLatency, mostLatency, digits)
}

// Drop counts an arrival that found no free client.
func (r *Recorder) Drop(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped++
	r.timeline.drop(at.Sub(r.begin))
}

// TakeUnknown returns and forgets the requests whose outcome is unknown.
func (r *Recorder) TakeUnknown() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.unknown
	r.unknown = nil
	return taken
}

// Sent returns how many requests have an outcome, and the time since the recorder's begin.
func (r *Recorder) Sent() (requests int64, elapsed time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent, time.Since(r.begin)
}

// Report is the result of a load.
type Report struct {
	Elapsed  time.Duration `json:"elapsed_ns"`
	Requests int64         `json:"requests"` // that have an outcome
	Dropped  int64         `json:"dropped"`  // arrivals that found no free client
	PerSec   float64       `json:"requests_per_second"`

	Outcomes []OutcomeReport `json:"outcomes"` // most frequent first
	Accepted Latency         `json:"accepted"` // requests to place an order
	Refused  Latency         `json:"refused"`  // requests to place an order
	All      Latency         `json:"all"`
	Timeline []Slot          `json:"timeline"`
}

// OutcomeReport counts the requests of one kind with one outcome.
type OutcomeReport struct {
	Op      Op      `json:"op"`
	Outcome Outcome `json:"outcome"`
	Class   Class   `json:"class"`
	Latency
}

// Latency summarizes latencies.
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

// Report summarizes what was recorded so far.
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

// Count returns how many requests of a kind had one of the outcomes.
func (r *Report) Count(op Op, outcomes ...Outcome) (n int64) {
	for _, o := range r.Outcomes {
		if o.Op == op && slices.Contains(outcomes, o.Outcome) {
			n += o.Count
		}
	}
	return n
}

// CountClass returns how many requests of a kind had an outcome of the class.
func (r *Report) CountClass(op Op, class Class) (n int64) {
	for _, o := range r.Outcomes {
		if o.Op == op && o.Class == class {
			n += o.Count
		}
	}
	return n
}
