package idgen

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Option changes a setting of NewSnowflake.
type Option func(*settings)

type settings struct {
	layout     Layout
	dataCenter int
	clock      Clock
	observer   Observer
	owner      string
	tolerance  time.Duration // calls wait for the clock when it goes back by up to this much
	burst      time.Duration // ids may be this far ahead of the clock because of demand
	maxAhead   time.Duration // ids may be this far ahead of a clock that went back, before the backup worker is used
	ttl        time.Duration // of the lease
	reserve    time.Duration // the stored ceiling is this far ahead of the time used
	jitter     func(time.Duration) time.Duration
}

func defaultSettings() settings {
	return settings{
		layout:    DefaultLayout(),
		clock:     time.Now,
		observer:  NoObserver{},
		tolerance: 5 * time.Millisecond,
		burst:     100 * time.Millisecond, // 409,600 ids at once
		maxAhead:  5 * time.Second,
		ttl:       15 * time.Second,
		reserve:   3 * time.Second,
		jitter:    jittered,
	}
}

// WithLayout sets the layout; the default is DefaultLayout. See Layout on why it must not change.
func WithLayout(l Layout) Option { return func(s *settings) { s.layout = l } }

// WithDataCenter sets the data centre whose workers are leased; the default is 0.
func WithDataCenter(n int) Option { return func(s *settings) { s.dataCenter = n } }

// WithClock replaces the system's clock.
func WithClock(c Clock) Option { return func(s *settings) { s.clock = c } }

// WithObserver sets the observer of clock steps and leases.
func WithObserver(o Observer) Option { return func(s *settings) { s.observer = o } }

// WithOwner sets a name that precedes the random owner of leases, so that people see in the store who holds what. It need
// not be unique.
func WithOwner(name string) Option { return func(s *settings) { s.owner = name } }

// WithLease sets how long a lease lasts without a renewal (default 15 s), and how far the stored ceiling is ahead of the
// time used (default 3 s). The lease is renewed, and the ceiling raised, at a third of the shorter one. A third of the
// reserve is left for ids while the store is away: 4 million of them by default.
func WithLease(ttl, reserve time.Duration) Option {
	return func(s *settings) { s.ttl, s.reserve = ttl, reserve }
}

func (s *settings) validate() error {
	if err := s.layout.Validate(); err != nil {
		return err
	}
	switch {
	case s.dataCenter < 0 || s.dataCenter>>s.layout.DataCenterBits > 0:
		return fmt.Errorf("%w: data centre %d does not fit in %d bits", ErrLayout, s.dataCenter, s.layout.DataCenterBits)
	case s.ttl < 30*time.Millisecond, s.reserve < 30*time.Millisecond:
		return fmt.Errorf("idgen: want lease and reserve of at least 30 ms, got %s and %s", s.ttl, s.reserve)
	}
	return nil
}

// leaseRequest returns what to ask the lease store for.
func (s *settings) leaseRequest() LeaseRequest {
	pairs := 1 << (s.layout.WorkerBits - 1) // of one data centre
	return LeaseRequest{
		Owner: s.owner, Layout: s.layout.String(), TTL: s.ttl,
		First: s.dataCenter * pairs, Count: pairs,
	}
}

// SegmentOption changes a setting of NewSegment.
type SegmentOption func(*segmentSettings)

type segmentSettings struct {
	observer         Observer
	loadAt           float64
	minStep, maxStep int64
	target           time.Duration
	loadTimeout      time.Duration
	jitter           func(time.Duration) time.Duration
}

func defaultSegmentSettings() segmentSettings {
	return segmentSettings{
		observer:    NoObserver{},
		loadAt:      0.1,
		minStep:     1000,
		maxStep:     1_000_000,
		target:      15 * time.Minute,
		loadTimeout: 2 * time.Second,
		jitter:      jittered,
	}
}

// WithLoadAt sets the used part of a segment at which the next one is loaded. The default is 0.1, as in Leaf; 0.75 suits a
// store that answers fast. At 1 the next segment is loaded when nothing is left, which makes a single buffer.
func WithLoadAt(part float64) SegmentOption { return func(s *segmentSettings) { s.loadAt = part } }

// WithStep sets the bounds of how many ids are loaded at a time; the default is 1,000 to 1,000,000. Equal bounds fix the
// step.
func WithStep(least, most int64) SegmentOption {
	return func(s *segmentSettings) { s.minStep, s.maxStep = least, most }
}

// WithTarget sets how long a segment should last; the default is 15 minutes. A segment that lasts less doubles the step,
// one that lasts more than twice as long halves it.
func WithTarget(d time.Duration) SegmentOption { return func(s *segmentSettings) { s.target = d } }

// WithLoadTimeout bounds one request to the store; the default is 2 s.
func WithLoadTimeout(d time.Duration) SegmentOption {
	return func(s *segmentSettings) { s.loadTimeout = d }
}

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

// jittered returns a random duration from half of d to one and a half of it. It spreads what many instances would do at the same moment.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }
