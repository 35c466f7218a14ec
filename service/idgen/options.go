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
	dataCenter int // -1: any
	clock      Clock
	observer   Observer
	owner      string
	tolerance  time.Duration
	burst      time.Duration
	maxAhead   time.Duration
	ttl        time.Duration
	reserve    time.Duration
	jitter     func(time.Duration) time.Duration
}

func defaultSettings() settings {
	return settings{
		layout:    DefaultLayout(),
		clock:     SystemClock(),
		observer:  NoObserver{},
		tolerance: 5 * time.Millisecond,
		burst:     100 * time.Millisecond,
		maxAhead:  5 * time.Second,
		ttl:       15 * time.Second,
		reserve:   3 * time.Second,
		jitter:    halfToThreeHalves,
	}
}

// WithLayout sets the layout; DefaultLayout otherwise. See Layout on why it must not change.
func WithLayout(l Layout) Option { return func(s *settings) { s.layout = l } }

// WithDataCenter sets the data centre whose workers are leased; 0 otherwise.
func WithDataCenter(n int) Option { return func(s *settings) { s.dataCenter = n } }

// WithAnyDataCenter leases workers of all data centres, which is right where there is only one.
func WithAnyDataCenter() Option { return func(s *settings) { s.dataCenter = -1 } }

// WithClock replaces the system's clock.
func WithClock(c Clock) Option { return func(s *settings) { s.clock = c } }

// WithObserver sets the observer of clock steps and leases.
func WithObserver(o Observer) Option { return func(s *settings) { s.observer = o } }

// WithOwner puts a name in front of the random owner that leases are taken under, so that people see in the store who
// holds what. It need not be unique.
func WithOwner(name string) Option { return func(s *settings) { s.owner = name } }

// WithTolerance sets the step back of the clock up to which calls wait for it; 5 ms otherwise.
func WithTolerance(d time.Duration) Option { return func(s *settings) { s.tolerance = d } }

// WithBurst sets how far ahead of the clock ids may be because more are wanted than the sequence has room for; 100 ms
// otherwise, which is 409,600 ids at once. Zero keeps strictly to the clock.
func WithBurst(d time.Duration) Option { return func(s *settings) { s.burst = d } }

// WithMaxAhead sets how far ahead of a clock that went back ids may be before the backup worker is used; 5 s otherwise.
func WithMaxAhead(d time.Duration) Option { return func(s *settings) { s.maxAhead = d } }

// WithLease sets how long a lease lasts without being renewed, 15 s otherwise, and how far ahead of the time used its
// ceiling is stored, 3 s otherwise. The lease is renewed, and the ceiling raised, at a third of the shorter one.
// A third of the reserve is what ids are drawn from while the store is away: 4 million of them by default.
func WithLease(ttl, reserve time.Duration) Option {
	return func(s *settings) { s.ttl, s.reserve = ttl, reserve }
}

func (s *settings) validate() error {
	if err := s.layout.Validate(); err != nil {
		return err
	}
	switch {
	case s.dataCenter < -1 || s.dataCenter>>s.layout.DataCenterBits > 0:
		return fmt.Errorf("%w: data centre %d does not fit in %d bits", ErrLayout, s.dataCenter, s.layout.DataCenterBits)
	case s.tolerance < 0, s.burst < 0, s.maxAhead < s.burst:
		return fmt.Errorf("idgen: want tolerance >= 0 and 0 <= burst <= max ahead, got %s, %s, %s",
			s.tolerance, s.burst, s.maxAhead)
	case s.ttl < 30*time.Millisecond, s.reserve < 30*time.Millisecond:
		return fmt.Errorf("idgen: want lease and reserve of at least 30 ms, got %s and %s", s.ttl, s.reserve)
	}
	return nil
}

// halfToThreeHalves spreads what many instances would otherwise do at the same moment.
func halfToThreeHalves(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// request returns what to ask the store for.
func (s *settings) request() LeaseRequest {
	perCenter := 1 << (s.layout.WorkerBits - 1)
	want := LeaseRequest{
		Owner: s.owner, Layout: s.layout.String(), TTL: s.ttl,
		First: s.dataCenter * perCenter, Count: perCenter,
	}
	if s.dataCenter < 0 {
		want.First, want.Count = 0, perCenter<<s.layout.DataCenterBits
	}
	return want
}

func (s *settings) newPace() pace {
	return pace{
		seqBits: s.layout.SequenceBits, maxMS: s.layout.maxMillis(),
		burst: s.burst.Milliseconds(), maxAhead: s.maxAhead.Milliseconds(), reserve: s.reserve.Milliseconds(),
	}
}
