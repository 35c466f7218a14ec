package main

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/loadtest"
)

// meter remembers when requests were answered: for the lines of the timeline, and to measure how long nothing went.
type meter struct {
	mu       sync.Mutex
	window   counts
	times    *hdrhistogram.Histogram // of the window
	accepted []time.Time             // when orders were accepted, in order
	asked    []time.Time             // when those orders were asked for, in order
	faults   []time.Time             // when requests failed or were left open, in order
}

// counts are those of a window.
type counts struct {
	accepted, refused, faults int64
	p99                       time.Duration // of the accepted
}

func newMeter() *meter {
	const second = int64(time.Second / time.Microsecond)
	return &meter{times: hdrhistogram.New(1, 300*second, 2)}
}

// add takes down a request to place an order.
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
		m.window.faults++
		m.faults = insert(m.faults, done)
	}
}

// turnedAway tells whether the shop refused because it could not serve: to the buyer that is an error like any other.
func turnedAway(o loadtest.Outcome) bool { return o == "unavailable" || o == "busy" }

// insert keeps the times in order; they come nearly so.
func insert(times []time.Time, t time.Time) []time.Time {
	i := len(times)
	for i > 0 && times[i-1].After(t) {
		i--
	}
	return slices.Insert(times, i, t)
}

// take returns the window's counts and begins another.
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

// faultsIn counts what went wrong from one moment to another, and returns when the last of it did.
func (m *meter) faultsIn(from, to time.Time) (n int, last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.faults {
		if !t.Before(from) && t.Before(to) {
			n, last = n+1, t
		}
	}
	return n, last
}

// acceptedIn counts orders from one moment to another.
func (m *meter) acceptedIn(from, to time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return countIn(m.accepted, from, to)
}

// askedIn counts those that were also asked for from one moment to another: the answer to an earlier request may have
// been on its way.
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
