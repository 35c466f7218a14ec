package main

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/loadtest"
)

// meter remembers when requests were answered, for the rates in the timeline and for measurements.
type meter struct {
	mu       sync.Mutex
	window   counts
	times    *hdrhistogram.Histogram // of the window
	accepted []time.Time             // when orders were accepted, in order
	asked    []time.Time             // when those orders were asked for, in order
	failures []time.Time             // when requests failed or were left open, in order
}

// counts are those of a window.
type counts struct {
	accepted, refused, failures int64
	p99                         time.Duration // of the accepted
}

func newMeter() *meter {
	const second = int64(time.Second / time.Microsecond)
	return &meter{times: hdrhistogram.New(1, 300*second, 2)}
}

// add counts a request to place an order.
func (m *meter) add(e *loadtest.Entry) {
	if e.Op != loadtest.OpPlace {
		return
	}
	done := e.At.Add(e.Took)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch class := e.Outcome.Class(); {
	case class == loadtest.Accepted:
		m.window.accepted++
		_ = m.times.RecordValue(max(1, e.Took.Microseconds())) // a request is cut off long before five minutes
		m.accepted, m.asked = insert(m.accepted, done), insert(m.asked, e.At)
	case class == loadtest.Refused && !turnedAway(e.Outcome):
		m.window.refused++
	default:
		m.window.failures++
		m.failures = insert(m.failures, done)
	}
}

// turnedAway reports whether the shop refused because it could not serve, which is an error to the buyer.
func turnedAway(o loadtest.Outcome) bool { return o == "unavailable" || o == "busy" }

// insert keeps the times sorted. They arrive nearly sorted.
func insert(times []time.Time, t time.Time) []time.Time {
	i := len(times)
	for i > 0 && times[i-1].After(t) {
		i--
	}
	return slices.Insert(times, i, t)
}

// take returns the counts of the window and begins a new one.
func (m *meter) take() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.window
	c.p99 = time.Duration(m.times.ValueAtQuantile(99)) * time.Microsecond
	m.window = counts{}
	m.times.Reset()
	return c
}

// acceptedAfter returns when the first order was accepted after t.
func (m *meter) acceptedAfter(t time.Time) (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return firstAfter(m.accepted, t)
}

// failuresIn counts the failures between two moments, and returns the time of the last one.
func (m *meter) failuresIn(from, to time.Time) (n int, last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.failures {
		if !t.Before(from) && t.Before(to) {
			n, last = n+1, t
		}
	}
	return n, last
}

// acceptedIn counts the orders that were accepted between two moments.
func (m *meter) acceptedIn(from, to time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return countIn(m.accepted, from, to)
}

// askedIn counts the accepted orders whose requests were sent between two moments. The answer to an earlier request may
// still be on its way then.
func (m *meter) askedIn(from, to time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return countIn(m.asked, from, to)
}

func countIn(times []time.Time, from, to time.Time) (n int) {
	for _, t := range times {
		if !t.Before(from) && t.Before(to) {
			n++
		}
	}
	return n
}

// longestPause is the longest time without an accepted order between two that were.
func (m *meter) longestPause() (longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := 1; i < len(m.accepted); i++ {
		longest = max(longest, m.accepted[i].Sub(m.accepted[i-1]))
	}
	return longest
}

func firstAfter(times []time.Time, t time.Time) (time.Time, bool) {
	i, _ := slices.BinarySearchFunc(times, t, time.Time.Compare)
	if i == len(times) {
		return time.Time{}, false
	}
	return times[i], true
}
