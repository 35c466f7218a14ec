package idgen

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Snowflake is a Generator whose ids consist of time, worker and sequence.
//
// Three defences protect against a clock that goes back. By up to 5 ms: calls wait for it. By more: ids continue from the
// highest time used. When that is more than 5 s ahead of the clock: the backup worker of the leased pair takes over,
// which has its own highest time used. If that is too far ahead as well, calls wait for the clock or for the end of their
// context. The lease stores a ceiling above the highest time used, which defends across restarts.
//
// Demand above the capacity of the sequence (4,096 ids a millisecond) uses the following milliseconds, up to 100 ms ahead
// of the clock. After that, calls wait for the clock.
type Snowflake struct {
	settings
	leases LeaseStore
	start  time.Time // the zero of mono
	window atomic.Pointer[window]

	mu        sync.Mutex // guards what follows, up to events
	workers   [2]worker  // the leased pair
	active    int        // index of the worker in use
	grant     Grant
	deadline  time.Duration // on mono: ids may be issued until then; 0 without a lease
	lastClock int64         // the last reading of the clock
	holdUntil int64         // calls wait until the clock shows this
	closed    bool
	changed   chan struct{} // closed and replaced to wake waiting calls
	events    []Event       // to report when mu is unlocked

	waiting   atomic.Int64
	rollbacks atomic.Int64

	wakeup     chan struct{} // has room for one: renew the lease now
	stopRenew  context.CancelFunc
	renewEnded chan struct{}
	closeOnce  sync.Once
	closeErr   error
}

// NewSnowflake leases a pair of workers and returns a generator with it; the caller closes it. It blocks on the store until
// ctx ends. It returns ErrNoWorker when all workers are taken, ErrLayout when options do not fit, ErrExhausted when the
// clock is outside the layout's time, otherwise the store's error.
func NewSnowflake(ctx context.Context, leases LeaseStore, opts ...Option) (*Snowflake, error) {
	s := &Snowflake{
		settings: defaultSettings(), leases: leases, start: time.Now(), changed: make(chan struct{}),
		wakeup: make(chan struct{}, 1), renewEnded: make(chan struct{}),
	}
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
	s.lastClock = s.now()
	s.window.Store(noWindow)
	if s.lastClock < 0 || s.lastClock > s.layout.maxMillis() {
		return nil, fmt.Errorf("%w: the clock shows %s, the layout lasts from %s to %s",
			ErrExhausted, s.clock().UTC(), s.layout.Epoch, s.layout.End())
	}
	if err := s.startRenewing(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Next implements Generator.
func (s *Snowflake) Next(ctx context.Context) (ID, error) {
	if w := s.window.Load(); s.isOpen(w) {
		if tick, got := w.take(1); got == 1 {
			return w.id(tick), nil
		}
	}
	var one [1]ID
	err := s.NextN(ctx, one[:])
	return one[0], err
}

// NextN implements Generator.
func (s *Snowflake) NextN(ctx context.Context, dst []ID) error {
	for {
		w := s.window.Load()
		if s.isOpen(w) {
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

// advance opens the next window after one that its caller found used up or ended, or waits until that can be tried again.
func (s *Snowflake) advance(ctx context.Context, used *window) (err error) {
	var wait time.Duration
	s.mu.Lock()
	if s.window.Load() == used {
		wait, err = s.openWindow()
	}
	changed, events := s.changed, s.events
	s.events = nil
	s.mu.Unlock()
	for _, e := range events {
		s.observer.IDEvent(e)
	}
	if err != nil || wait == 0 {
		return err
	}
	return s.wait(ctx, wait, changed)
}

// openWindow opens a window for this moment, or returns how long to wait before the next try. s.mu is locked.
func (s *Snowflake) openWindow() (wait time.Duration, err error) {
	// 1. Record what was taken from the window before.
	s.closeWindow()
	// 2. Without a lease there are no ids.
	mono, wall := s.mono(), s.clock()
	if s.closed {
		return 0, ErrClosed
	}
	if mono >= s.deadline {
		s.wakeRenewal()
		return 0, ErrLeaseLost
	}
	// 3. Wait for a clock that went back by a little.
	now := s.sinceEpoch(wall)
	s.readClock(now)
	if wait := s.waitForClock(now); wait > 0 {
		return wait, nil
	}
	// 4. Choose the worker, and the ticks that it may use now.
	ticks, err := s.chooseWorker(now)
	if err != nil || ticks.wait > 0 {
		return ticks.wait, err
	}
	// 5. Have the ceiling raised before it is reached.
	w := &s.workers[s.active]
	if s.milli(ticks.first) >= w.ceiling-s.reserve.Milliseconds()/3 {
		s.wakeRenewal()
	}
	if ticks.first == ticks.limit {
		return maxWait, nil // the renewal wakes waiting calls
	}
	// 6. Calls take ids from the window until the clock's next millisecond or the end of the lease.
	untilNext := wall.Truncate(time.Millisecond).Add(time.Millisecond).Sub(wall)
	s.install(ticks, w.number, min(mono+untilNext, s.deadline))
	return 0, nil
}

// maxWait is how long a call sleeps before it reads the clock again, because the clock may be set in the meantime.
const maxWait = 50 * time.Millisecond

// wait waits for d, for a change, or for the end of ctx.
func (s *Snowflake) wait(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	timer := time.NewTimer(min(d, maxWait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wakeWaiters makes waiting calls look again. s.mu is locked.
func (s *Snowflake) wakeWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Layout returns the layout of the generator's ids.
func (s *Snowflake) Layout() Layout { return s.layout }

// SnowflakeStats is the state of a Snowflake, for metrics.
type SnowflakeStats struct {
	Worker    int           // worker in use, counted over all data centres
	Ahead     time.Duration // how far the time in the last id is ahead of the clock; zero if it is not
	LeaseLeft time.Duration // how long ids can be issued without a renewal; zero without a lease
	Rollbacks int64         // how often the clock was seen to go back
	Waiting   int64         // calls that wait for the clock or the store
}

// Stats returns the present state.
func (s *Snowflake) Stats() SnowflakeStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SnowflakeStats{
		Worker:    s.workers[s.active].number,
		Ahead:     max(0, millis(s.milli(s.lastTick())-s.now())),
		LeaseLeft: max(0, s.deadline-s.mono()),
		Rollbacks: s.rollbacks.Load(),
		Waiting:   s.waiting.Load(),
	}
}
