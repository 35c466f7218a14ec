package idgen

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// startLoad loads the next segment in the background. s.mu is held, and no load is in flight.
func (s *Segment) startLoad() {
	if s.loading || s.closed {
		return
	}
	s.loading, s.refusal = true, refusal{}
	n := s.step.next(s.clock.Mono())
	s.loads.Go(func() { s.load(n) })
}

// load asks the store until it gives a range, refuses for good, or the generator is closed.
func (s *Segment) load(n int64) {
	for pause := s.minPause; ; pause = min(2*pause, s.maxPause) {
		start := s.clock.Mono()
		got, err := s.allocate(n)
		took := s.clock.Mono() - start
		if s.settle(got, err, took) {
			return
		}
		fired, stop := after(s.clock, s.jitter(pause))
		select {
		case <-fired:
		case <-s.run.Done():
		}
		stop()
	}
}

// allocate makes one request, within its own time. What arrives after that is not looked at.
func (s *Segment) allocate(n int64) (Range, error) {
	ctx, cancel := context.WithTimeout(s.run, s.loadTimeout)
	defer cancel()
	got, err := s.store.Allocate(ctx, n)
	if err != nil {
		return Range{}, err
	}
	if got.First <= 0 || got.Count < 1 || got.First+ID(got.Count)-1 < got.First {
		return Range{}, fmt.Errorf("%w: the store gave %d numbers from %d on", ErrExhausted, got.Count, got.First)
	}
	return got, nil
}

// settle books the outcome of a request and says whether the load is over.
func (s *Segment) settle(got Range, err error, took time.Duration) bool {
	s.mu.Lock()
	if err == nil && int64(got.First) <= s.last {
		err = fmt.Errorf("%w: it gave %d after %d", ErrCounterLost, got.First, s.last)
	}
	over := s.book(got, err)
	s.stats.LastLoad = took
	s.mu.Unlock()
	event := Event{Kind: SegmentLoaded, Took: took, Count: got.Count}
	if err != nil {
		event = Event{Kind: SegmentFailed, Took: took, Err: err}
	}
	s.observer.IDEvent(event)
	return over
}

// book keeps a range for later use, or the error for those who wait. s.mu is held.
func (s *Segment) book(got Range, err error) (over bool) {
	s.lastErr = err
	final := errors.Is(err, ErrExhausted) || errors.Is(err, ErrCounterLost)
	switch {
	case err == nil:
		s.last = int64(got.First) + got.Count - 1
		s.step.minimum(max(s.minStep, got.Least))
		s.stats.Loads++
		if !s.closed {
			s.next = s.newSegment(got)
		}
	default:
		s.stats.Failures++
	}
	if final {
		s.refusal = refusal{err: fmt.Errorf("load ids: %w", err), until: s.clock.Mono() + s.maxPause}
	}
	if over = err == nil || final || s.closed; over {
		s.loading = false
		s.broadcast()
	}
	return over
}

func (s *Segment) newSegment(r Range) *segment {
	seg := &segment{trigger: int64(float64(r.Count) * s.loadAt)}
	seg.base, seg.size = int64(r.First), r.Count
	return seg
}
