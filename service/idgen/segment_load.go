package idgen

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RangeStore leases ranges of numbers. Packages of repository implement it.
type RangeStore interface {
	// Allocate takes at least n numbers from the store. It stores that durably before it returns them, so that no other
	// caller ever gets one of them. The store may give more than n, if its own minimum is higher. Allocate is safe for
	// concurrent use and blocks on the store until ctx ends. When its outcome is unknown, the caller asks again, and
	// the numbers of the first request are lost.
	//
	// ErrExhausted and ErrCounterLost mean that asking again is useless until an operator acts.
	Allocate(ctx context.Context, n int64) (Range, error)
}

// Range is a range of numbers.
type Range struct {
	First ID    // positive
	Count int64 // at least 1; First+Count-1 is the last number
	Least int64 // the store's own minimum of Count, which may change at any time; zero if it has none
}

// ErrCounterLost means that the store's counter is missing, or lower than it is known to have been. The store has lost
// data, and the numbers it would hand out now may be in use. It is refused until it is restored.
var ErrCounterLost = errors.New("idgen: the store has lost its counter")

// The bounds of the pause between failed loads.
const (
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// startLoad loads the next segment in the background, unless a load is running. s.mu is locked.
func (s *Segment) startLoad() {
	if s.loading || s.closed {
		return
	}
	s.loading, s.refusal = true, refusal{}
	n := s.step.next(time.Now())
	s.loads.Go(func() { s.load(n) })
}

// load asks the store until it gives a range, refuses for good, or the generator is closed.
func (s *Segment) load(n int64) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		start := time.Now()
		got, err := s.allocate(n)
		if s.finishRequest(got, err, time.Since(start)) {
			return
		}
		select {
		case <-time.After(s.jitter(pause)):
		case <-s.run.Done():
		}
	}
}

// allocate makes one request, with its own timeout. A range that arrives later is lost. A range that is empty, or beyond the
// highest number, means that the numbers have run out.
func (s *Segment) allocate(n int64) (Range, error) {
	ctx, cancel := context.WithTimeout(s.run, s.loadTimeout)
	defer cancel()
	got, err := s.store.Allocate(ctx, n)
	if err != nil {
		return Range{}, err
	}
	if got.First <= 0 || got.Count < 1 || got.First+ID(got.Count)-1 < got.First {
		return Range{}, fmt.Errorf("%w: the store gave %d numbers from %d", ErrExhausted, got.Count, got.First)
	}
	return got, nil
}

// finishRequest records the outcome of a request, reports it, and returns whether the load is over.
func (s *Segment) finishRequest(got Range, err error, took time.Duration) (over bool) {
	s.mu.Lock()
	if err == nil && int64(got.First) <= s.last {
		err = fmt.Errorf("%w: it gave %d after %d", ErrCounterLost, got.First, s.last)
	}
	s.stats.LastLoad = took
	if err == nil {
		s.addRange(got)
	} else {
		s.stats.Failures++
	}
	s.lastErr = err
	final := errors.Is(err, ErrExhausted) || errors.Is(err, ErrCounterLost)
	if final {
		s.refusal = refusal{err: fmt.Errorf("load ids: %w", err), until: time.Now().Add(maxPause)}
	}
	over = err == nil || final || s.closed
	if over {
		s.loading = false
		s.wakeWaiters()
	}
	s.mu.Unlock()
	event := Event{Kind: SegmentLoaded, Took: took, Count: got.Count}
	if err != nil {
		event = Event{Kind: SegmentFailed, Took: took, Err: err}
	}
	s.observer.IDEvent(event)
	return over
}

// addRange makes a range the next segment. s.mu is locked.
func (s *Segment) addRange(r Range) {
	s.last = int64(r.First) + r.Count - 1
	s.step.setMinimum(max(s.minStep, r.Least))
	s.stats.Loads++
	if !s.closed {
		s.next = &segment{loadAt: int64(float64(r.Count) * s.loadAt)}
		s.next.base, s.next.size = int64(r.First), r.Count
	}
}

// stepper decides how many ids to load at a time, by how long the ids of the last load lasted.
type stepper struct {
	step     int64
	min, max int64
	target   time.Duration
	lastLoad time.Time // zero before the first load
}

// next returns how many ids to load now.
func (s *stepper) next(now time.Time) int64 {
	lasted := now.Sub(s.lastLoad)
	switch {
	case s.lastLoad.IsZero():
	case lasted < s.target:
		s.step = min(2*s.step, s.max)
	case lasted > 2*s.target:
		s.step = max(s.step/2, s.min)
	}
	s.lastLoad = now
	return s.step
}

// setMinimum sets the lower bound of the step. A higher bound takes effect at once.
func (s *stepper) setMinimum(least int64) {
	s.min = least
	s.step = max(s.step, least)
}
