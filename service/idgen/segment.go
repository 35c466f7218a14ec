package idgen

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Segment is a Generator that hands out the numbers of ranges, which it gets from a RangeStore.
//
// The next range is loaded in the background when a part of the present one is used. At most one load runs at a time. A
// load that fails is repeated, with growing and random pauses, until it succeeds. Calls that find no ids wait for it,
// each until its own context ends. They fail at once only if the store refuses for good.
//
// How many ids are loaded at a time follows demand, see WithTarget.
type Segment struct {
	segmentSettings
	store   RangeStore
	current atomic.Pointer[segment]

	mu      sync.Mutex // guards what follows, up to stats
	next    *segment   // loaded, not in use yet
	loading bool
	changed chan struct{} // closed and replaced to wake waiting calls
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

// segment is a range in use.
type segment struct {
	counter
	loadAt    int64       // load the next segment when this many numbers are used
	requested atomic.Bool // that load was started
}

// refusal is an error that the store gives for good. For a moment, calls get it without a new request.
type refusal struct {
	err   error
	until time.Time
}

// NewSegment loads a first segment and returns a generator with it; the caller closes it. It blocks on the store until ctx
// ends. It fails when nothing could be loaded until then, when the store refuses for good, or when the options contradict
// each other.
func NewSegment(ctx context.Context, store RangeStore, opts ...SegmentOption) (*Segment, error) {
	s := &Segment{segmentSettings: defaultSegmentSettings(), store: store, changed: make(chan struct{})}
	for _, opt := range opts {
		opt(&s.segmentSettings)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	s.step = stepper{step: s.minStep, min: s.minStep, max: s.maxStep, target: s.target}
	s.run, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	empty := &segment{}
	s.current.Store(empty)
	if err := s.advance(ctx, empty); err != nil {
		_ = s.Close(ctx) // nothing is loaded, and a running load ends soon
		return nil, err
	}
	return s, nil
}

// Next implements Generator.
func (s *Segment) Next(ctx context.Context) (ID, error) {
	seg := s.current.Load()
	if n, got := seg.take(1); got == 1 {
		s.prefetch(seg, n)
		return ID(n), nil
	}
	var one [1]ID
	err := s.NextN(ctx, one[:])
	return one[0], err
}

// NextN implements Generator.
func (s *Segment) NextN(ctx context.Context, dst []ID) error {
	for {
		seg := s.current.Load()
		dst = dst[s.takeInto(dst, seg):]
		if len(dst) == 0 {
			return nil
		}
		if err := s.advance(ctx, seg); err != nil {
			return err
		}
	}
}

// takeInto fills dst as far as seg has ids, and returns how many it took.
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
		s.prefetch(seg, first+got-1)
	}
	return filled
}

// prefetch starts to load the next segment if taken, the number that was just taken from seg, is far enough.
func (s *Segment) prefetch(seg *segment, taken int64) {
	if taken-seg.base < seg.loadAt || seg.requested.Load() || seg.requested.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() == seg && s.next == nil {
		s.startLoad()
	}
}

// advance replaces the segment that its caller found empty by the next one, or waits for the load.
func (s *Segment) advance(ctx context.Context, used *segment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.current.Load() != used:
		return nil
	case s.next != nil:
		s.current.Store(s.next)
		s.next = nil
		return nil
	case time.Now().Before(s.refusal.until):
		return s.refusal.err
	}
	s.startLoad()
	return s.waitForLoad(ctx)
}

// waitForLoad waits until the running load has ended or ctx ends. s.mu is locked, and unlocked during the wait.
func (s *Segment) waitForLoad(ctx context.Context) error {
	s.waiting.Add(1)
	s.waited.Add(1)
	defer s.waiting.Add(-1)
	changed := s.changed
	s.mu.Unlock()
	var ended error
	select {
	case <-changed:
	case <-ctx.Done():
		ended = context.Cause(ctx)
	}
	s.mu.Lock()
	switch {
	case ended == nil:
		return s.refusal.err
	case s.lastErr != nil:
		return fmt.Errorf("%w while ids could not be loaded: %w", ended, s.lastErr)
	}
	return ended
}

// wakeWaiters makes waiting calls look again. s.mu is locked.
func (s *Segment) wakeWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close implements Generator. Numbers that are loaded and not handed out are lost. Close cancels a running load and waits
// for its end, until ctx ends.
func (s *Segment) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.current.Load().counter.stop()
	s.next = nil
	s.wakeWaiters()
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

// SegmentStats is the state of a Segment, for metrics.
type SegmentStats struct {
	Remaining int64         // ids available, in both buffers
	Step      int64         // ids that the next load asks for, if demand stays as it is
	Waiting   int64         // calls that wait for a load
	Waited    int64         // calls that have had to wait for a load so far
	Loads     int64         // loads that succeeded
	Failures  int64         // requests to the store that failed
	LastLoad  time.Duration // how long the last request to the store took
}

// Stats returns the present state.
func (s *Segment) Stats() SegmentStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	current := s.current.Load()
	stats.Remaining = current.size - current.used()
	if s.next != nil {
		stats.Remaining += s.next.size
	}
	stats.Step, stats.Waiting, stats.Waited = s.step.step, s.waiting.Load(), s.waited.Load()
	return stats
}
