package idgen

import "time"

// WithJitter makes pauses replayable.
func WithJitter(f func(time.Duration) time.Duration) Option {
	return func(s *settings) { s.jitter = f }
}

// WithSegmentJitter makes pauses replayable.
func WithSegmentJitter(f func(time.Duration) time.Duration) SegmentOption {
	return func(s *segmentSettings) { s.jitter = f }
}

// WithBurst sets how far demand may drive ids ahead of the clock.
func WithBurst(d time.Duration) Option { return func(s *settings) { s.burst = d } }

// WithTolerance sets the step back of the clock that calls wait for, however far ahead they are.
func WithTolerance(d time.Duration) Option {
	return func(s *settings) { s.tolerance, s.maxAhead = d, max(s.maxAhead, d) }
}
