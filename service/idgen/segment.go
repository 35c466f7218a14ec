package idgen

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Segment hands out numbers of ranges that it gets from a RangeStore. It is a Generator; NewSegment makes one.
//
// While one range is in use the next is loaded in the background, as soon as a part of the present one is gone. At most
// one load is in flight. A load that fails is repeated, with growing and random pauses, until it succeeds. Calls that
// find no ids wait for it, each until its own context ends; only what a store refuses for good they are told at once.
//
// How many ids are loaded at a time follows demand: a range that lasted for less than the target doubles the step, one
// that lasted for more than twice the target halves it.
type Segment struct {
	segmentSettings
	store RangeStore
	cur   atomic.Pointer[segment]

	mu      sync.Mutex
	next    *segment // loaded, not in use yet
	loading bool
	loaded  chan struct{} // closed and replaced when waiting calls should look again
	refusal refusal
	lastErr error // of the last request; nil if it succeeded
	last    int64 // the highest number of all ranges so far
	step    stepper
	closed  bool
	stats   SegmentStats

	run     context.Context // of the loads
	stop    context.CancelFunc
	loads   sync.WaitGroup
	waiting atomic.Int64
	waited  atomic.Int64
}

// segment is a range in use, and where in it the next load is due.
type segment struct {
	counter
	trigger int64       // load the next segment once this many are taken
	asked   atomic.Bool // that has happened
}

// refusal is an error that the store gives for good. It is passed on without asking again for a moment.
type refusal struct {
	err   error
	until time.Duration // on Mono
}

// NewSegment loads a first segment and returns a generator with it, for the caller to Close. It blocks on the store
// until ctx ends, and fails when nothing could be loaded until then, when the store refuses for good, or when the
// settings contradict each other.
func NewSegment(ctx context.Context, store RangeStore, opts ...SegmentOption) (*Segment, error) {
	s := &Segment{segmentSettings: defaultSegmentSettings(), store: store, loaded: make(chan struct{})}
	for _, opt := range opts {
		opt(&s.segmentSettings)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	s.step = stepper{step: s.minStep, min: s.minStep, max: s.maxStep, target: s.target}
	s.run, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	empty := &segment{}
	s.cur.Store(empty)
	if err := s.advance(ctx, empty); err != nil {
		_ = s.Close(ctx) // nothing is loaded, and a load in flight ends by itself
		return nil, err
	}
	return s, nil
}

// Next implements Generator.
func (s *Segment) Next(ctx context.Context) (ID, error) {
	seg := s.cur.Load()
	if n, got := seg.take(1); got == 1 {
		if n-seg.base >= seg.trigger && !seg.asked.Load() {
			s.prefetch(seg)
		}
		return ID(n), nil
	}
	var one [1]ID
	err := s.NextN(ctx, one[:])
	return one[0], err
}

// NextN implements Generator.
func (s *Segment) NextN(ctx context.Context, dst []ID) error {
	for {
		seg := s.cur.Load()
		dst = dst[s.takeInto(dst, seg):]
		if len(dst) == 0 {
			return nil
		}
		if err := s.advance(ctx, seg); err != nil {
			return err
		}
	}
}

func (s *Segment) takeInto(dst []ID, seg *segment) int {
	filled := 0
	for filled < len(dst) {
		first, got := seg.take(int64(len(dst) - filled))
		if got == 0 {
			break
		}
		part := dst[filled : filled+int(got)]
		for i := range part {
			part[i] = ID(first) + ID(i)
		}
		filled += int(got)
		if first+got-1-seg.base >= seg.trigger && !seg.asked.Load() {
			s.prefetch(seg)
		}
	}
	return filled
}

// prefetch starts to load the segment after seg, once.
func (s *Segment) prefetch(seg *segment) {
	if seg.asked.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur.Load() == seg && s.next == nil {
		s.startLoad()
	}
}

// advance puts the next segment in the place of the one that its caller found empty, or waits for the load.
func (s *Segment) advance(ctx context.Context, used *segment) error {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return ErrClosed
	case s.cur.Load() != used:
		s.mu.Unlock()
		return nil
	case s.next != nil:
		s.cur.Store(s.next)
		s.next = nil
		s.mu.Unlock()
		return nil
	case s.clock.Mono() < s.refusal.until:
		err := s.refusal.err
		s.mu.Unlock()
		return err
	}
	s.startLoad()
	loaded := s.loaded
	s.mu.Unlock()
	return s.await(ctx, loaded)
}

// await waits until the load has come to something or ctx ends.
func (s *Segment) await(ctx context.Context, loaded <-chan struct{}) error {
	s.waiting.Add(1)
	s.waited.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-loaded:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refusal.err
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.lastErr != nil {
			return fmt.Errorf("%w while ids could not be loaded: %w", context.Cause(ctx), s.lastErr)
		}
		return context.Cause(ctx)
	}
}

// Close implements Generator. Numbers that are loaded and not handed out are lost. Close waits, until ctx ends, for a
// load in flight, which it cancels.
func (s *Segment) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.cur.Load().cut()
	s.next = nil
	s.broadcast()
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.loads.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a load does not end: %w", context.Cause(ctx))
	}
}

// broadcast makes waiting calls look again. s.mu is held.
func (s *Segment) broadcast() {
	close(s.loaded)
	s.loaded = make(chan struct{})
}
