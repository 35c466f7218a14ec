package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/service/lock"
)

// finding is the result of one case.
type finding struct {
	lock string
	name string // of the case
	// together is how long two holders existed: from the second grant until the first holder's lease was cancelled. It is zero if
	// the first holder's lease was cancelled before.
	together time.Duration
	// staleWrite: the first holder, which did not look at its lease, wrote after the second one.
	staleWrite bool
	// hasToken: the lock gives fencing tokens. refused: a store that checks them would have refused the stale write.
	hasToken, refused bool
	// secondHeld: the second lock survived the late release of the first holder.
	secondHeld bool
}

// String returns the finding as a sentence.
func (f finding) String() string {
	s := f.lock + ", " + f.name + ": "
	if f.together > 0 {
		s += fmt.Sprintf("two holders for %v", f.together.Round(time.Millisecond))
	} else {
		s += "the first lease was cancelled before the second grant"
	}
	switch {
	case f.refused:
		s += "; the stale write would be refused by its token"
	case f.hasToken:
		s += "; the token would not refuse the stale write"
	default:
		s += "; no token, so only the database's own conditions can refuse the stale write"
	}
	if !f.secondHeld {
		s += "; the late release took the lock from the second holder"
	}
	return s
}

// The cases.
const (
	lockDeleted  = "lock deleted under its holder"
	holderPaused = "holder paused past its lease"
)

// runCases runs both cases. pause is the lease of the holder that is paused.
func (s subject) runCases(ctx context.Context, pause time.Duration) ([]finding, error) {
	first, err := s.open()
	if err != nil {
		return nil, err
	}
	defer first.Close()
	second, err := s.open()
	if err != nil {
		return nil, err
	}
	defer second.Close()
	var findings []finding
	for _, c := range []struct {
		name   string
		opts   []lock.Option
		breaks func(ctx context.Context, key string) error
	}{
		{lockDeleted, nil, second.Break},
		{holderPaused, []lock.Option{lock.WithLease(pause)}, func(context.Context, string) error { return nil }},
	} {
		h := holders{first: first, second: second, key: "lab:" + time.Now().Format("150405.000000000")}
		f, err := h.run(ctx, c.opts, c.breaks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		f.lock, f.name = s.name, c.name
		findings = append(findings, f)
	}
	return findings, nil
}

// holders are two processes that want the same lock.
type holders struct {
	first, second lock.Locker
	key           string
	store         store
}

// run lets the first acquire, breaks its lock, lets the second acquire and write, and then lets the first write and release
// without looking at its lease.
func (h *holders) run(ctx context.Context, opts []lock.Option, breaks func(context.Context, string) error) (f finding, err error) {
	stale, err := h.first.Acquire(ctx, h.key, opts...)
	if err != nil {
		return f, err
	}
	cancelled := make(chan time.Time, 1)
	stop := context.AfterFunc(stale.Context(), func() { cancelled <- time.Now() })
	defer stop()
	if err := breaks(ctx, h.key); err != nil {
		return f, err
	}
	fresh, err := h.second.Acquire(ctx, h.key)
	if err != nil {
		return f, err
	}
	granted := time.Now()
	h.store.write(fresh)
	select {
	case at := <-cancelled:
		f.together = max(0, at.Sub(granted))
	case <-ctx.Done():
		return f, ctx.Err()
	}
	f.staleWrite, f.refused = h.store.write(stale)
	_, f.hasToken = stale.Token()
	if err := stale.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
		return f, err
	}
	f.secondHeld, err = h.release(ctx, fresh)
	return f, err
}

// release releases the second lock. It reports whether the lock was still held until then.
func (h *holders) release(ctx context.Context, fresh lock.Lease) (held bool, err error) {
	third, err := h.first.Acquire(ctx, h.key, lock.Try())
	if err == nil {
		_ = third.Release(ctx)
		_ = fresh.Release(ctx)
		return false, nil
	}
	if !errors.Is(err, lock.ErrHeld) {
		return false, err
	}
	return true, fresh.Release(ctx)
}

// store is what the lock protects. It accepts every write, and reports what fencing would have done.
type store struct {
	highest uint64
	writes  int
}

func (s *store) write(l lock.Lease) (stale, refused bool) {
	stale = s.writes > 0
	s.writes++
	token, ok := l.Token()
	refused = ok && token < s.highest
	s.highest = max(s.highest, token)
	return stale, refused
}

// cost is what an uncontended Acquire and Release take together, on average.
type cost struct {
	pair     time.Duration
	requests float64 // to servers
}

// measure acquires and releases a lock n times.
func (s subject) measure(ctx context.Context, n int) (cost, error) {
	l, err := s.open()
	if err != nil {
		return cost{}, err
	}
	defer l.Close()
	pair := func() error {
		return lock.Do(ctx, l, "lab:cost", func(context.Context) error { return nil })
	}
	if err := pair(); err != nil { // connects, and loads scripts
		return cost{}, err
	}
	before, start := l.Requests(), time.Now()
	for range n {
		if err := pair(); err != nil {
			return cost{}, err
		}
	}
	return cost{pair: time.Since(start) / time.Duration(n), requests: float64(l.Requests()-before) / float64(n)}, nil
}
