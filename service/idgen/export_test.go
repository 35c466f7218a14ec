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
