package idgen

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Snowflake makes ids of time, worker and sequence. It is a Generator; NewSnowflake makes one.
//
// Three defences stand against a clock that goes back. By up to the tolerance (5 ms): calls wait for it. By more: ids go
// on from the highest time used. Once that is too far ahead of the clock (5 s): the other worker of the leased pair takes
// over, whose own highest time is kept as well. If that is too far ahead too, calls wait for the clock or for their
// context. Across restarts the ceiling stored in the lease takes the place of the highest time used.
//
// Demand beyond the sequence's capacity (4,096 ids a millisecond) draws on the milliseconds to come, up to the burst
// (100 ms), and then waits for the clock.
type Snowflake struct {
	settings
	pace   pace
	leases LeaseStore
	win    atomic.Pointer[window]

	mu       sync.Mutex
	streams  [2]stream
	active   int   // index of the stream in use
	seen     int64 // the clock's last reading, in milliseconds of the layout
	hold     int64 // calls wait until the clock shows this
	grant    Grant
	deadline time.Duration // on Mono: the lease is good until then; 0 without a lease
	closed   bool
	busy     bool          // many ids were taken from the last window
	changed  chan struct{} // closed and replaced when waiting calls should look again

	waiting   atomic.Int64
	rollbacks atomic.Int64
	keeper    keeper
}

// NewSnowflake leases a pair of workers and returns a generator with it, for the caller to Close. It blocks on the store
// until ctx ends, and fails when the lease cannot be had: ErrNoWorker when all are taken, ErrLayout when settings do not
// fit, ErrExhausted when the clock is outside the layout's years, otherwise the store's error.
func NewSnowflake(ctx context.Context, leases LeaseStore, opts ...Option) (*Snowflake, error) {
	s := &Snowflake{settings: defaultSettings(), leases: leases, changed: make(chan struct{})}
	for _, opt := range opts {
		opt(&s.settings)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if s.owner != "" {
		s.owner += "-"
	}
	s.owner += rand.Text()
	s.pace = s.newPace()
	s.seen = s.now()
	s.win.Store(deadWindow())
	if s.seen < 0 || s.seen > s.pace.maxMS {
		return nil, fmt.Errorf("%w: the clock shows %s, the layout lasts from %s to %s",
			ErrExhausted, s.clock.Wall().UTC(), s.layout.Epoch, s.layout.End())
	}
	if err := s.startKeeper(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Next implements Generator.
func (s *Snowflake) Next(ctx context.Context) (ID, error) {
	if w := s.win.Load(); w.valid(s.clock) {
		if tick, got := w.take(1); got == 1 {
			return w.compose(tick), nil
		}
	}
	var one [1]ID
	err := s.fill(ctx, one[:])
	return one[0], err
}

// NextN implements Generator.
func (s *Snowflake) NextN(ctx context.Context, dst []ID) error { return s.fill(ctx, dst) }

// fill takes ids from window after window until dst is full.
func (s *Snowflake) fill(ctx context.Context, dst []ID) error {
	for {
		w := s.win.Load()
		if w.valid(s.clock) {
			dst = dst[w.takeInto(dst):]
		}
		if len(dst) == 0 {
			return nil
		}
		if err := s.advance(ctx, w); err != nil {
			return err
		}
	}
}

// advance replaces the window that its caller found empty or out of date, or waits until that can be tried again.
func (s *Snowflake) advance(ctx context.Context, used *window) error {
	var seen []Event
	s.mu.Lock()
	wait, err := time.Duration(0), error(nil)
	if s.win.Load() == used {
		wait, err = s.renewWindow(&seen)
	}
	changed := s.changed
	s.mu.Unlock()
	for _, e := range seen {
		s.observer.IDEvent(e)
	}
	if err != nil || wait == 0 {
		return err
	}
	return s.sleep(ctx, wait, changed)
}

// longWait is how long a call that waits for the clock sleeps at most before it looks again, since the clock may be set.
const longWait = 50 * time.Millisecond

func (s *Snowflake) sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	fired, stop := after(s.clock, min(d, longWait))
	defer stop()
	select {
	case <-fired:
		return nil
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewWindow installs the window for this moment. Without one, it returns how long to wait before the next try, or the
// error to give up with. s.mu is held.
func (s *Snowflake) renewWindow(seen *[]Event) (time.Duration, error) {
	s.retireWindow()
	mono, wall := s.clock.Mono(), s.clock.Wall()
	switch {
	case s.closed:
		return 0, ErrClosed
	case mono >= s.deadline:
		s.keeper.wake()
		return 0, ErrLeaseLost
	}
	now := s.sinceEpoch(wall)
	s.notice(now, seen)
	if wait := s.holding(now); wait > 0 {
		return wait, nil
	}
	r, err := s.choose(now, seen)
	if err != nil || r.wait > 0 {
		return r.wait, err
	}
	st := &s.streams[s.active]
	if r.first>>s.pace.seqBits >= st.ceiling-s.pace.reserve/3 {
		s.keeper.wake()
	}
	if !r.usable() {
		return longWait, nil // the keeper tells when the ceiling is raised
	}
	tillNext := wall.Truncate(time.Millisecond).Add(time.Millisecond).Sub(wall) // millisecond
	s.install(r, st.machine, mono, min(mono+tillNext, s.deadline))
	return 0, nil
}

// notice compares the clock with its last reading: the first and the second defence. s.mu is held.
func (s *Snowflake) notice(now int64, seen *[]Event) {
	back := s.seen - now
	s.hold = max(s.hold, s.seen)
	s.seen = now
	if back > 0 {
		s.rollbacks.Add(1)
	}
	if s.hold-now <= s.tolerance.Milliseconds() {
		if back > 0 {
			*seen = append(*seen, Event{Kind: ClockWait, Step: millis(back)})
		}
		return
	}
	s.hold = now
	for i := range s.streams {
		s.streams[i].rolledBack(s.pace, now)
	}
	*seen = append(*seen, Event{Kind: ClockAhead, Step: millis(back)})
}

// holding returns how long calls have to wait for a clock that went back by a little. They need not when no id has
// reached the time that it shows now. s.mu is held.
func (s *Snowflake) holding(now int64) time.Duration {
	if s.hold <= now || s.streams[s.active].last>>s.pace.seqBits <= now {
		return 0
	}
	return millis(s.hold - now)
}

// choose returns the reach of the stream to use, which is the other one when the clock has left the active one behind:
// the third defence. s.mu is held.
func (s *Snowflake) choose(now int64, seen *[]Event) (reach, error) {
	st, spare := &s.streams[s.active], &s.streams[1-s.active]
	var r reach
	if now <= s.pace.maxMS {
		r = st.reach(s.pace, now)
	}
	if max(now, r.first>>s.pace.seqBits) > s.pace.maxMS {
		return r, fmt.Errorf("%w: the layout's time ends at %s", ErrExhausted, s.layout.End())
	}
	if r.wait == 0 || !st.recovering {
		return r, nil
	}
	other := spare.reach(s.pace, now)
	if other.wait > 0 {
		r.wait = min(r.wait, other.wait)
		return r, nil
	}
	s.active = 1 - s.active
	*seen = append(*seen, Event{Kind: WorkerSwitched, Step: millis(r.ahead), Worker: spare.machine})
	return other, nil
}

func (s *Snowflake) now() int64 { return s.sinceEpoch(s.clock.Wall()) }

func (s *Snowflake) sinceEpoch(t time.Time) int64 { return t.UnixMilli() - s.layout.Epoch.UnixMilli() }

// broadcast makes waiting calls look again. s.mu is held.
func (s *Snowflake) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}
