package idgen

import (
	"fmt"
	"time"
)

// SegmentOption changes a setting of NewSegment.
type SegmentOption func(*segmentSettings)

type segmentSettings struct {
	clock              Clock
	observer           Observer
	loadAt             float64
	minStep, maxStep   int64
	target             time.Duration
	loadTimeout        time.Duration
	minPause, maxPause time.Duration
	jitter             func(time.Duration) time.Duration
}

func defaultSegmentSettings() segmentSettings {
	return segmentSettings{
		clock:       SystemClock(),
		observer:    NoObserver{},
		loadAt:      0.1,
		minStep:     1000,
		maxStep:     1_000_000,
		target:      15 * time.Minute,
		loadTimeout: 2 * time.Second,
		minPause:    10 * time.Millisecond,
		maxPause:    time.Second,
		jitter:      halfToThreeHalves,
	}
}

// WithLoadAt sets which part of a segment is gone when the next one is loaded: 0.1 as in Leaf otherwise, 0.75 suits a
// store that answers fast. At 1 the next segment is loaded when there is nothing left, which makes it a single buffer.
func WithLoadAt(part float64) SegmentOption { return func(s *segmentSettings) { s.loadAt = part } }

// WithStep sets how many ids are loaded at a time, at least and at most: 1,000 and 1,000,000 otherwise. With the two
// equal the step is fixed.
func WithStep(least, most int64) SegmentOption {
	return func(s *segmentSettings) { s.minStep, s.maxStep = least, most }
}

// WithTarget sets how long a segment should last: 15 minutes otherwise. Less than that doubles the step, more than twice
// as much halves it.
func WithTarget(d time.Duration) SegmentOption { return func(s *segmentSettings) { s.target = d } }

// WithLoadTimeout sets after how long an answer of the store is not waited for any more; 2 s otherwise.
func WithLoadTimeout(d time.Duration) SegmentOption {
	return func(s *segmentSettings) { s.loadTimeout = d }
}

// WithSegmentClock replaces the system's clock.
func WithSegmentClock(c Clock) SegmentOption { return func(s *segmentSettings) { s.clock = c } }

// WithSegmentObserver sets the observer of loads.
func WithSegmentObserver(o Observer) SegmentOption {
	return func(s *segmentSettings) { s.observer = o }
}

func (s *segmentSettings) validate() error {
	if s.minStep < 1 || s.maxStep < s.minStep || s.loadAt < 0 || s.loadAt > 1 || s.target <= 0 || s.loadTimeout <= 0 {
		return fmt.Errorf("idgen: want 1 <= least <= most, a part from 0 to 1, a target and a timeout, got %d, %d, %g, %s, %s",
			s.minStep, s.maxStep, s.loadAt, s.target, s.loadTimeout)
	}
	return nil
}
