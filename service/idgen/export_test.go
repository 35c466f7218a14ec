package idgen

import (
	"fmt"
	"time"
)

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

// Encode is the inverse of Decode. It refuses a part that does not fit in its bits with ErrLayout.
func (l Layout) Encode(p Parts) (ID, error) {
	ms := p.Time.UnixMilli() - l.Epoch.UnixMilli()
	fits := func(v int64, bits int) bool { return v >= 0 && v>>bits == 0 }
	if !fits(ms, l.TimeBits) || !fits(int64(p.DataCenter), l.DataCenterBits) ||
		!fits(int64(p.Worker), l.WorkerBits) || !fits(int64(p.Sequence), l.SequenceBits) {
		return 0, fmt.Errorf("%w: %+v does not fit in %s", ErrLayout, p, l)
	}
	machine := int64(p.DataCenter)<<l.WorkerBits | int64(p.Worker)
	return ID(ms<<(l.machineBits()+l.SequenceBits) | machine<<l.SequenceBits | int64(p.Sequence)), nil
}
