package loadtest

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Recorder counts and times what is answered while load is on its way. It is safe for use by many goroutines. One lock
// is enough: a record takes a fraction of a microsecond, and a request many.
type Recorder struct {
	begin   time.Time
	journal func(*Entry) // nil: none

	mu       sync.Mutex
	times    map[opOutcome]*hdrhistogram.Histogram
	timeline timeline
	sent     int64
	dropped  int64
	unknown  []Entry // place requests that have to be settled
}

type opOutcome struct {
	op      Op
	outcome Outcome
}

// Latencies are kept from a microsecond to five minutes, to three digits.
const (
	leastLatency = 1
	mostLatency  = int64(5 * time.Minute / time.Microsecond)
	digits       = 3
)

// NewRecorder returns a recorder whose time begins now. journal, if it is not nil, gets every entry; it is called by
// many goroutines and must not keep the entry.
func NewRecorder(journal func(*Entry)) *Recorder {
	return &Recorder{
		begin: time.Now(), journal: journal, times: map[opOutcome]*hdrhistogram.Histogram{},
		timeline: newTimeline(250 * time.Millisecond),
	}
}

// Record takes down a request and its answer. since is what its latency counts from: the time at which it was due, if
// it was sent later than that.
func (r *Recorder) Record(op Op, user int64, voucher, key string, a *Answer, since time.Time) {
	entry := Entry{
		At: a.Start, Took: a.Took, Op: op, User: user, Voucher: voucher, Key: key,
		Outcome: a.Outcome, Status: a.Status, Order: a.Order,
	}
	if a.Err != nil {
		entry.Error = a.Err.Error()
	}
	if key == "" {
		entry.Key = a.RequestID // the shop's own name for a request without a key
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

// Drop counts an arrival for which nobody was free.
func (r *Recorder) Drop(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped++
	r.timeline.drop(at.Sub(r.begin))
}

// TakeUnknown returns the requests whose outcome was not known when they were answered, and forgets them.
func (r *Recorder) TakeUnknown() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.unknown
	r.unknown = nil
	return taken
}

// Counts is how far the load has come.
type Counts struct {
	Elapsed  time.Duration
	Sent     int64 // requests that have been answered, or have failed to be
	Dropped  int64 // arrivals that found nobody free
	Outcomes map[Outcome]int64
}

// Counts returns the counts of this moment.
func (r *Recorder) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Counts{Elapsed: time.Since(r.begin), Sent: r.sent, Dropped: r.dropped, Outcomes: map[Outcome]int64{}}
	for k, h := range r.times {
		c.Outcomes[k.outcome] += h.TotalCount()
	}
	return c
}
